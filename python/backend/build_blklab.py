# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the command ``blklab`` for a wheel, then the wheel with maturin.

maturin puts what lies in ``blklab.data/scripts`` on PATH beside the module.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from maturin import (  # noqa: F401 -- hooks of a build backend
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from maturin import build_editable as _build_editable
from maturin import build_wheel as _build_wheel
from maturin import prepare_metadata_for_build_editable as prepare_metadata_for_build_editable
from maturin import prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPTS = _ROOT / "python" / "blklab.data" / "scripts"


def _build_command() -> None:
    """The command, stripped, where maturin looks for it."""
    if shutil.which("cargo") is None:
        sys.exit("blklab is built from Rust: install Rust 1.89 or newer (https://rustup.rs)")
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    build = ["cargo", "build", "--release", "--locked", "--package", "blklab-cli", "--bin", "blklab"]
    subprocess.run(build, cwd=_ROOT, check=True)
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "release" / "blklab", _SCRIPTS / "blklab")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return _build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return _build_editable(wheel_directory, config_settings, metadata_directory)
