# SPDX-License-Identifier: MIT OR Apache-2.0
"""``blklab.tune``: what is to become better, with which knobs, and how sure it is."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from typing import Any

from blklab._native import InputError
from blklab._sweep._executors import Pool
from blklab._sweep._factors import factor, factors
from blklab._sweep._intervals import corrected, interval
from blklab._sweep._plan import named_experiments
from blklab._sweep._run import Jobs
from blklab._tune._bench import Bench, Failed, Figures, Scene, cost, excess
from blklab._tune._objective import Objective, bound, objective
from blklab._tune._paste import paste
from blklab._tune._search import Search, front, importances, sobol
from blklab._tune._space import Setting, Space
from blklab._tune._tuned import Gain, Tried, Tuned

#: Settings that are tried on what was held out.
_FINALISTS = 4

#: Seeds that are held out begin so far behind those of the search.
_HELD_OUT_SEED = 1_000_000


def tune(
    job: Jobs,
    goals: str | Sequence[str],
    *,
    keep: str | Sequence[str] = (),
    knobs: Mapping[str, Any] | None = None,
    held_out: Jobs | None = None,
    kernel: str | None = None,
    device: Any = None,
    fs: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 -- the command's name
    memory: str | None = None,
    target: str | None = None,
    robust: str = "worst",
    trials: int = 100,
    batch: int | None = None,
    repeat: int = 2,
    confirm: int = 8,
    seed: int = 0,
    sampler: str = "default",
    sobol_samples: int = 0,
    disk: str = "sda",
    out: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Looks for settings that make several figures better at once, and says whether they do.

    Each trial runs with all jobs, on all devices, with several seeds, and counts by how many
    times each figure is better than with the default in the same place: in the worst of them, or
    on the mean. The best settings, without the knobs that make no difference in them, are run
    again with seeds and loads that the search has not seen. The answer is surely better in one
    goal and surely worse in none; often that is *leave it as it is*.

    Parameters
    ----------
    job : job, list of jobs, or dict of jobs by name
        The loads of the search.
    goals : str or sequence of str
        Figures, as ``blklab recommend`` takes them: ``"read p99 of db"``, ``"bandwidth of
        backup"``; ``"worst read p99"`` is that of the job that is worst off, ``"fairness
        bandwidth"`` how evenly jobs have it (Jain's index).
    keep : str or sequence of str
        Bounds: ``"bandwidth of backup >= 80 %"`` of the default's, ``"read p99 of web <=
        10ms"``. A goal with a bound may get worse that far.
    knobs : dict, optional
        Values or ranges by name: ``sched``, settings, tunables behind their scheduler
        (``"mq-deadline.fifo_batch"``); the usual ones of the kernel otherwise. A range of
        numbers in a text has ``"text": "rbps={}"``.
    held_out : jobs, optional
        Loads that only the finalists run with, too.
    kernel, fs, set, memory, target : optional
        What is the same everywhere, as :func:`blklab.run` takes it.
    device : optional
        One, or a list: all count.
    robust : {'worst', 'mean'}
        How loads and devices count together.
    trials : int, default 100
        Settings that are tried.
    batch : int, optional
        How many of them at a time; the search learns after each batch. Twice the workers
        otherwise.
    repeat, confirm : int
        Seeds of the search, and of the finalists.
    seed : int
        Of the search itself, and the first of the runs.
    sampler : {'default', 'gp'}
        Optuna's default, or its Gaussian process, which needs torch.
    sobol_samples : int, default 0
        A power of two asks for Sobol's indices of the knobs by so many times (knobs + 2) runs
        in each scene.
    disk : str
        The name of the disk in what is to be pasted.
    out : path, optional
        A folder that keeps all runs, so that a search that was interrupted goes on quickly.
    executor, workers, progress
        As of :func:`blklab.sweep`.

    Returns
    -------
    Tuned
    """
    began = time.monotonic()
    texts = [goals] if isinstance(goals, str) else list(goals)
    aims = [objective(text) for text in texts]
    bounds = [bound(text) for text in ([keep] if isinstance(keep, str) else keep)]
    _check(aims, robust, trials, repeat, confirm, sobol_samples)
    space = Space(knobs, kernel)
    said = {"kernel": kernel, "fs": fs, "memory": memory, "target": target}
    fixed = factors(said, set or {})
    for each in fixed:
        if each.varies:
            raise InputError(f"{each.name}: one value; what is to be tried is a knob")
        if each.name in space.keys:
            raise InputError(f"{each.name}: it is set, and a knob; it is one of both")
    searched = named_experiments(job)
    held = {} if held_out is None else named_experiments(held_out)
    both = [name for name in held if name in searched]
    held = {(f"{name} (held out)" if name in both else name): e for name, e in held.items()}
    devices = [None] if device is None else [*factor("device", device).choices]
    figures: dict[str, Objective] = {f.text: f for f in [*aims, *(b.objective for b in bounds)]}
    with ExitStack() as stack:
        folder = Path(out or stack.enter_context(tempfile.TemporaryDirectory(prefix="blklab-")))
        pool = Pool(executor, workers)
        stack.callback(pool.close)
        bench = Bench(
            folder,
            pool,
            {**searched, **held},
            fixed,
            devices,
            space,
            [*figures.values()],
            progress,
        )
        scenes = bench.scenes(range(len(searched)))
        search = Search(bench, space, aims, bounds, scenes, robust, seed, repeat)
        study = search.study(trials, batch or 2 * pool.workers, sampler, seed)
        best = front(study)
        shares = importances(study, aims, any(k.scheduler for k in space.knobs))
        indices = sobol(search, sobol_samples, seed) if sobol_samples else []
        finalists = _finalists(search, [dict(t.params) for t in best])
        confirmed = _confirmed(search, finalists, bench.scenes(), seed + _HELD_OUT_SEED, confirm)
        runs = bench.runs
    answer = _answer(confirmed, [b.objective.text for b in bounds])
    evidence = [str(gain) for gain in answer.gains] if answer else []
    return Tuned(
        goals=texts,
        answer=answer,
        paste=paste(answer.values, kernel, disk, evidence) if answer else "",
        confirmed=confirmed,
        study=study,
        importance_rows=shares,
        sobol_rows=indices,
        front_rows=[
            {"what": space.what(t.params)}
            | {text: math.exp(-v) for text, v in zip(texts, t.values, strict=True)}
            for t in best
        ],
        runs=runs,
        seconds=time.monotonic() - began,
        notes=_notes(search, len(scenes), runs, confirm, bool(held)),
    )


