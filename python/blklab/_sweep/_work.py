# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a worker does: it runs a batch, and writes its rows."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab import _native
from blklab._job import Experiment
from blklab._sweep._factors import EXPERIMENT, Column
from blklab._sweep._point import RunOf, stack_of
from blklab._table import Table

if TYPE_CHECKING:
    import pyarrow

#: Of `prctl(2)`.
_PR_SET_PDEATHSIG = 1

#: Columns of the native table that say what the others say of the run, or nothing outside it.
_LEFT_OUT = ("point",)


@dataclass(frozen=True)
class Batch:
    """Runs that one worker does one after the other.

    Parameters
    ----------
    file : str
        Where its rows go; those of failed runs go beside it.
    experiments : dict of int to tuple
        What the experiments of these runs are made of, by place.
    names : dict of int to str
        Their names.
    columns : tuple of Column
        What the values of each run are values of.
    runs : sequence of RunOf
        The runs.
    seed, repeat_exact, bins, events
        As in the plan.
    """

    file: str
    experiments: dict[int, tuple[str, ...]]
    names: dict[int, str]
    columns: tuple[Column, ...]
    runs: tuple[RunOf, ...]
    seed: int
    repeat_exact: bool
    bins: bool
    events: bool = True

    def run(self) -> Outcome:
        """Runs it, and writes its rows."""
        return guarded(lambda: _run(self))


@dataclass(frozen=True)
class Failure:
    """A run that came to nothing.

    Parameters
    ----------
    run
        Which.
    kind : str
        The class of the exception.
    text : str
        What it says.
    passing : bool
        Whether the machine failed, not the run: it is tried again when the sweep goes on.
    """

    run: Any
    kind: str
    text: str
    passing: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a batch.

    Parameters
    ----------
    done : int
        Runs whose rows are written.
    failed : sequence of tuple
        Place in the batch, class and text of those that failed.
    error : tuple of str, optional
        Class and text of what ended the whole batch.
    seconds, simulated_seconds : float
        Wall time of the batch, and of the runs in it.
    worker : str
        Host and process.
    """

    done: int
    failed: tuple[tuple[int, str, str], ...]
    error: tuple[str, str] | None
    seconds: float
    simulated_seconds: float
    worker: str


def start_worker(parent: int) -> None:
    """Makes a process a worker: Ctrl-C is the parent's to answer, and it ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def run_packed(packed: bytes) -> Outcome:
    """Runs a batch that came through a pipe."""
    outcome: Outcome = pickle.loads(packed).run()
    return outcome


def run_here(batch: Any) -> Outcome:
    """Runs a batch of this process."""
    outcome: Outcome = batch.run()
    return outcome


def guarded(work: Callable[[], tuple[int, list[tuple[int, str, str]], float]]) -> Outcome:
    """What came of a batch. Whatever is raised in it is a value: a worker lives on."""
    began = time.perf_counter()
    worker = f"{os.uname().nodename}/{os.getpid()}"
    try:
        done, failed, inside = work()
        return Outcome(done, tuple(failed), None, time.perf_counter() - began, inside, worker)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:
        # A panic of the native module is no Exception.
        error = (class_of(e), " ".join(str(e).split()) or type(e).__name__)
        return Outcome(0, (), error, time.perf_counter() - began, 0.0, worker)


def _run(batch: Batch) -> tuple[int, list[tuple[int, str, str]], float]:
    points = []
    failed: list[tuple[int, str, str]] = []
    places = []
    for place, run in enumerate(batch.runs):
        named = {c.name: v for c, v in zip(batch.columns, run.values, strict=True)}
        try:
            chosen = stack_of(
                named, seed=batch.seed, repeat=run.repetition + 1, exact=batch.repeat_exact
            )
            points.append((_experiment(batch.experiments[run.experiment])._native, chosen))
            places.append(place)
        except Exception as e:
            failed.append((place, type(e).__name__, str(e)))
    start = time.perf_counter()
    table, failures = _native.sweep(points, 1, batch.bins, batch.events)
    simulated = time.perf_counter() - start
    for point, kind, text in failures:
        if kind == "Interrupted":
            raise KeyboardInterrupt
        failed.append((places[point], kind, text))
    with_rows = set(table.column("point")) | {point for point, _, _ in failures}
    for point in range(len(points)):
        if point not in with_rows:
            failed.append((places[point], "InputError", "no job did any I/O: no rows"))
    rows = _rows(batch, Table(table), places)
    if rows.num_rows:
        write(rows, Path(batch.file))
    return len(batch.runs) - len(failed), failed, simulated


def class_of(e: BaseException) -> str:
    """What a failure is called."""
    if isinstance(e, MemoryError):
        return "OutOfMemory"
    if isinstance(e, OSError):
        return "CannotWrite"
    return type(e).__name__


@lru_cache(maxsize=256)
def _experiment(source: tuple[str, ...]) -> Experiment:
    return Experiment(source)


def factor_columns(
    columns: Sequence[Column], names: dict[int, str], runs: Sequence[RunOf], seed: int
) -> dict[str, pyarrow.Array]:
    """What tells rows of runs apart: their key, the experiment, factors, repetition, seed."""
    import pyarrow as pa

    types = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
    found = {
        "key": pa.array([r.key for r in runs], pa.string()),
        EXPERIMENT: pa.array([names[r.experiment] for r in runs], pa.string()),
    }
    for place, c in enumerate(columns):
        found[c.name] = pa.array([c.cell(r.values[place]) for r in runs], types[c.kind])
    found["repetition"] = pa.array([r.repetition for r in runs], pa.int64())
    found["seed"] = pa.array([seed + r.repetition for r in runs], pa.int64())
    return found


def _rows(batch: Batch, table: Table, places: Sequence[int]) -> pyarrow.Table:
    import pyarrow as pa

    numbers = pa.table(table)
    rows = [batch.runs[places[point]] for point in numbers.column("point").to_pylist()]
    columns: dict[str, Any] = dict(factor_columns(batch.columns, batch.names, rows, batch.seed))
    for name in numbers.column_names:
        if name not in _LEFT_OUT:
            # A setting may be called as a column is.
            columns[name if name not in columns else f"{name}_"] = numbers.column(name)
    return pa.table(columns)


def write(table: pyarrow.Table, path: Path) -> None:
    """Writes a file that is whole as soon as it has its name."""
    import pyarrow.parquet as pq

    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, part, compression="zstd")
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
