# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs, matrices, traces, comparisons and pages."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from blklab import _native
from blklab._job import Job, experiment
from blklab._results import Comparison, Run, Runs, Trace
from blklab._stack import Values, check_single, stack

#: What is made of the events of a run.
Collect = Literal["statistics", "totals"]


def run(
    job: Job,
    *,
    kernel: str | None = None,
    sched: Any = None,
    device: Any = None,
    fs: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 -- the command's name
    md: str | None = None,
    dm: str | None = None,
    memory: str | None = None,
    patch: Any = None,
    target: str | None = None,
    section: Values = None,
    seed: int | None = None,
    repeat: int = 1,
    repeat_exact: bool = False,
    threads: int | None = None,
    collect: Collect = "statistics",
) -> Run | Runs:
    """Runs an experiment.

    Parameters
    ----------
    job : str, path, dict or Experiment
        What runs, as :func:`experiment` reads it.
    kernel : str, optional
        A release, what ``uname -r`` prints, or a distribution (``debian-12``).
    sched : str or subclass of Scheduler, optional
        The I/O scheduler; a class of your own is registered under its name.
    device : str, path or (str, dict), optional
        A device of ``blklab.list.devices()``, with parameters if need be:
        ``"sata-7200-2008,rpm=5400"`` or ``("sata-7200-2008", {"rpm": 5400})``; or the path of a
        TOML file that describes one.
    fs : str, optional
        A filesystem with options: ``"ext4,data=journal"``.
    set : dict, optional
        Settings by name, as ``--set`` takes them: tunables, ``nr_requests``, ``dirty_bytes``.
        Amounts may have units: ``"64m"``, ``"500ms"``.
    md, dm, memory, patch, target, section : optional
        As the command's options of these names.
    seed : int, optional
        Seed of everything random; 0 or what the file says.
    repeat : int, default 1
        Runs with the seeds that follow; more than one give a :class:`Runs`.
    repeat_exact : bool, default False
        Repetitions draw the same random offsets where fio would.
    threads : int, optional
        Runs at a time; as many as there are cores. A run takes one thread.
    collect : {'statistics', 'totals'}
        ``totals`` leaves the statistics of the events out and takes less time.

    Returns
    -------
    Run or Runs

    Raises
    ------
    InputError
        If something is wrong, with what would be right, in the command's words.

    Examples
    --------
    >>> run({"w": {"rw": "write", "size": "1m", "fsync": 8}}, device="nvme-consumer", fs="ext4")
    <blklab.Run job: 7.3, none, nvme-consumer>
    """
    chosen = stack(
        kernel=kernel,
        sched=sched,
        device=device,
        fs=fs,
        set=set,
        md=md,
        dm=dm,
        memory=memory,
        patch=patch,
        target=target,
        section=section,
        seed=seed,
        repeat=repeat,
        repeat_exact=repeat_exact,
    )
    check_single(chosen)
    plans = _native.plan([experiment(job)._native], chosen)
    runs = [Run(each) for each in _native.run(plans, threads, collect)]
    if len(runs) == 1:
        return runs[0]
    return Runs(runs)


def matrix(
    job: Job | Sequence[Job],
    *,
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
    threads: int | None = None,
    collect: Collect = "statistics",
) -> Runs:
    """Runs every combination of the values that are given.

    Each keyword of :func:`run` takes one value or a list of them; ``job`` may be a list of
    jobs. Repetitions are innermost.

    Returns
    -------
    Runs
        In order: jobs outermost, then kernels, schedulers, patches, devices, arrays, settings.

    Examples
    --------
    >>> job = {"r": {"rw": "randread", "direct": 1, "size": "16m", "io_size": "64k"}}
    >>> runs = matrix(job, sched=["none", "mq-deadline"], device="sata-7200-2008")
    >>> [run.name for run in runs]
    ['none', 'mq-deadline']
    """
    chosen = stack(
        kernel=kernel,
        sched=sched,
        device=device,
        fs=fs,
        set=set,
        md=md,
        dm=dm,
        memory=memory,
        patch=patch,
        target=target,
        section=section,
        seed=seed,
        repeat=repeat,
        repeat_exact=repeat_exact,
    )
    jobs = [*job] if isinstance(job, Sequence) and not isinstance(job, str) else [job]
    plans = _native.plan([experiment(each)._native for each in jobs], chosen)
    return Runs([Run(each) for each in _native.run(plans, threads, collect)])