def _check(
    aims: Sequence[Objective],
    robust: str,
    trials: int,
    repeat: int,
    confirm: int,
    sobol_samples: int,
) -> None:
    if not aims:
        raise InputError("goals: there is none")
    if len({aim.text for aim in aims}) < len(aims):
        raise InputError("goals: one stands there twice")
    if robust not in ("worst", "mean"):
        raise InputError(f"robust={robust!r}: there are worst, mean")
    for name, value, least in (
        ("trials", trials, 1),
        ("repeat", repeat, 1),
        ("confirm", confirm, 3),
    ):
        if value < least:
            raise InputError(f"{name}={value}: at least {least}")
    if sobol_samples < 0 or sobol_samples & (sobol_samples - 1):
        raise InputError(f"sobol_samples={sobol_samples}: a power of two")


def _finalists(search: Search, best: Sequence[Setting]) -> list[dict[str, Any]]:
    """The settings of the front that are best in each goal and in all together, without what
    makes no difference in them."""
    if not best:
        return []
    tried = search.tried(best)
    good = [
        (setting, search.costs(figures))
        for setting, figures in zip(best, tried, strict=True)
        if not isinstance(figures, Failed)
    ]
    orders: list[Callable[[list[float]], float]] = [math.fsum]
    orders += [itemgetter(place) for place in range(len(search.goals))]
    orders.append(max)
    chosen: list[Setting] = []
    for order in orders:
        scores = [order(costs) for _, costs in good]
        setting = good[scores.index(min(scores))][0]
        if setting not in chosen:
            chosen.append(setting)
    simple: list[dict[str, Any]] = []
    for setting in chosen[:_FINALISTS]:
        less = search.simplified(setting)
        if less and less not in simple:
            simple.append(less)
    return simple


