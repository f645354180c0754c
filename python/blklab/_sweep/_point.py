# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run of a sweep, and the stack that its values make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blklab._stack import Stack, stack
from blklab._sweep._factors import KEYWORDS


@dataclass(frozen=True)
class RunOf:
    """A run that a sweep asks for.

    Parameters
    ----------
    key : str
        Hash of the experiment, its stack, its seed and the version of blklab.
    experiment : int
        Place of its experiment.
    values : tuple
        A value for each factor.
    repetition : int
        Which repetition, from 0.
    """

    key: str
    experiment: int
    values: tuple[Any, ...]
    repetition: int


def stack_of(
    named: Mapping[str, Any], *, seed: int | None = None, repeat: int = 1, exact: bool = False
) -> Stack:
    """The stack of a point's factors."""
    keywords = {name: [v] for name, v in named.items() if name in KEYWORDS and v is not None}
    settings = {name: [v] for name, v in named.items() if name not in KEYWORDS and v is not None}
    return stack(**keywords, set=settings, seed=seed, repeat=repeat, repeat_exact=exact)
