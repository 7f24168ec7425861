"""Installs agents from npm into a cache folder, each version in a folder of its own.

Nothing is installed twice and nothing into the machine: a folder appears under
its final name only when it is whole.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

INSTALL_SECONDS = 900
VERSION_SECONDS = 60
NODE_VERSION = "24.21.0"


class CannotInstall(Exception):
    """The agent cannot be had on this machine; says why."""


@dataclass(frozen=True)
class Package:
    """One package at one version."""

    name: str
    version: str

    @property
    def folder(self):
        return self.name.split("/")[-1] + "-" + self.version


def cache_folder():
    """Returns where the agents are kept."""
    chosen = os.environ.get("WHOSUP_REAL_AGENTS_CACHE")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "whosup", "real-agents")


def platform_name():
    """Returns what npm packages of this platform's programs end with, as `linux-x64`."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
    if system is None or machine is None:
        raise CannotInstall(f"no packages for {platform.system()} on {platform.machine()}")
    return f"{system}-{machine}"


def node_package():
    """Returns the npm package that holds a Node binary for this machine, without install scripts."""
    return Package(f"node-{platform_name()}", NODE_VERSION)


def install(package, script=None):
    """Returns the folder of `package`, installing it first where it is missing.

    Install scripts of packages are not run, except `script`, a path below
    node_modules that the caller has looked at.
    """
    folder = os.path.join(cache_folder(), package.folder)
    if os.path.isdir(folder):
        return folder
    if shutil.which("npm") is None:
        raise CannotInstall("npm is not installed")
    building = f"{folder}.building-{os.getpid()}"
    os.makedirs(building)
    try:
        run(["npm", "install", "--prefix", building, "--ignore-scripts", "--no-audit", "--no-fund",
              "--no-update-notifier", "--save-exact", f"{package.name}@{package.version}"], building)
        if script is not None:
            run(["node", os.path.join(building, "node_modules", script)], building)
        os.rename(building, folder)
    except OSError as error:
        # Another run may have been quicker.
        if not os.path.isdir(folder):
            raise CannotInstall(f"{package.name}: {error}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def binary(folder, name):
    """Returns an executable that a package of this folder brought."""
    path = os.path.join(folder, "node_modules", ".bin", name)
    if not os.path.exists(path):
        raise CannotInstall(f"{path} is missing: remove its folder and run again")
    return path


def node_binary():
    """Returns the pinned Node."""
    package = node_package()
    path = os.path.join(install(package), "node_modules", package.name, "bin", "node")
    if not os.path.exists(path):
        raise CannotInstall(f"{path} is missing: remove its folder and run again")
    return path


def run(argv, folder):
    """Runs one step of an installation, or raises `CannotInstall` with the last line of its output."""
    try:
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        # The last line names the reason; pip puts all versions that there are before it.
        lines = done.stdout.strip().splitlines()[-1:]
        raise CannotInstall(f"{os.path.basename(argv[0])} exited with {done.returncode}: " + " ".join(lines))


def version_of(argv, search_path):
    """Returns the version that `argv --version` prints, run with a home of its own."""
    with tempfile.TemporaryDirectory(prefix="wra-") as home:
        variables = {"PATH": search_path, "HOME": home}
        try:
            done = subprocess.run([*argv, "--version"], env=variables, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  errors="replace", timeout=VERSION_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotInstall(f"{argv[0]}: {error}") from error
    words = [word for word in done.stdout.split() if word[:1].isdigit()]
    return words[0] if words else done.stdout.strip()
