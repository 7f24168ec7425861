"""Finds the newest version of an agent that this machine can install.

A version is left out where the registry has no package of its program for this platform; then
the newest version that has one is taken, and both are named.
"""

import json
import re
import subprocess

import install
import install_python

ASK_SECONDS = 120
# How many versions are asked for their platform package, from the newest down.
TRIED_MAX = 12
STABLE = re.compile(r"\d+(\.\d+)+")
ALIAS = re.compile(r"npm:(.+)@([^@]+)")


def npm(package):
    """Returns the package at its newest installable version, and what is to be said of that."""
    latest = _view(f"{package.name}@latest", "version")
    lacking = None
    for version in _from(latest, package.name):
        missing = _missing_platform_package(package.name, version)
        if missing is None:
            said = f"{latest} has no {lacking}: {version} is the newest that has it" if lacking else ""
            return install.Package(package.name, version), said
        lacking = lacking or missing
    raise install.CannotInstall(f"{package.name}: none of its last {TRIED_MAX} versions has {lacking}")


def pypi(package):
    """Returns the package at the newest version that pip offers to the Python it would be installed for."""
    python = install_python.find_python()
    lines = _run([python, "-m", "pip", "index", "versions", "--disable-pip-version-check", package.name]).splitlines()
    found = re.match(rf"{re.escape(package.name)} \(([^)]+)\)", lines[0]) if lines else None
    if found is None:
        raise install.CannotInstall(f"{package.name}: pip names no version of it")
    return install.Package(package.name, found.group(1)), ""


def _from(latest, name):
    """Yields `latest` and the stable versions before it, newest first."""
    yield latest
    versions = [one for one in _view(name, "versions") if STABLE.fullmatch(one)]
    older = sorted((one for one in versions if _numbers(one) < _numbers(latest)), key=_numbers, reverse=True)
    yield from older[:TRIED_MAX - 1]


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _missing_platform_package(name, version):
    """Returns a package for this platform that a version wants and the registry lacks, or None."""
    wanted = _view(f"{name}@{version}", "optionalDependencies") or {}
    ending = install.platform_name()
    for dependency, asked in wanted.items():
        if not dependency.endswith("-" + ending):
            continue
        alias = ALIAS.fullmatch(asked)
        target = f"{alias.group(1)}@{alias.group(2)}" if alias else f"{dependency}@{asked}"
        if not _view(target, "version", may_lack=True):
            return target
    return None


def _view(target, field, may_lack=False):
    try:
        text = _run(["npm", "view", target, field, "--json"])
    except install.CannotInstall as error:
        if may_lack and "E404" in str(error):
            return None
        raise
    return json.loads(text) if text.strip() else None


def _run(argv):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="replace", timeout=ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise install.CannotInstall(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        raise install.CannotInstall(f"{' '.join(argv[:3])}: {(done.stderr + done.stdout).strip()[-300:]}")
    return done.stdout
