"""Builds the native part, which reads sessions, and the command `whosup`, with Cargo.

In a checkout without a Rust toolchain the package is the writer alone, in plain Python.
A source distribution has the Rust sources in `rust/`, and its build fails without one.
"""

import os
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist
from setuptools.errors import BaseError
from setuptools_rust import Binding, RustBin, RustExtension, build_rust

HERE = Path(__file__).resolve().parent
IS_CHECKOUT = not (HERE / "rust").is_dir()
WORKSPACE = HERE.parents[1] if IS_CHECKOUT else HERE / "rust"
# The whole workspace, without which Cargo refuses its `Cargo.lock`.
SOURCES = ["bench", "bindings/node/native", "bindings/python/native", "bindings/worlds", "crates", "tests/campaign"]
# Test data and reports, which no build reads. Build output of the other bindings.
LEFT_OUT = ["fixtures", "snapshots", "proptest-regressions", "reports", "target", "__pycache__", "*.node"]
# `SETUPTOOLS_RUST_CARGO_PROFILE` names another profile.
CARGO = {"args": ["--profile", "dist", "--locked"], "optional": IS_CHECKOUT}


RUST_VERSION = re.search(r'^rust-version = "(.+)"', (WORKSPACE / "Cargo.toml").read_text(), re.MULTILINE)[1]


class SourceDistribution(sdist):
    """Adds the Rust workspace, which is outside of this folder in a checkout."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        base, rust = Path(base_dir), Path(base_dir, "rust")
        for folder in SOURCES:
            shutil.copytree(WORKSPACE / folder, rust / folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for file in ["Cargo.toml", "Cargo.lock", "clippy.toml", "LICENSE-MIT", "LICENSE-APACHE"]:
            shutil.copy(WORKSPACE / file, rust / file)
        # Cargo reads its configuration where it is started.
        (base / ".cargo").mkdir()
        configuration = (WORKSPACE if IS_CHECKOUT else HERE) / ".cargo/config.toml"
        shutil.copy(configuration, base / ".cargo/config.toml")
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"]:
            # In a checkout it is a symbolic link.
            (base / licence).unlink(missing_ok=True)
            shutil.copy(WORKSPACE / licence, base / licence)


class BuildRust(build_rust):
    """Takes from WHOSUP_PROGRAM and WHOSUP_LIBRARY what is already built."""

    def run(self):
        try:
            super().run()
        except BaseError as error:
            # Without the stack, which would hide the reason.
            raise SystemExit(
                f"{error}\n\nerror: cannot build whosup from its sources. This needs Rust {RUST_VERSION} or"
                " later with Cargo, and a C compiler."
            ) from error

    def build_extension(self, extension):
        is_program = isinstance(extension, RustBin)
        built = os.environ.get("WHOSUP_PROGRAM" if is_program else "WHOSUP_LIBRARY")
        return ([(extension.name, built)], None) if built else super().build_extension(extension)


setup(
    rust_extensions=[
        RustExtension(
            "whosup._native",
            path=str(WORKSPACE / "bindings/python/native/Cargo.toml"),
            binding=Binding.PyO3,
            features=os.environ.get("WHOSUP_NATIVE_FEATURES", "").split(),
            py_limited_api=True,
            # For both: setuptools-rust can't compare the requirements of two.
            rust_version=f">={RUST_VERSION}",
            **CARGO,
        ),
        RustBin("whosup", path=str(WORKSPACE / "crates/cli/Cargo.toml"), **CARGO),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
    cmdclass={"sdist": SourceDistribution, "build_rust": BuildRust},
)
