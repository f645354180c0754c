# SPDX-License-Identifier: MIT OR Apache-2.0
"""A sweep that is checked: its runs, each with the hash of what it is."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from blklab import _native
from blklab._job import Experiment, Job, experiment
from blklab._native import InputError
from blklab._scheduler import Scheduler
from blklab._sweep import _design
from blklab._sweep._factors import EXPERIMENT, Column, Factor
from blklab._sweep._point import RunOf, stack_of
from blklab._sweep._where import Condition, condition
from blklab._sweep._work import Batch, factor_columns

#: What a sweep's conditions are said in.
Where = str | Condition | Sequence[str | Condition] | None


@dataclass(frozen=True)
class Plan:
    """All that a sweep runs.

    Parameters
    ----------
    experiments : dict of str to Experiment
        By the name that the table has for each.
    factors : sequence of Factor
        What else varies, or is the same in all points.
    points : sequence of tuple
        Each the place of an experiment, and a value for each factor.
    seed : int
        Seed of the first repetition.
    repeat : int
        Repetitions of each point.
    repeat_exact : bool
        Whether repetitions draw the same random offsets where fio would.
    bins : bool
        Whether rows have the bins of their latencies.
    events : bool
        Whether the events of runs are looked at: for digests and the disks' metrics.
    order : str
        ``kind`` (what takes equally long together) or ``spread`` (each part of it is a fair
        one, for a budget).
    """

    experiments: Mapping[str, Experiment]
    factors: Sequence[Factor]
    points: Sequence[tuple[int, tuple[Any, ...]]]
    seed: int = 0
    repeat: int = 1
    repeat_exact: bool = False
    bins: bool = False
    events: bool = True
    order: str = "kind"

    @cached_property
    def names(self) -> list[str]:
        """The names of the experiments."""
        return list(self.experiments)

    @cached_property
    def columns(self) -> list[Column]:
        """The columns of the factors."""
        return [f.column for f in self.factors]

    @cached_property
    def _hashes(self) -> list[str]:
        return [_experiment_hash(e) for e in self.experiments.values()]

    def __len__(self) -> int:
        return len(self.points) * self.repeat

    @cached_property
    def _device(self) -> int | None:
        return next((i for i, f in enumerate(self.factors) if f.name == "device"), None)

    def kind(self, run: RunOf) -> Any:
        """What takes equally long: the same experiment on the same device."""
        return run.experiment, "" if self._device is None else str(run.values[self._device])

    def batch(self, file: str, runs: Sequence[RunOf]) -> Batch:
        """What goes to a worker for some runs."""
        used = {run.experiment for run in runs}
        sources = [e.source for e in self.experiments.values()]
        return Batch(
            file,
            {place: sources[place] for place in used},
            {place: self.names[place] for place in used},
            tuple(self.columns),
            tuple(runs),
            self.seed,
            self.repeat_exact,
            self.bins,
            self.events,
        )

    def describe(self) -> dict[str, Any]:
        """What must be the same in all runs of a folder."""
        described = {"columns": {c.name: c.kind for c in self.columns}, "bins": self.bins}
        return described if self.events else {**described, "events": False}

    def identity(self, runs: Sequence[RunOf]) -> dict[str, Any]:
        """Columns that tell runs apart."""
        return dict(factor_columns(self.columns, dict(enumerate(self.names)), runs, self.seed))

    def runs(self) -> Iterator[RunOf]:
        """The runs in the order in which they are begun."""
        points: Sequence[tuple[int, tuple[Any, ...]]] = self.points
        if self.order == "spread":
            points = sorted(points, key=lambda p: hashlib.sha256(repr(p).encode()).digest())
        device = self._device
        if self.order == "kind" and device is not None:
            points = sorted(points, key=lambda p: (p[0], str(p[1][device])))
        described = [self._described(place, values) for place, values in points]
        if self.order == "kind":
            for (place, values), text in zip(points, described, strict=True):
                for repetition in range(self.repeat):
                    yield RunOf(self._key(text, repetition), place, values, repetition)
            return
        for repetition in range(self.repeat):
            for (place, values), text in zip(points, described, strict=True):
                yield RunOf(self._key(text, repetition), place, values, repetition)

    def _described(self, place: int, values: tuple[Any, ...]) -> str:
        named = {f.name: v for f, v in zip(self.factors, values, strict=True)}
        chosen = stack_of(named)
        said = {key: value for key, value in chosen.items() if key not in ("seed", "repeat")}
        said["experiment"] = self._hashes[place]
        said["files"] = _files(named)
        said["version"] = _native.version
        return json.dumps(said, sort_keys=True, default=str)

    def _key(self, described: str, repetition: int) -> str:
        varied = repetition > 0 and not self.repeat_exact
        text = f"{described}\n{self.seed + repetition} {varied}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _experiment_hash(e: Experiment) -> str:
    digest = hashlib.sha256(e._native.text().encode())
    kind, *rest = e.source
    if kind == "trace":
        path = Path(rest[0])
        for part in sorted(path.parent.glob(f"{path.name}*")):
            if part.is_file():
                digest.update(part.read_bytes())
    return digest.hexdigest()


def _files(named: Mapping[str, Any]) -> list[str]:
    """Hashes of what values refer to: files that describe devices, schedulers in Python."""
    found = []
    for value in named.values():
        if isinstance(value, type) and issubclass(value, Scheduler):
            found.append(_source(value))
        elif isinstance(value, (str, os.PathLike)) and os.fspath(value).endswith(".toml"):
            path = Path(value)
            if path.is_file():
                found.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def _source(scheduler: type[Scheduler]) -> str:
    try:
        return f"{scheduler.__qualname__}\n{inspect.getsource(scheduler)}"
    except (OSError, TypeError):
        raise InputError(
            f"scheduler {scheduler.__name__}: a sweep needs it in a file, so that its runs are "
            "known again"
        ) from None


def named_experiments(jobs: Job | Sequence[Job] | Mapping[str, Job]) -> dict[str, Experiment]:
    """Experiments by name; equal names get a number."""
    if isinstance(jobs, Mapping) and not _is_job(jobs):
        return {str(name): experiment(job) for name, job in jobs.items()}
    listed: list[Any] = [jobs]
    if isinstance(jobs, Sequence) and not isinstance(jobs, str):
        listed = [*jobs]
    found: dict[str, Experiment] = {}
    for job in listed:
        each = experiment(job)
        name, number = each.id, 2
        while name in found:
            name, number = f"{each.id}-{number}", number + 1
        found[name] = each
    if not found:
        raise InputError("a sweep needs a job")
    return found


def _is_job(said: Mapping[str, Any]) -> bool:
    """Whether a mapping is a job (sections with options, or keys of an experiment file), not
    jobs by name."""
    if not said:
        return False
    values = list(said.values())
    if all(isinstance(v, Mapping) for v in values):
        # The options of a section are no mappings; the sections of a job are.
        return not all(v and all(isinstance(o, Mapping) for o in v.values()) for v in values)
    jobs = (str, os.PathLike, Experiment, Mapping)
    keys = ("job", "job_file", "processes", "scenario", "replay")
    return any(key in said for key in keys) or not all(isinstance(v, jobs) for v in values)


def conditions(where: Where, factors: Sequence[Factor]) -> list[Condition]:
    """The conditions that were said, as functions."""
    if where is None:
        return []
    said = [where] if isinstance(where, str) or callable(where) else list(where)
    names = [EXPERIMENT, *(f.name for f in factors)]
    return [each if callable(each) else condition(each, names) for each in said]


def plan(
    jobs: Job | Sequence[Job] | Mapping[str, Job],
    factors: Sequence[Factor],
    *,
    design: str = "grid",
    points: int | None = None,
    design_seed: int = 0,
    where: Where = None,
    seed: int | None = None,
    repeat: int = 1,
    repeat_exact: bool = False,
    bins: bool = False,
    events: bool = True,
    order: str = "kind",
) -> Plan:
    """A sweep, checked: its points are made, and a few of them planned."""
    if repeat < 1:
        raise InputError(f"repeat={repeat}: at least 1 run")
    if (seed or 0) < 0:
        raise InputError(f"seed={seed}: it is not negative")
    experiments = named_experiments(jobs)
    load = Factor(EXPERIMENT, tuple(experiments))
    made = _design.points(design, [load, *factors], points, design_seed, conditions(where, factors))
    if not made:
        raise InputError("where: no point fulfils the conditions")
    places = {name: place for place, name in enumerate(experiments)}
    planned = Plan(
        experiments,
        list(factors),
        [(places[name], tuple(values)) for name, *values in made],
        seed or 0,
        repeat,
        repeat_exact,
        bins,
        events,
        order,
    )
    _rehearse(planned)
    return planned


def _rehearse(planned: Plan) -> None:
    """Refuses what is wrong in the first, the middle and the last point: it is in all, then."""
    error: _native.BlklabError | None = None
    experiments = list(planned.experiments.values())
    number = len(planned.points)
    for place in sorted({0, number // 2, number - 1}):
        which, values = planned.points[place]
        named = {f.name: v for f, v in zip(planned.factors, values, strict=True)}
        chosen = stack_of(named, seed=planned.seed)
        try:
            _native.plan([experiments[which]._native], chosen)
            return
        except _native.BlklabError as e:
            error = error or e
    if error is not None:
        raise error
