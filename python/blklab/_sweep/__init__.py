# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: many runs over factors, on any executor, into tables on disk."""

from blklab._sweep._factors import Range
from blklab._sweep._results import Sweep
from blklab._sweep._run import sweep

__all__ = ["Range", "Sweep", "sweep"]
