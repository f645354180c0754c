# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tuning: settings for several goals at once, confirmed on what was held out."""

from blklab._tune._run import tune
from blklab._tune._tuned import Gain, Tried, Tuned

__all__ = ["Gain", "Tried", "Tuned", "tune"]
