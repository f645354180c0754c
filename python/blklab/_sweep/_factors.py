# SPDX-License-Identifier: MIT OR Apache-2.0
"""What varies in a sweep: factors with their values or their range."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab._native import InputError
from blklab._scheduler import Scheduler

#: Keywords of :func:`blklab.matrix` that take values; what else a factor names is a setting.
KEYWORDS = (
    "kernel",
    "sched",
    "device",
    "fs",
    "md",
    "dm",
    "memory",
    "patch",
    "target",
    "section",
)

#: What the table of a sweep calls the job file or experiment.
EXPERIMENT = "experiment"

#: Columns that are the sweep's own.
_RESERVED = ("key", EXPERIMENT, "repetition", "seed")


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, which are among them.

    Parameters
    ----------
    low, high : number
        The bounds.
    log : bool
        Equal steps are equal ratios.
    integer : bool
        Whole numbers only.
    steps : int, optional
        How many values a grid takes.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False
    steps: int | None = None

    def at(self, share: float) -> float | int:
        """The number at a share of the way, from 0 to 1."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            value = math.exp(low + (high - low) * share)
        else:
            value = self.low + (self.high - self.low) * share
        value = min(max(value, self.low), self.high)
        return round(value) if self.integer else value

    def values(self, name: str) -> list[Any]:
        """Its steps, for a grid."""
        if self.steps is None:
            raise InputError(
                f"factor {name}: a grid needs a list of values, or a range with steps; "
                "the other designs take ranges as they are"
            )
        last = max(self.steps - 1, 1)
        return list(dict.fromkeys(self.at(i / last) for i in range(self.steps)))


@dataclass(frozen=True)
class Column:
    """The name of a factor, and the type of its values: int, float or text."""

    name: str
    kind: str

    def cell(self, value: Any) -> Any:
        """A value as its column has it."""
        if value is None:
            return None
        if self.kind == "text":
            return shown(value)
        return float(value) if self.kind == "float" else int(value)


@dataclass(frozen=True)
class Factor:
    """Something that varies: choices, or a range."""

    name: str
    choices: tuple[Any, ...] = ()
    range: Range | None = None

    @property
    def varies(self) -> bool:
        """Whether it has more than one value."""
        return self.range is not None or len(self.choices) > 1

    def at(self, share: float) -> Any:
        """The value at a share of the way, from 0 to 1."""
        if self.range is not None:
            return self.range.at(share)
        return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]

    def values(self) -> list[Any]:
        """All values, for a grid."""
        return self.range.values(self.name) if self.range else list(self.choices)

    @property
    def column(self) -> Column:
        """The column that its values stand in."""
        if self.range is not None:
            return Column(self.name, "int" if self.range.integer else "float")
        if all(isinstance(v, int) for v in self.choices):
            return Column(self.name, "int")
        if all(isinstance(v, (int, float)) for v in self.choices):
            return Column(self.name, "float")
        return Column(self.name, "text")


def shown(value: Any) -> str:
    """A value as a text, the same in each process."""
    if isinstance(value, type) and issubclass(value, Scheduler):
        return str(value.name or value.__name__)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        name, params = value
        return ",".join([str(name), *(f"{key}={text}" for key, text in params.items())])
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return "+".join(shown(v) for v in value)
    return str(value)


def factor(name: str, said: Any) -> Factor:
    """The factor of what was said of it: a value, a list, Python's range, or a mapping with
    ``low`` and ``high``."""
    if isinstance(said, Range):
        return Factor(name, range=_checked(name, said))
    if isinstance(said, Mapping):
        return Factor(name, range=_range(name, said))
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[1], Mapping):
        # A pair of a name and parameters is one device.
        return Factor(name, (said,))
    if isinstance(said, (str, bytes, os.PathLike, type)) or not isinstance(said, Iterable):
        return Factor(name, (said,))
    choices = tuple(said)
    if not choices:
        raise InputError(f"factor {name}: an empty list has no value to run with")
    texts = [shown(choice) for choice in choices]
    for place, text in enumerate(texts):
        if text in texts[:place]:
            raise InputError(f"factor {name}: {text} stands in it twice")
    return Factor(name, choices)


def _range(name: str, said: Mapping[str, Any]) -> Range:
    known = ("low", "high", "log", "integer", "steps")
    unknown = [key for key in said if key not in known]
    if unknown or "low" not in said or "high" not in said:
        what = f"'{unknown[0]}' is no key of a range" if unknown else "a range has two bounds"
        raise InputError(f"factor {name}: {what}: low, high, and perhaps log, integer, steps")
    low, high = said["low"], said["high"]
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise InputError(f"factor {name}: the bound {bound!r} is no number")
    whole = isinstance(low, int) and isinstance(high, int)
    return _checked(
        name,
        Range(
            low,
            high,
            log=bool(said.get("log", False)),
            integer=bool(said.get("integer", whole)),
            steps=said.get("steps"),
        ),
    )


def _checked(name: str, range_: Range) -> Range:
    if not (math.isfinite(range_.low) and math.isfinite(range_.high)):
        raise InputError(f"factor {name}: bounds are finite numbers")
    if range_.low >= range_.high:
        raise InputError(f"factor {name}: low={range_.low} is not below high={range_.high}")
    if range_.log and range_.low <= 0:
        raise InputError(f"factor {name}: a logarithmic range begins above 0")
    if range_.steps is not None and (not isinstance(range_.steps, int) or range_.steps < 2):
        raise InputError(f"factor {name}: steps={range_.steps!r}: a whole number from 2 on")
    return range_


def factors(keywords: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Factor]:
    """The factors of keywords and of settings; None leaves what the experiment says."""
    found = []
    for name, said in keywords.items():
        if name not in KEYWORDS:
            known = ", ".join(KEYWORDS)
            raise InputError(f"'{name}' is no factor: there are {known}; others are below set")
        if said is not None:
            found.append(factor(name, said))
    for name, said in settings.items():
        if said is not None:
            found.append(factor(name, said))
    names: Sequence[str] = [f.name for f in found]
    for place, name in enumerate(names):
        if name in _RESERVED:
            raise InputError(f"set: {name} is a keyword of the sweep, not a factor")
        if name in names[:place]:
            raise InputError(f"factor {name}: it is there twice")
    return found
