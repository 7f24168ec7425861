"""Installs pinned agents from PyPI into the cache folder, each in a virtual environment of its own.

A virtual environment cannot be moved, so it is made in its place; a file in it
says that it is whole.
"""

import fcntl
import glob
import os
import shutil
import subprocess

import install

OLDEST = (3, 12)
NAMES = ("python3.14", "python3.13", "python3.12", "python3", "python")
PROBE_SECONDS = 20
WHOLE = ".whole"


def binary(package, name):
    """Returns a command of a PyPI package, installing the package first where it is missing."""
    folder = os.path.join(install.cache_folder(), package.folder)
    os.makedirs(install.cache_folder(), exist_ok=True)
    # Two runs of the suite must not build one folder at once.
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, WHOLE)):
            _build(package, folder)
    path = os.path.join(folder, "bin", name)
    if not os.path.exists(path):
        raise install.CannotInstall(f"{path} is missing: remove its folder and run again")
    return path


def _build(package, folder):
    python = find_python()
    shutil.rmtree(folder, ignore_errors=True)
    install.run([python, "-m", "venv", folder], None)
    install.run([os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-input",
                 "--disable-pip-version-check", f"{package.name}=={package.version}"], folder)
    with open(os.path.join(folder, WHOLE), "w"):
        pass


def find_python():
    """Returns a Python that is new enough: of the search path, else one that pyenv has built."""
    found = [path for path in map(shutil.which, NAMES) if path]
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser(os.path.join("~", ".pyenv"))
    found += sorted(glob.glob(os.path.join(root, "versions", "*", "bin", "python3")), reverse=True)
    for path in found:
        if _is_new_enough(path):
            return path
    raise install.CannotInstall("no Python " + ".".join(map(str, OLDEST)) + " or later on this machine")


def _is_new_enough(path):
    probe = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", probe], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and tuple(map(int, done.stdout.split())) >= OLDEST