def _confirmed(
    search: Search, settings: Sequence[Setting], scenes: Sequence[Scene], seed: int, repeat: int
) -> list[Tried]:
    """Settings on held-out seeds and loads, the best first."""
    if not settings:
        return []
    default, *others = search.bench.figures([{}, *settings], scenes, seed, repeat)
    if isinstance(default, Failed):
        raise InputError(f"held out: as it is, it does not run: {default}")
    level = corrected(0.95, len(settings) * len(search.goals))
    found = []
    for setting, figures in zip(settings, others, strict=True):
        if isinstance(figures, Failed):
            search.failures.append(f"{search.space.what(setting)}: {figures}")
            continue
        gains = [_gain(search, goal, figures, default, repeat, level) for goal in search.goals]
        broken = [b.text for b in search.bounds if excess(b, figures, default) > 0]
        tried = Tried(
            search.space.what(setting), setting, search.space.values(setting), gains, broken
        )
        found.append((math.fsum(-math.log(g.better) for g in gains), tried))
    return [tried for _, tried in sorted(found, key=lambda pair: pair[0])]


def _gain(
    search: Search, goal: Objective, figures: Figures, default: Figures, repeat: int, level: float
) -> Gain:
    """What a setting does to a goal.

    If the worst scene counts, the figures are those of that one. It is surely better if it is
    in each scene, which takes no correction for their number; surely worse if it is in some,
    which does.
    """
    scenes = sorted({scene for scene, _ in figures})

    def only(of: Figures, scene: Scene) -> Figures:
        return {key: values for key, values in of.items() if key[0] == scene}

    def logs(some: Figures) -> list[float]:
        return [cost(goal, some, default, search.robust, r) for r in range(repeat)]

    def mean_of(of: Figures) -> float | None:
        there = [v for values in of.values() if (v := values[goal.text]) is not None]
        return sum(there) / len(there) if there else None

    by_scene = {scene: logs(only(figures, scene)) for scene in scenes}
    worst = max(scenes, key=lambda scene: math.fsum(by_scene[scene]))
    if search.robust == "worst":
        mean, _, _ = interval(by_scene[worst])
        most = max(interval(each, level)[2] or 0.0 for each in by_scene.values())
        strict = 1 - (1 - level) / len(scenes)
        least = max(interval(each, strict)[1] or 0.0 for each in by_scene.values())
    else:
        mean, low, high = interval(logs(figures), level)
        least, most = low or 0.0, high or 0.0
    return Gain(
        goal.text,
        goal.shown(mean_of(only(default, worst))),
        goal.shown(mean_of(only(figures, worst))),
        search.bench.scene_name(worst),
        math.exp(-mean),
        math.exp(-most),
        math.exp(-least),
    )


def _answer(confirmed: Sequence[Tried], bounded: Sequence[str]) -> Tried | None:
    """The first that is surely better in a goal and surely worse in none that has no bound."""
    for tried in confirmed:
        verdicts = {gain.goal: gain.verdict for gain in tried.gains}
        worse = [g for g, v in verdicts.items() if v == "worse" and g not in bounded]
        if "better" in verdicts.values() and not worse and not tried.broken:
            return tried
    return None


def _notes(search: Search, scenes: int, runs: int, confirm: int, held: bool) -> list[str]:
    places = "one load on one device"
    if scenes > 1:
        which = "the worst of them counts, and its figures are shown"
        if search.robust == "mean":
            which = "their mean counts; the figures are those of the one that gains least"
        places = f"{scenes} loads on devices: {which}"
    notes = [
        f"{runs} runs in the models; searched with {places}",
        f"intervals are of {confirm} seeds that were not searched with, corrected for the number "
        "of finalists and goals" + ("; loads were held out, too" if held else ""),
    ]
    if search.failures:
        notes.append(f"did not run: {len(search.failures)} settings, such as {search.failures[0]}")
    return notes
