# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the command ``blklab`` for a wheel, then the wheel with maturin.

maturin puts what lies in ``blklab.data/scripts`` on PATH beside the module. The environment
variable ``BLKLAB_PROFILE`` names another of cargo's profiles than ``release``: with ``dev`` the
tests of this repository use what was compiled for its other tests.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (  # hooks of a build backend
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPTS = _ROOT / "python" / "blklab.data" / "scripts"
_PROFILE = os.environ.get("BLKLAB_PROFILE", "release")
# What maturin takes for cargo, and the packages that are compiled for command and module alike:
# these two, or all that ``cargo test`` compiles.
_CARGO = Path(__file__).with_name("cargo-for-wheel.sh")
_PACKAGES = (
    "--workspace --tests" if _PROFILE == "dev" else "--package blklab-cli --package blklab-python"
)


def _settings(config_settings):
    """What maturin is told beside what pip says."""
    settings = dict(config_settings or {})
    if _PROFILE != "release":
        settings["maturin.build-args"] = f"--profile {_PROFILE}"
    return settings


def _prepare():
    """What cannot be done without."""
    if shutil.which("cargo") is None:
        sys.exit("blklab is built from Rust: install Rust 1.89 or newer (https://rustup.rs)")
    _SCRIPTS.mkdir(parents=True, exist_ok=True)
    os.environ.update(CARGO=str(_CARGO), BLKLAB_PACKAGES=_PACKAGES)


def _build_command():
    """The command, stripped, where maturin looks for it."""
    _prepare()
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    build = [_CARGO, "build", "--profile", _PROFILE, "--bin", "blklab"]
    subprocess.run(build, cwd=_ROOT, check=True)
    built = target / ("debug" if _PROFILE == "dev" else _PROFILE) / "blklab"
    shutil.copy2(built, _SCRIPTS / "blklab")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _prepare()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, _settings(config_settings))


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    _prepare()
    return maturin.prepare_metadata_for_build_editable(
        metadata_directory, _settings(config_settings)
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return maturin.build_wheel(wheel_directory, _settings(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _build_command()
    return maturin.build_editable(wheel_directory, _settings(config_settings), metadata_directory)
