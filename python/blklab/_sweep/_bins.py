# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sums of fio's bins of latency.

fio counts latencies in bins, 64 for each power of two, so that a value is known to 1.6 %. The
bins of all jobs and runs are the same; adding their counts is exact, and a percentile of the sum
is what fio would have said of all runs together. A sketch (DDSketch, HdrHistogram) would put
values of bins into bins of another width and lose some of that; :meth:`Bins.to_pairs` hands the
counts over to whoever wants one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable


class Bins:
    """Counts by value, in ns.

    Examples
    --------
    >>> bins = Bins([(1000, 98), (5000, 1)])
    >>> bins.add([(9000, 1)])
    >>> bins.count, bins.percentile(50), bins.percentile(99), bins.percentile(100)
    (100, 1000, 5000, 9000)
    """

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._counts: dict[int, int] = {}
        self._longest: float = math.inf
        self.add(pairs)

    def add(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Adds pairs of a value in ns and a count."""
        for value, count in pairs:
            self._counts[value] = self._counts.get(value, 0) + count

    def add_text(self, text: str, longest_ns: float | None = None) -> None:
        """Adds the pairs of a cell of the column ``clat_bins``, and the longest of them."""
        if longest_ns is not None:
            known = self._longest if self._counts else 0.0
            self._longest = max(known, longest_ns)
        self.add((int(value), int(count)) for value, count in json.loads(text))

    @property
    def count(self) -> int:
        """How many latencies there are."""
        return sum(self._counts.values())

    def percentile(self, percent: float) -> float | None:
        """The least value at or below which so many percent lie, as fio says it: the middle
        of its bin, at most the longest; None of nothing."""
        rank = max(math.ceil(percent / 100 * self.count - 1e-9), 1)
        seen = 0
        for value, count in self.to_pairs():
            seen += count
            if seen >= rank:
                return min(value, self._longest)
        return None

    def to_pairs(self) -> list[tuple[int, int]]:
        """Pairs of a value in ns and a count, by value."""
        return sorted(self._counts.items())
