# SPDX-License-Identifier: MIT OR Apache-2.0
"""blklab, a laboratory for Linux block-I/O latency.

An experiment is a workload, a block stack and a device. It runs in virtual time, on models or
on a real kernel, and gives the same result each time and on each machine.

>>> import blklab
>>> job = {"reader": {"rw": "randread", "direct": 1, "size": "64m", "io_size": "256k"}}
>>> run = blklab.run(job, kernel="7.3", sched="mq-deadline", device="nvme-consumer")
>>> run.metric("ios", job="reader", direction="read")
64.0
>>> blklab.run(job, kernel="7.3", sched="mq-deadline", device="nvme-consumer").digest == run.digest
True

Times are in nanoseconds of virtual time unless a name says otherwise, lengths in bytes, places
on a disk in sectors of 512 bytes.
"""

from blklab import fleet, list  # noqa: A004 -- named as the command's subcommand
from blklab._api import compare, load, matrix, report, run
from blklab._changes import KernelChanges, kernels
from blklab._job import Experiment, experiment
from blklab._native import (
    BlklabError,
    InputError,
    Interrupted,
    InvariantError,
    MissingFileError,
    NotModelledError,
    TargetError,
    UnknownNameError,
)
from blklab._native import version as __version__
from blklab._results import Comparison, Run, Runs, Trace, Why
from blklab._scheduler import Request, Scheduler
from blklab._sweep import Range, Sweep, sweep
from blklab._table import Table
from blklab._tune import Tuned, tune

__all__ = [
    "BlklabError",
    "Comparison",
    "Experiment",
    "InputError",
    "Interrupted",
    "InvariantError",
    "KernelChanges",
    "MissingFileError",
    "NotModelledError",
    "Range",
    "Request",
    "Run",
    "Runs",
    "Scheduler",
    "Sweep",
    "Table",
    "TargetError",
    "Trace",
    "Tuned",
    "UnknownNameError",
    "Why",
    "__version__",
    "compare",
    "experiment",
    "fleet",
    "kernels",
    "list",
    "load",
    "matrix",
    "report",
    "run",
    "sweep",
    "tune",
]
