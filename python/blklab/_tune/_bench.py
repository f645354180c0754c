# SPDX-License-Identifier: MIT OR Apache-2.0
"""Settings tried in all scenes, by the machinery of sweeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab._job import Experiment
from blklab._native import InputError
from blklab._sweep._executors import Pool
from blklab._sweep._factors import Factor
from blklab._sweep._plan import Plan
from blklab._sweep._results import Sweep
from blklab._sweep._run import carry_out
from blklab._tune._objective import Bound, Objective, Row
from blklab._tune._space import Setting, Space

#: A load on a device.
Scene = tuple[int, int]

#: What came of a setting: figures by scene, repetition and text of the figure.
Figures = dict[tuple[Scene, int], dict[str, float | None]]


@dataclass(frozen=True)
class Failed:
    """A run of a setting has failed, and what it says."""

    text: str

    def __str__(self) -> str:
        return self.text


class Bench:
    """Where settings are tried.

    Parameters
    ----------
    folder : path
        A folder of a sweep, whose runs are not run again.
    pool : Pool
        Where runs go.
    experiments : dict of str to Experiment
        The loads.
    fixed : sequence of Factor
        What is the same in all runs, one value each.
    devices : sequence
        The devices; None is what the experiment says.
    space : Space
        The knobs.
    figures : sequence of Objective
        What is asked of each run.
    """

    def __init__(
        self,
        folder: Path,
        pool: Pool,
        experiments: Mapping[str, Experiment],
        fixed: Sequence[Factor],
        devices: Sequence[Any],
        space: Space,
        figures: Sequence[Objective],
        progress: bool | None,
    ) -> None:
        self._folder = folder
        self._pool = pool
        self._experiments = dict(experiments)
        self._fixed = list(fixed)
        self._devices = list(devices)
        self._space = space
        self._figures = list(figures)
        self._progress = progress
        self._read: set[str] = set()
        self._rows: dict[str, list[Row]] = {}
        self.runs = 0
        self._factors = [*self._fixed, Factor("device", tuple(devices)), *space.factors()]

    def scenes(self, loads: Sequence[int] | None = None) -> list[Scene]:
        """Each load on each device."""
        places = range(len(self._experiments)) if loads is None else loads
        return [(load, device) for load in places for device in range(len(self._devices))]

    def scene_name(self, scene: Scene) -> str:
        """A scene in words."""
        load, device = scene
        name = list(self._experiments)[load]
        on = self._devices[device]
        return name if on is None else f"{name} on {on}"

    def figures(
        self, settings: Sequence[Setting], scenes: Sequence[Scene], seed: int, repeat: int
    ) -> list[Figures | Failed]:
        """What settings come to in scenes, each with so many seeds."""
        ways = [self._space.values(setting) for setting in settings]
        points = [(load, self._point(way, device)) for way in ways for load, device in scenes]
        plan = Plan(self._experiments, self._factors, points, seed, repeat)
        swept = carry_out(plan, self._folder, pool=self._pool, progress=self._progress)
        assert swept.tally is not None
        self.runs += swept.tally.done
        self._take(swept)
        failures: dict[str, str] = {}
        if swept.tally.failed or any(r.key not in self._rows for r in plan.runs()):
            failures = {row["key"]: f"{row['class']}: {row['text']}" for row in swept.failures}
        keys = {(run.experiment, run.values, run.repetition): run.key for run in plan.runs()}
        found: list[Figures | Failed] = []
        for way in ways:
            of_way: Figures = {}
            error = None
            for load, device in scenes:
                point = self._point(way, device)
                for repetition in range(repeat):
                    key = keys[load, point, repetition]
                    rows = self._rows.get(key)
                    if rows is None:
                        error = error or Failed(failures.get(key, "it has no rows"))
                        continue
                    figures = {f.text: f.value(rows) for f in self._figures}
                    of_way[(load, device), repetition] = figures
            found.append(error or of_way)
        return found

    def _point(self, way: Mapping[str, Any], device: int) -> tuple[Any, ...]:
        fixed = [f.choices[0] for f in self._fixed]
        return (*fixed, self._devices[device], *(way.get(key) for key in self._space.keys))

    def _take(self, swept: Sweep) -> None:
        """Reads the rows that are new."""
        import pyarrow.parquet as pq

        for path in swept.files:
            if path not in self._read:
                self._read.add(path)
                for row in pq.ParquetFile(path).read().to_pylist():
                    self._rows.setdefault(row["key"], []).append(row)


def cost(
    objective: Objective, figures: Figures, default: Figures, robust: str, repetition: int | None
) -> float:
    """How a figure compares with the default's, over scenes and repetitions: the logarithm of
    how many times worse it is. ``robust`` takes the worst scene, or the mean of all."""
    scenes: dict[Scene, list[float]] = {}
    for (scene, number), values in figures.items():
        if repetition is not None and number != repetition:
            continue
        mine, theirs = values[objective.text], default[scene, number][objective.text]
        if theirs is None:
            raise InputError(f"goal {objective.text!r}: nobody in the job has such a figure")
        if mine is None or mine <= 0 or theirs <= 0:
            # Nothing came through at all.
            ratio = math.inf if mine != theirs else 1.0
        else:
            ratio = theirs / mine if objective.higher else mine / theirs
        scenes.setdefault(scene, []).append(math.log(ratio))
    means = [math.fsum(logs) / len(logs) for logs in scenes.values()]
    return max(means) if robust == "worst" else math.fsum(means) / len(means)


def excess(bound: Bound, figures: Figures, default: Figures) -> float:
    """How far a bound is exceeded in the worst scene, on the mean of its repetitions."""
    scenes: dict[Scene, list[float]] = {}
    for (scene, number), values in figures.items():
        mine, theirs = values[bound.objective.text], default[scene, number][bound.objective.text]
        scenes.setdefault(scene, []).append(bound.excess(mine, theirs))
    return max(sum(each) / len(each) for each in scenes.values())
