# SPDX-License-Identifier: MIT OR Apache-2.0
"""``blklab.sweep``: what is swept, where, and how much of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from blklab._job import Job
from blklab._native import InputError
from blklab._stack import Values
from blklab._sweep._driver import Driver
from blklab._sweep._executors import Pool
from blklab._sweep._factors import factors
from blklab._sweep._plan import Plan, Where, plan
from blklab._sweep._results import Sweep
from blklab._sweep._store import Store

#: Jobs: one, several, or several by name.
Jobs = Job | Sequence[Job] | Mapping[str, Job]


def sweep(
    job: Jobs,
    *,
    out: str | os.PathLike[str],
    kernel: Values = None,
    sched: Values = None,
    device: Values = None,
    fs: Values = None,
    set: Mapping[str, Values] | None = None,  # noqa: A002 -- the command's name
    md: Values = None,
    dm: Values = None,
    memory: Values = None,
    patch: Values = None,
    target: Values = None,
    section: Values = None,
    seed: int | None = None,
    repeat: int = 1,
    repeat_exact: bool = False,
    design: str = "grid",
    points: int | None = None,
    design_seed: int = 0,
    where: Where = None,
    bins: bool = False,
    events: bool = True,
    budget_runs: int | None = None,
    budget_seconds: float | None = None,
    shard: tuple[int, int] | str | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    batch_seconds: float = 2.0,
    progress: bool | None = None,
) -> Sweep:
    """Runs the points of a design, and keeps their metrics in a folder of Parquet files.

    A run that the folder has is not run again: a sweep that was interrupted goes on where it
    was, and a larger one adds what is missing. A run that fails is kept as a failure with its
    reason, and the others go on.

    Parameters
    ----------
    job : job, list of jobs, or dict of jobs by name
        What runs; each as :func:`blklab.run` takes it.
    out : path
        The folder. It is made if it is not there.
    kernel, sched, device, fs, md, dm, memory, patch, target, section : optional
        Factors: as :func:`blklab.run` takes them, a value or a list.
    set : dict, optional
        Settings, each a factor: a value, a list, or a range (``{"low": 16, "high": 1024, "log":
        True}``; ``integer`` and, for a grid, ``steps``).
    seed : int, optional
        Seed of the first repetition, 0.
    repeat : int, default 1
        Repetitions of each point, with the seeds that follow.
    repeat_exact : bool, default False
        Repetitions draw the same random offsets where fio would.
    design : {'grid', 'latin-hypercube', 'sobol', 'random'}
        All combinations, or ``points`` that are drawn with ``design_seed``.
    where : str, callable, or list of these, optional
        What each point must fulfil: ``"sched != 'none' or nr_requests <= 64"``, or a function
        that takes a dictionary of the factors. The experiment's name is ``experiment``.
    bins : bool, default False
        Rows have fio's bins of completion latency (``clat_bins``), for
        :meth:`Sweep.percentiles`.
    events : bool, default True
        False for the metrics of jobs alone, which takes half the time: rows have neither a
        digest nor metrics of the disks.
    budget_runs, budget_seconds : optional
        At most so many runs, or seconds of wall time. The runs are then begun in an order in
        which each part of them is a fair one.
    shard : (int, int) or str, optional
        Only this part of the runs, ``(1, 4)`` or ``"1/4"``: which, their hashes say. Each
        shard has a folder of its own; ``Sweep(*folders)`` has all of them.
    executor : concurrent.futures.Executor, optional
        Where to run: a thread pool, ``client.get_executor()`` of Dask, any other. Its workers
        see the folder under the same path. Processes of this machine otherwise.
    workers : int, optional
        How many run at a time; as many as the executor has, or as there are cores.
    batch_seconds : float, default 2.0
        What a worker gets at a time is worth so many seconds.
    progress : bool, optional
        A line on standard error that tells how far it is; where that is a terminal otherwise.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        If something is wrong in all points, or another sweep writes to the folder.
    """
    planned = plan(
        job,
        factors(
            {
                "kernel": kernel,
                "sched": sched,
                "device": device,
                "fs": fs,
                "md": md,
                "dm": dm,
                "memory": memory,
                "patch": patch,
                "target": target,
                "section": section,
            },
            set or {},
        ),
        design=design,
        points=points,
        design_seed=design_seed,
        where=where,
        seed=seed,
        repeat=repeat,
        repeat_exact=repeat_exact,
        bins=bins,
        events=events,
        order=order_of(design, budget_runs, budget_seconds),
    )
    return carry_out(
        planned,
        out,
        shard=shard_of(shard),
        budget_runs=budget_runs,
        budget_seconds=budget_seconds,
        executor=executor,
        workers=workers,
        batch_seconds=batch_seconds,
        progress=progress,
    )


def order_of(design: str, budget_runs: int | None, budget_seconds: float | None) -> str:
    """The order of runs: with a budget each part of them is to be a fair one."""
    if budget_runs is None and budget_seconds is None:
        return "kind"
    return "spread" if design == "grid" else "drawn"


def carry_out(
    planned: Plan,
    out: str | os.PathLike[str],
    *,
    shard: tuple[int, int] = (1, 1),
    budget_runs: int | None = None,
    budget_seconds: float | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    batch_seconds: float = 2.0,
    progress: bool | None = None,
    pool: Pool | None = None,
) -> Sweep:
    """Runs what is missing of a plan. A ``pool`` is not closed."""
    for name, value in (("budget_runs", budget_runs), ("budget_seconds", budget_seconds)):
        if value is not None and value <= 0:
            raise InputError(f"{name}={value}: more than 0")
    if not 0 < batch_seconds <= 3600:
        raise InputError(f"batch_seconds={batch_seconds}: more than 0, at most 3600")
    folder = Path(out).resolve()
    with Store(folder, planned) as store:
        mine = pool or Pool(executor, workers)
        abandon = True
        try:
            driver = Driver(
                planned,
                store,
                mine,
                shard=shard,
                budget_runs=budget_runs,
                budget_seconds=budget_seconds,
                batch_seconds=batch_seconds,
                progress=progress,
            )
            tally = driver.run()
            abandon = False
        finally:
            if pool is None:
                mine.close(abandon=abandon)
        return Sweep(out, tally=tally, unwritten=store.unwritten)


def shard_of(said: tuple[int, int] | str | None) -> tuple[int, int]:
    """A shard: which, of how many."""
    if said is None:
        return 1, 1
    try:
        parts = said.split("/") if isinstance(said, str) else said
        place, of = (int(part) for part in parts)
    except ValueError:
        raise InputError(f"shard={said!r}: write 1/4 for the first of four") from None
    if not 1 <= place <= of:
        raise InputError(
            f"shard={said!r}: it is one of 1/{max(of, 1)} to {max(of, 1)}/{max(of, 1)}"
        )
    return place, of
