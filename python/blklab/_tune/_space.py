# SPDX-License-Identifier: MIT OR Apache-2.0
"""The knobs: what may be set, in which range, and where it is pasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blklab import list as lists
from blklab._native import InputError
from blklab._sweep._factors import Factor, Range, factor, shown

if TYPE_CHECKING:
    import optuna

#: Knobs that are tried unless others are named: what an expert would, in ranges that make sense.
_USUAL: dict[str, Any] = {
    "nr_requests": {"low": 8, "high": 1024, "log": True},
    "wbt_lat_usec": [0, 500, 2000, 10000, 75000],
    "max_sectors_kb": [64, 128, 256, 512, 1280],
    "mq-deadline.read_expire": {"low": 5, "high": 5000, "log": True},
    "mq-deadline.write_expire": {"low": 50, "high": 50000, "log": True},
    "mq-deadline.fifo_batch": {"low": 1, "high": 64, "log": True},
    "mq-deadline.writes_starved": {"low": 1, "high": 8},
    "mq-deadline.async_depth": {"low": 1, "high": 64, "log": True},
    "kyber.read_lat_nsec": {"low": 100_000, "high": 20_000_000, "log": True},
    "kyber.write_lat_nsec": {"low": 500_000, "high": 100_000_000, "log": True},
    "bfq.slice_idle": [0, 2, 8],
    "bfq.low_latency": [0, 1],
    "bfq.fifo_expire_sync": {"low": 10, "high": 1000, "log": True},
    "bfq.timeout_sync": {"low": 10, "high": 500, "log": True},
    "deadline.read_expire": {"low": 5, "high": 5000, "log": True},
    "deadline.write_expire": {"low": 50, "high": 50000, "log": True},
    "deadline.fifo_batch": {"low": 1, "high": 64, "log": True},
    "deadline.writes_starved": {"low": 1, "high": 8},
    "anticipatory.antic_expire": {"low": 1, "high": 50, "log": True},
    "cfq.quantum": {"low": 1, "high": 32, "log": True},
    "cfq.slice_idle": [0, 2, 8],
    "cfq.slice_sync": {"low": 10, "high": 500, "log": True},
}


@dataclass(frozen=True)
class Knob:
    """Something that may be set.

    Parameters
    ----------
    name : str
        As people know it: ``nr_requests``, ``mq-deadline.fifo_batch``, ``sched``.
    key : str
        The setting, or ``sched``.
    factor : Factor
        Its values.
    scheduler : str, optional
        Whose tunable it is.
    text : str, optional
        What is written, with {} for the number: ``rbps={}``.
    """

    name: str
    key: str
    factor: Factor
    scheduler: str | None = None
    text: str | None = None

    def suggest(self, trial: optuna.Trial) -> Any:
        """A value that the sampler wants to try."""
        range_ = self.factor.range
        if range_ is None:
            return trial.suggest_categorical(self.name, list(self.factor.choices))
        if range_.integer:
            return trial.suggest_int(self.name, int(range_.low), int(range_.high), log=range_.log)
        return trial.suggest_float(self.name, range_.low, range_.high, log=range_.log)

    def written(self, value: Any) -> Any:
        """What is set for a value."""
        return value if self.text is None else self.text.replace("{}", str(value))


#: Values by the name of their knob.
Setting = Mapping[str, Any]


class Space:
    """All knobs.

    Parameters
    ----------
    knobs : mapping, optional
        Values or ranges by name: ``sched``, a setting, or a tunable behind its scheduler's name,
        which is set where that scheduler is chosen. A range of a text has ``text``, with {} for
        the number. The usual ones of the kernel otherwise.
    kernel : str, optional
        The kernel whose schedulers and tunables there are.
    """

    def __init__(self, knobs: Mapping[str, Any] | None, kernel: str | None) -> None:
        # A distribution's kernel is checked with the runs.
        known = kernel if kernel and kernel[0].isdigit() else None
        schedulers = [entry["name"] for entry in lists.schedulers(known or "7.3")]
        every = [entry["name"] for entry in lists.schedulers()]
        if knobs is None:
            there = {entry["name"] for entry in lists.tunables(known or "7.3")}
            usual = {
                name: said
                for name, said in _USUAL.items()
                if name.replace(".", "/") in there or f"queue/{name}" in there
            }
            knobs = {"sched": schedulers, **usual}
        if not knobs:
            raise InputError("knobs: none is there to turn")
        self.knobs = [_knob(name, said, every) for name, said in knobs.items()]
        # The scheduler is chosen first: others are its tunables.
        self.knobs.sort(key=lambda knob: knob.key != "sched")
        chosen = next((k for k in self.knobs if k.key == "sched"), None)
        offered = [shown(v) for v in chosen.factor.choices] if chosen else []
        for knob in self.knobs:
            if knob.scheduler and knob.scheduler not in offered:
                raise InputError(
                    f"knob {knob.name}: sched is a knob, too, then, with {knob.scheduler} among "
                    "its values"
                )

    @property
    def keys(self) -> list[str]:
        """The settings that some knob sets, in order."""
        return list(dict.fromkeys(knob.key for knob in self.knobs))

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """What the sampler wants to try."""
        found: dict[str, Any] = {}
        for knob in self.knobs:
            if knob.scheduler in (None, found.get("sched")):
                found[knob.name] = knob.suggest(trial)
        return found

    def values(self, setting: Setting) -> dict[str, Any]:
        """What is set, by key."""
        return {
            knob.key: knob.written(setting[knob.name])
            for knob in self.knobs
            if knob.name in setting and knob.scheduler in (None, setting.get("sched"))
        }

    def at(self, shares: Sequence[float]) -> dict[str, Any]:
        """The setting at a share of each knob's way."""
        found: dict[str, Any] = {}
        for knob, share in zip(self.knobs, shares, strict=True):
            if knob.scheduler in (None, found.get("sched")):
                found[knob.name] = knob.factor.at(share)
        return found

    def factors(self) -> list[Factor]:
        """Columns of the settings for a sweep's table."""
        found = []
        for key in self.keys:
            mine = [knob for knob in self.knobs if knob.key == key]
            columns = {"text" if k.text else k.factor.column.kind for k in mine}
            kind = columns.pop() if len(columns) == 1 else "text"
            example: dict[str, Any] = {"int": 0, "float": 0.0, "text": ""}
            found.append(Factor(key, (example[kind],)))
        return found

    def what(self, setting: Setting) -> str:
        """A setting in words."""
        values = self.values(setting)
        parts = [f"scheduler {shown(values['sched'])}"] if "sched" in values else []
        parts += [f"{key}={shown(v)}" for key, v in values.items() if key != "sched"]
        return ", ".join(parts) or "nothing"


def _knob(name: str, said: Any, schedulers: Sequence[str]) -> Knob:
    text = None
    if isinstance(said, Mapping) and "text" in said:
        text = said["text"]
        if not isinstance(text, str) or text.count("{}") < 1:
            raise InputError(f"knob {name}: text has {{}} where the number goes")
        said = {key: value for key, value in said.items() if key != "text"}
    made = factor(name, said)
    before, dot, after = name.partition(".")
    if isinstance(made.range, Range) or made.choices:
        scheduler = before if dot and before in schedulers else None
        return Knob(name, after if scheduler else name, made, scheduler, text)
    raise InputError(f"knob {name}: it has no values")
