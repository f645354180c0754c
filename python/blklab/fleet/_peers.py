# SPDX-License-Identifier: MIT OR Apache-2.0
"""Devices and hosts against their peers, robustly: one bad peer does not hide another."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

#: Standard deviations of a normal distribution for each median absolute deviation.
_SIGMAS = 1.4826

#: Peers differ by at least so much: 2 %. Less would make outliers of nothing.
_SPREAD_MIN = math.log(1.02)

#: Peers from which on a trend with the rate is fitted.
_TREND_PEERS = 10

#: Peers that a trend is fitted to, at most: it takes every pair of them.
_TREND_PEERS_MAX = 500


def against(
    items: Sequence[Mapping[str, Any]], peers: str, figure: str, peers_min: int
) -> list[dict[str, Any]]:
    """Each item with its figure against that of its peers, the worst first.

    The logarithm of the figure counts, after what the rate of requests explains of it among the
    peers (Theil and Sen's slope, the median of those of all pairs). ``ratio`` is how many times
    it is what was to be expected, ``sigmas`` the distance from the median of the peers in
    robust standard deviations.
    """
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for item in items:
        if item[figure] and item[peers] is not None:
            groups.setdefault(item[peers], []).append(item)
    found = []
    for group in groups.values():
        if len(group) < peers_min:
            continue
        values = [math.log(item[figure]) for item in group]
        rests = _without_trend(values, [item.get("rate") for item in group])
        middle = statistics.median(rests)
        spread = _SIGMAS * statistics.median(abs(r - middle) for r in rests)
        spread = max(spread, _SPREAD_MIN)
        expected = statistics.median(values)
        for item, rest in zip(group, rests, strict=True):
            found.append(
                dict(item)
                | {
                    "peers": len(group),
                    "peers_median_ns": math.exp(expected),
                    "ratio": math.exp(rest - middle),
                    "sigmas": (rest - middle) / spread,
                }
            )
    return sorted(found, key=lambda item: -item["sigmas"])


def _without_trend(values: Sequence[float], rates: Sequence[float | None]) -> list[float]:
    if len(values) < _TREND_PEERS or any(not rate for rate in rates):
        return list(values)
    logs = [math.log(rate) for rate in rates if rate]
    # Evenly over all rates, so that the same peers are taken each time.
    order = sorted(range(len(values)), key=lambda i: (logs[i], values[i]))
    some = order[:: max(len(order) // _TREND_PEERS_MAX, 1)]
    slopes = [
        (values[j] - values[i]) / (logs[j] - logs[i])
        for place, i in enumerate(some)
        for j in some[place + 1 :]
        if logs[j] - logs[i] > 1e-6
    ]
    # More requests make a device slower, not faster: else it is the slow ones that get fewer.
    slope = max(statistics.median(slopes), 0.0) if slopes else 0.0
    return [value - slope * log for value, log in zip(values, logs, strict=True)]
