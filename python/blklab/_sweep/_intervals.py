# SPDX-License-Identifier: MIT OR Apache-2.0
"""Intervals over repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


def interval(
    values: Sequence[float], level: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Mean of values, and Student's interval of their mean; None for its ends if there is one
    value.

    Examples
    --------
    >>> [round(x, 3) for x in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    >>> interval([1.0])
    (1.0, None, None)
    """
    if not values:
        return math.nan, None, None
    number = len(values)
    mean = math.fsum(values) / number
    if number == 1:
        return mean, None, None
    variance = math.fsum((v - mean) ** 2 for v in values) / (number - 1)
    half = quantile(level, number - 1) * math.sqrt(variance / number)
    return mean, mean - half, mean + half


def corrected(level: float, comparisons: int) -> float:
    """The level of each of several intervals of which all hold with ``level`` (Bonferroni)."""
    return 1 - (1 - level) / max(comparisons, 1)


@lru_cache(maxsize=1024)
def quantile(level: float, freedom: int) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))
