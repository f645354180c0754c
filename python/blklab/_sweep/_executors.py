# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where batches run: processes of this machine, threads, or any executor."""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from contextlib import suppress
from typing import Any

from blklab._native import InputError
from blklab._sweep._work import start_worker

#: How often a cluster is asked how many workers it has.
_ASK_SECONDS = 5.0


class Pool:
    """An executor with what a sweep needs to know of it.

    Parameters
    ----------
    executor : Executor, optional
        Somebody else's, which is not shut down; processes of its own otherwise.
    workers : int, optional
        How many tasks run at a time.
    """

    def __init__(self, executor: Executor | None = None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers={workers}: at least 1")
        self._own = executor is None
        self._asked = -math.inf
        self._threads = 1
        self._workers = workers
        self.executor = executor if executor is not None else self._processes()

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        if self._workers is not None:
            return self._workers
        client = getattr(self.executor, "_client", None)
        if client is not None:
            # Dask's: threads of all workers. Some begin later, some end.
            now = time.monotonic()
            if now - self._asked > _ASK_SECONDS:
                self._asked = now
                with suppress(Exception):
                    self._threads = max(sum(client.nthreads().values()), 1)
            return self._threads
        return int(getattr(self.executor, "_max_workers", 0)) or os.cpu_count() or 1

    @property
    def packs(self) -> bool:
        """Whether what is sent goes to another process."""
        return not isinstance(self.executor, Threads)

    def submit(self, task: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begins a task."""
        return self.executor.submit(task, *args)

    def renew(self) -> bool:
        """Begins anew after workers were lost; False if that is not ours to do."""
        if not self._own:
            return not isinstance(self.executor, ProcessPoolExecutor)
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._processes()
        return True

    def works(self) -> bool:
        """Whether a worker begins at all."""
        try:
            self.executor.submit(os.getpid).result()
        except BrokenExecutor:
            return False
        return True

    def close(self, *, abandon: bool = False) -> None:
        """Ends processes of its own; ``abandon`` does not wait for what they do."""
        if not self._own:
            return
        processes = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=not abandon, cancel_futures=True)
        if abandon:
            for process in processes:
                process.kill()

    def _processes(self) -> Executor:
        return ProcessPoolExecutor(
            self._workers or os.cpu_count() or 1,
            # A fork of a process with threads may hang.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=start_worker,
            initargs=(os.getpid(),),
        )


def is_loss(error: BaseException) -> bool:
    """Whether an error of a future says that its worker is gone, not that the task failed."""
    if isinstance(error, (BrokenExecutor, ConnectionError)):
        return True
    return type(error).__name__ in ("KilledWorker", "CommClosedError", "CancelledError")
