"""Builds the native part, which reads sessions, where there is a Rust toolchain.

Without one the package is the writer alone, in plain Python.
"""

import os

from setuptools import setup
from setuptools_rust import Binding, RustExtension

setup(
    rust_extensions=[
        RustExtension(
            "whosup._native",
            path="native/Cargo.toml",
            binding=Binding.PyO3,
            # `SETUPTOOLS_RUST_CARGO_PROFILE` names another profile.
            args=["--profile", "dist"],
            features=os.environ.get("WHOSUP_NATIVE_FEATURES", "").split(),
            py_limited_api=True,
            optional=True,
        )
    ],
)
