# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests for schedulers of one's own: what must hold of each, under random loads."""

from __future__ import annotations

import random
from typing import Any

from blklab._api import matrix
from blklab._native import InvariantError
from blklab._results import Run
from blklab._scheduler import Scheduler, registered

#: Kernels, devices and depths that loads are drawn from.
_KERNELS = ("5.10", "6.1", "6.12", "7.3")
_DEVICES = ("sata-7200-2008", "nvme-consumer", "simdisk")


def check_scheduler(scheduler: type[Scheduler], *, runs: int = 50, seed: int = 0) -> None:
    """Runs a scheduler under random loads, and raises at the first thing that is wrong.

    The loads have one to three jobs of reads and writes, direct and buffered, at random and in
    sequence, of depths of 1 to 32, with and without fsync, on kernels from 5.10 to 7.3 and three
    devices. What must hold, as of the schedulers that blklab has:

    - each request that was inserted goes to the device once and completes once, and each bio
      ends once, as a part of a request or of one that it merged with;
    - no request is given to the device before it was inserted;
    - a request that absorbed others covers their sectors;
    - the disk never rests while a request waits and none is at the device, unless a wake-up is
      asked for;
    - the jobs do as much as they were told;
    - a second run gives the same events.

    Parameters
    ----------
    scheduler : subclass of Scheduler
    runs : int, default 50
        How many loads are drawn; each runs twice.
    seed : int, default 0
        Of the loads.

    Raises
    ------
    InvariantError
        With what does not hold, and the load.
    """
    name = registered(scheduler)
    draw = random.Random(seed)
    for number in range(runs):
        job = _load(draw)
        kernel, device = draw.choice(_KERNELS), draw.choice(_DEVICES)
        where = f"load {number} of seed {seed} on {kernel} and {device}: {job}"
        both = matrix([job, job], sched=scheduler, kernel=kernel, device=device, threads=1)
        first, second = both
        if first.digest != second.digest:
            raise InvariantError(f"scheduler {name}: two runs differ; {where}")
        _check(name, first, where)


def _load(draw: random.Random) -> dict[str, dict[str, Any]]:
    jobs = {}
    for number in range(draw.randint(1, 3)):
        direct = draw.randint(0, 1)
        job: dict[str, Any] = {
            "rw": draw.choice(["read", "write", "randread", "randwrite", "randrw"]),
            "direct": direct,
            "bs": draw.choice(["4k", "16k", "64k"]),
            "size": draw.choice(["4m", "64m"]),
            "io_size": draw.choice(["256k", "1m"]),
        }
        if direct:
            job |= {"ioengine": "libaio", "iodepth": draw.choice([1, 4, 32])}
        elif draw.random() < 0.5:
            job["fsync"] = draw.choice([1, 8])
        jobs[f"job{number}"] = job
    return jobs


def _check(name: str, run: Run, where: str) -> None:
    def demand(holds: bool, what: str) -> None:
        if not holds:
            raise InvariantError(f"scheduler {name}: {what}; {where}")

    lives = run.lives.rows()
    for life in lives:
        inserted, issued, completed = life["insert_ns"], life["issue_ns"], life["complete_ns"]
        demand(issued is not None, f"a request at sector {life['sector']} never left")
        demand(completed is not None, f"a request at sector {life['sector']} never completed")
        demand(inserted is None or inserted <= issued, "a request left before it was inserted")
    for bio in run.bios:
        demand(bio["complete_ns"] is not None, f"a bio at sector {bio['sector']} never ended")
    for bio in run.bios:
        issued, completed = bio["issue_ns"], bio["complete_ns"]
        demand(issued is None or issued <= completed, "a bio ended before its request left")
    for row in run.jobs:
        demand(row["ios"] is None or row["ios"] > 0, f"job {row['job']} did nothing")
