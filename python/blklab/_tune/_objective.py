# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is to become better, and what must not become worse, in the words of ``blklab
recommend``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab._native import InputError

#: A row of a sweep's table.
Row = Mapping[str, Any]

_COLUMNS = {
    "p50": "clat_p50_ns",
    "p95": "clat_p95_ns",
    "p99": "clat_p99_ns",
    "p99.9": "clat_p999_ns",
    "max": "clat_max_ns",
    "mean": "clat_mean_ns",
    "bandwidth": "bandwidth_bytes_per_s",
    "iops": "iops",
    "runtime": "runt_max_ms",
}

#: Sums over directions make sense of these.
_RATES = ("bandwidth", "iops")

_GRAMMAR = (
    "[worst|fairness] [read|write|trim|sync] "
    "p50|p95|p99|p99.9|max|mean|bandwidth|iops|runtime [of JOB]"
)

_OBJECTIVE = re.compile(
    r"(?:(?P<over>worst|fairness)\s+)?"
    r"(?:(?P<direction>read|write|trim|sync|fsync|fdatasync)\s+)?"
    r"(?P<figure>p50|p95|p99\.9|p99|max|mean|bandwidth|iops|runtime)"
    r"(?:\s+of\s+(?P<job>.+))?"
)

_BOUND = re.compile(
    r"(?P<objective>.+?)\s*(?P<sign><=|>=)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|[a-z]*)"
)

_UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Objective:
    """A figure of a run.

    Parameters
    ----------
    text : str
        As it was said.
    figure : str
        Which: p99, bandwidth.
    direction : str, optional
        Of reads, writes, trims or syncs alone.
    job : str, optional
        Whose.
    over : str, optional
        ``worst``: of the job that is worst off; ``fairness``: how evenly jobs have it, Jain's
        index, 1 if all have the same.
    """

    text: str
    figure: str
    direction: str | None = None
    job: str | None = None
    over: str | None = None

    @property
    def higher(self) -> bool:
        """Whether more of it is better."""
        return self.over == "fairness" or self.figure in _RATES

    def value(self, rows: Sequence[Row]) -> float | None:
        """The figure of a run's rows, in the unit of its column; None if nobody has it."""
        jobs = sorted({row["job"] for row in rows if row["level"] != "group"}, key=str)
        if self.job is not None:
            jobs = [job for job in jobs if job == self.job]
        values = [self._of([r for r in rows if r["job"] == job]) for job in jobs]
        found = [value for value in values if value is not None]
        if not found:
            return None
        if self.over == "fairness":
            squares = sum(v * v for v in found)
            return sum(found) ** 2 / (len(found) * squares) if squares else None
        return min(found) if self.higher else max(found)

    def _of(self, rows: Iterable[Row]) -> float | None:
        column = _COLUMNS[self.figure]
        mine = [
            row
            for row in rows
            if row["level"] != "group"
            and row[column] is not None
            and (self.direction is None or row["direction"] == self.direction)
        ]
        if not mine:
            return None
        if self.figure in _RATES:
            return float(sum(row[column] for row in mine if row["direction"] != "sync"))
        if self.figure == "runtime":
            return float(max(row[column] for row in mine))
        syncs = [row for row in mine if row["direction"] == "sync"]
        most = max(syncs or mine, key=lambda row: row["ios"] or 0)
        return float(most[column])

    def shown(self, value: float | None) -> str:
        """A value with its unit."""
        if value is None:
            return "-"
        if self.over == "fairness":
            return f"{value:.3f}"
        if self.figure == "bandwidth":
            return f"{value / 1e6:.3g} MB/s"
        if self.figure == "iops":
            return f"{value:.3g}/s"
        nanoseconds = value * 1e6 if self.figure == "runtime" else value
        for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
            if nanoseconds >= size:
                return f"{nanoseconds / size:.3g} {unit}"
        return f"{nanoseconds:.3g} ns"


def objective(text: str) -> Objective:
    """The figure that a text names.

    Examples
    --------
    >>> objective("read p99 of db").job
    'db'
    >>> objective("fairness bandwidth").higher
    True
    """
    said = _OBJECTIVE.fullmatch(text.strip())
    if said is None:
        raise InputError(f"goal {text!r}: write {_GRAMMAR}")
    direction = said["direction"]
    if direction in ("fsync", "fdatasync"):
        direction = "sync"
    return Objective(text.strip(), said["figure"], direction, said["job"], said["over"])


@dataclass(frozen=True)
class Bound:
    """What a figure must keep.

    Parameters
    ----------
    text : str
        As it was said.
    objective : Objective
        Which figure.
    least : bool
        Whether it is to be at least, or at most, the number.
    number : float
        The number, in the unit of the figure, or a share of what the figure is by default.
    share : bool
        Which of both.
    """

    text: str
    objective: Objective
    least: bool
    number: float
    share: bool

    def excess(self, value: float | None, default: float | None) -> float:
        """How far a value is beyond the bound, as a share of it: 0 or less is kept."""
        if value is None:
            return 1.0
        limit = self.number
        if self.share:
            if default is None:
                return 1.0
            limit *= default
        if not limit:
            return 0.0 if self.least else float(value > 0)
        return (limit - value) / limit if self.least else (value - limit) / limit


def bound(text: str) -> Bound:
    """The bound that a text says: ``bandwidth of backup >= 80 %``, ``read p99 of web <= 10ms``.

    Examples
    --------
    >>> bound("bandwidth of backup >= 80 %").excess(60.0, 100.0)
    0.25
    """
    said = _BOUND.fullmatch(text.strip())
    if said is None or (said["unit"] != "%" and said["unit"] not in _UNITS):
        raise InputError(
            f"keep {text!r}: write FIGURE >= NUMBER, or <=, with a unit (%, ms, m): "
            "'bandwidth of backup >= 80 %'"
        )
    figure = objective(said["objective"])
    number = float(said["number"])
    if said["unit"] == "%":
        return Bound(text.strip(), figure, said["sign"] == ">=", number / 100, True)
    number *= _UNITS[said["unit"]]
    if figure.figure == "runtime":
        number /= 1e6
    return Bound(text.strip(), figure, said["sign"] == ">=", number, False)
