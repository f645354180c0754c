# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a plan: batches for workers, what comes of them, and what becomes of lost ones."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from blklab._native import InputError
from blklab._sweep._executors import Pool, is_loss
from blklab._sweep._progress import Progress
from blklab._sweep._store import Store
from blklab._sweep._work import Failure, Outcome, run_here, run_packed

#: Runs of a batch, at most: what is lost with a worker, and what a message holds.
_RUNS_MAX = 5000

#: Runs of the first batch of a kind, of which nobody knows how long they take.
_RUNS_FIRST = 4

#: What a broken pool takes to end what was under way, at most.
_BREAKING_SECONDS = 30

#: Batches that are shorter than this are not made shorter, so that workers end together.
_SECONDS_MIN = 0.1

#: Batches under way for each worker: one runs, one waits.
_AHEAD = 2

#: How often a run may lose its worker while it runs alone.
_LOSSES_MAX = 2


class Tasks(Protocol):
    """What is to be done: runs, each with a ``key`` that tells it apart for good."""

    def runs(self) -> Iterable[Any]:
        """The runs in the order in which they are begun."""

    def kind(self, run: Any) -> Any:
        """What is equal for runs that take equally long."""

    def batch(self, file: str, runs: Sequence[Any]) -> Any:
        """What goes to a worker for some runs: its ``run`` writes their rows to the file."""

    def describe(self) -> dict[str, Any]:
        """What must be the same in all runs of a folder."""

    def identity(self, runs: Sequence[Any]) -> dict[str, Any]:
        """Columns that tell runs apart."""


@dataclass
class Work:
    """Runs that go to a worker together.

    Parameters
    ----------
    runs : list
        The runs.
    losses : int
        How many workers were lost with it while nothing else ran.
    """

    runs: list[Any]
    losses: int = 0
    file: str = ""


@dataclass
class Tally:
    """What a sweep came to, so far.

    Parameters
    ----------
    asked, there, done, failed : int
        Runs of the plan (of this shard), those that were there before, those that were run, and
        those that failed.
    lost : int
        Workers that were lost.
    batches : int
        Batches that came to an end.
    wall_seconds, worker_seconds, simulated_seconds : float
        Wall time of all, time of workers in batches, and of it in runs.
    ended : str
        Why it ended before all was done; empty otherwise.
    """

    asked: int = 0
    there: int = 0
    done: int = 0
    failed: int = 0
    lost: int = 0
    batches: int = 0
    wall_seconds: float = 0.0
    worker_seconds: float = 0.0
    simulated_seconds: float = 0.0
    ended: str = ""