def load(path: str | os.PathLike[str], *, context: Values = None) -> Trace:
    """Opens a trace in any format that blklab reads, or the trace of a run directory.

    Parameters
    ----------
    path : str or path
        blktrace's files by their common name, blkparse's text, ftrace, perf, biosnoop and many
        more (``blklab.list.formats()``); or a run directory.
    context : path or list of paths, optional
        What is known of the machine: a file of ``key=value`` lines, an experiment file, a copy
        of ``/sys/block/DEVICE``.
    """
    contexts = [] if context is None else context
    if isinstance(contexts, (str, os.PathLike)):
        contexts = [contexts]
    return Trace(_native.Trace(os.fspath(path), [os.fspath(c) for c in contexts]))


#: What has events: a run, several, a trace, or where one of these lies.
HasEvents = Run | Runs | Trace | str | os.PathLike[str]


def compare(
    before: HasEvents,
    after: HasEvents,
    *,
    metrics: Sequence[str] = (),
    bios: bool = False,
) -> Comparison:
    """Compares runs, repetitions, or traces, with 95 % intervals and verdicts.

    Parameters
    ----------
    before, after : Run, Runs, Trace or path
        What is compared. Repetitions (``run(…, repeat=10)``) give intervals; one run of each
        says nothing of the noise.
    metrics : sequence of str, optional
        Columns of ``blklab.list.metrics()``; the usual ones otherwise.
    bios : bool, default False
        Compare bios of the traces instead of the jobs' calls.

    Returns
    -------
    Comparison
    """
    with tempfile.TemporaryDirectory(prefix="blklab-") as folder:
        paths = [
            _lying(side, Path(folder) / name)
            for side, name in ((before, "before"), (after, "after"))
        ]
        (compared,) = _native.compare(paths, bios, list(metrics))
    for side, name in ((before, "before"), (after, "after")):
        if isinstance(side, (Run, Runs)):
            compared[name] = side.name
    return Comparison(compared)


def report(what: HasEvents | Sequence[HasEvents], path: str | os.PathLike[str]) -> None:
    """Writes one page of HTML about runs and traces: who waited, how long, why, with pictures.

    Parameters
    ----------
    what : Run, Runs, Trace, path, or a sequence of these
    path : str or path
        Where the page goes. What stands there is replaced only when all is done.
    """
    all_: list[HasEvents] = []
    if isinstance(what, (str, os.PathLike, Run, Runs, Trace)):
        all_.append(what)
    else:
        all_.extend(what)
    with tempfile.TemporaryDirectory(prefix="blklab-") as folder:
        inputs = []
        for number, each in enumerate(all_):
            runs: list[HasEvents] = [*each] if isinstance(each, Runs) else [each]
            for place, one in enumerate(runs):
                lies = _lying(one, Path(folder) / f"{number}-{place}")
                label = one.name if isinstance(one, Run) else Path(lies).name
                inputs.append((label, lies))
        page = _native.report(inputs)
    target = Path(path)
    part = target.with_name(target.name + ".part")
    part.write_text(page, encoding="utf-8")
    part.replace(target)


def _lying(what: HasEvents, folder: Path) -> str:
    """Where the events of something lie; of what is only in memory they are written below
    ``folder``."""
    if isinstance(what, (Run, Runs)):
        what.save(folder)
        return str(folder)
    if isinstance(what, Trace):
        return str(what.path)
    return os.fspath(what)