class Costs:
    """How long runs take, by kind: experiment and device. Learned as they end."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._means: dict[Any, tuple[float, int]] = {}

    def seconds(self, run: Any) -> float | None:
        """How long a run takes, if somebody knows."""
        mean = self._means.get(self._tasks.kind(run))
        return mean[0] if mean else None

    def learn(self, runs: list[Any], seconds: float) -> None:
        """Some runs took so long together. Kinds of a mixed batch share it by what was known."""
        guesses = [self.seconds(run) or 0.0 for run in runs]
        known = sum(guesses)
        each = seconds / len(runs)
        found: dict[Any, list[float]] = {}
        for run, guess in zip(runs, guesses, strict=True):
            share = guess * seconds / known if guess and known else each
            found.setdefault(self._tasks.kind(run), []).append(share)
        for kind, shares in found.items():
            mean = sum(shares) / len(shares)
            before, times = self._means.get(kind, (mean, 0))
            # The last ten batches count: devices are slower once they are full.
            weight = 1 / min(times + 1, 10)
            self._means[kind] = (before + (mean - before) * weight, times + 1)


class Driver:
    """Carries a sweep out."""

    def __init__(
        self,
        tasks: Tasks,
        store: Store,
        pool: Pool,
        *,
        shard: tuple[int, int] = (1, 1),
        budget_runs: int | None = None,
        budget_seconds: float | None = None,
        batch_seconds: float = 2.0,
        progress: bool | None = None,
        unit: str = "runs",
    ) -> None:
        self._tasks = tasks
        self._store = store
        self._pool = pool
        self._batch_seconds = batch_seconds
        self._budget_runs = budget_runs
        self._budget_seconds = budget_seconds
        self._costs = Costs(tasks)
        self._suspects: deque[Work] = deque()
        self._under_way: dict[Future[Any], Work] = {}
        self.tally = Tally()
        self._began = time.monotonic()
        done, failed = store.there()
        place, of = shard
        mine = [
            run
            for run in _unique(tasks.runs())
            if of == 1 or int(run.key[:8], 16) % of == place - 1
        ]
        missing = [run for run in mine if run.key not in done and run.key not in failed]
        self.tally.asked = len(mine)
        self.tally.there = len(mine) - len(missing)
        self._left = deque(missing if budget_runs is None else missing[:budget_runs])
        self._cut = len(missing) - len(self._left)
        self._progress = Progress(len(self._left), unit, progress)

    def run(self) -> Tally:
        """Runs what is missing.

        Ctrl-C waits for the batches under way and keeps them; a second one gives them up.
        """
        try:
            self._loop()
        except KeyboardInterrupt:
            self._left.clear()
            self._suspects.clear()
            self._drain()
            raise
        finally:
            self.tally.wall_seconds = time.monotonic() - self._began
            self._progress.close()
        if self._cut and not self.tally.ended:
            self.tally.ended = f"the budget of {self._budget_runs} runs is spent"
        return self.tally

    def _loop(self) -> None:
        while self._left or self._suspects or self._under_way:
            self._submit()
            if self._under_way:
                done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
                self._take(done)

    def _drain(self) -> None:
        for future in list(self._under_way):
            if future.cancel():
                del self._under_way[future]
        if self._under_way:
            done, _ = wait(self._under_way)
            self._take(done)

    def _submit(self) -> None:
        # What may have cost a worker runs alone, so that it is known which run did.
        if self._suspects:
            if not self._under_way:
                self._send(self._suspects.popleft())
            return
        room = self._pool.workers * _AHEAD
        while self._left and len(self._under_way) < room:
            if self._budget_seconds is not None:
                spent = time.monotonic() - self._began
                if spent + self._batch_seconds / 2 >= self._budget_seconds:
                    self.tally.ended = f"the budget of {self._budget_seconds:g} s is spent"
                    self._left.clear()
                    return
            self._send(Work(self._next_runs()))

    def _next_runs(self) -> list[Any]:
        runs: list[Any] = []
        seconds = 0.0
        # Towards the end batches are smaller, so that workers end at the same time.
        share = max(len(self._left) // (self._pool.workers * _AHEAD), 1)
        new: set[Any] = set()
        while self._left and len(runs) < _RUNS_MAX:
            if len(runs) >= share and (seconds >= _SECONDS_MIN or new):
                break
            cost = self._costs.seconds(self._left[0])
            if cost is None:
                new.add(self._tasks.kind(self._left[0]))
                if len(runs) >= _RUNS_FIRST:
                    break
            elif new or (runs and seconds + cost > self._batch_seconds):
                break
            seconds += cost or 0.0
            runs.append(self._left.popleft())
        return runs

    def _send(self, work: Work) -> None:
        work.file = self._store.next_file()
        batch = self._tasks.batch(work.file, work.runs)
        try:
            if self._pool.packs:
                future = self._pool.submit(run_packed, _packed(batch))
            else:
                future = self._pool.submit(run_here, batch)
        except Exception as e:
            if is_loss(e):
                # What it broke at comes first: it may be what broke it.
                wait(self._under_way, timeout=_BREAKING_SECONDS)
                self._take(list(self._under_way))
                self._lost([work])
            else:
                self._convict(work, type(e).__name__, f"cannot be sent to a worker: {e}")
            return
        self._under_way[future] = work

    def _take(self, done: Iterable[Future[Any]]) -> None:
        lost: list[Work] = []
        broken = False
        waiting = list(done)
        while waiting:
            future = waiting.pop()
            work = self._under_way.pop(future)
            try:
                outcome: Outcome = future.result()
            except (Exception, CancelledError) as e:
                if not is_loss(e):
                    self._convict(work, type(e).__name__, " ".join(str(e).split()))
                    continue
                lost.append(work)
                if isinstance(e, BrokenExecutor) and not broken:
                    # All that is under way there has come to an end, or does in a moment.
                    broken = True
                    wait(self._under_way, timeout=_BREAKING_SECONDS)
                    waiting = list(self._under_way)
                continue
            self._book(work, outcome)
        if lost:
            self._lost(lost)

    def _book(self, work: Work, outcome: Outcome) -> None:
        tally = self.tally
        tally.batches += 1
        tally.worker_seconds += outcome.seconds
        tally.simulated_seconds += outcome.simulated_seconds
        if outcome.error is not None:
            self._convict(work, *outcome.error)
            return
        if outcome.done and not self._store.keep(work.file):
            text = f"worker {outcome.worker} wrote rows that are not here: workers share the folder"
            self._give_up(work, "CannotWrite", text)
            return
        self._costs.learn(work.runs, outcome.simulated_seconds)
        failures = [Failure(work.runs[place], kind, text) for place, kind, text in outcome.failed]
        self._store.fail(failures)
        self._count(outcome.done, len(failures))

    def _count(self, done: int, failed: int) -> None:
        self.tally.done += done
        self.tally.failed += failed
        self._progress.add(done, failed)

    def _lost(self, works: list[Work]) -> None:
        """Workers died: what was under way is split, and tried again alone."""
        self.tally.lost += 1
        alone = len(works) == 1 and not self._under_way
        gone = not self._renew()
        for work in works:
            self._store.forget(work.file)
            work.losses += int(alone)
            if gone:
                text = "the executor's workers are gone, and it does not begin new ones"
                self._give_up(work, "WorkerLost", text)
            elif not alone:
                self._suspects.append(work)
            elif len(work.runs) > 1:
                self._suspects.extendleft(reversed(_halves(work)))
            elif work.losses < _LOSSES_MAX:
                self._suspects.appendleft(work)
            else:
                text = f"its worker died {work.losses} times with nothing else under way"
                self._give_up(work, "WorkerLost", text)
        if gone:
            rest = Work(list(self._left))
            self._left.clear()
            if rest.runs:
                self._give_up(rest, "WorkerLost", "no worker is left")

    def _renew(self) -> bool:
        if not self._pool.renew():
            return False
        if not self.tally.batches and not self._pool.works():
            raise InputError(
                "no worker can begin: a script that sweeps does so below "
                "'if __name__ == \"__main__\":', as each worker reads it, too"
            )
        return True

    def _convict(self, work: Work, kind: str, text: str) -> None:
        """A batch raised something: it is split until it is known which run does."""
        self._store.forget(work.file)
        if len(work.runs) > 1 and kind != "CannotWrite":
            for half in _halves(work):
                self._send(half)
            return
        self._give_up(work, kind, text)

    def _give_up(self, work: Work, kind: str, text: str) -> None:
        passing = kind in ("WorkerLost", "OutOfMemory", "CannotWrite")
        self._store.fail([Failure(run, kind, text, passing) for run in work.runs])
        self._count(0, len(work.runs))


def _halves(work: Work) -> list[Work]:
    middle = len(work.runs) // 2
    return [Work(work.runs[:middle]), Work(work.runs[middle:])]


def _unique(runs: Iterable[Any]) -> Iterator[Any]:
    """Runs without those that are the same as one before."""
    seen: set[str] = set()
    for run in runs:
        if run.key not in seen:
            seen.add(run.key)
            yield run


def _packed(batch: Any) -> bytes:
    """A batch for a pipe; what stands in no module goes with its code if cloudpickle is there."""
    try:
        packed = pickle.dumps(batch)
        if b"__main__" not in packed:
            return packed
    except Exception:
        packed = None
    # A worker's program is another one.
    try:
        import cloudpickle
    except ImportError:
        return packed if packed is not None else pickle.dumps(batch)
    whole: bytes = cloudpickle.dumps(batch)
    return whole
