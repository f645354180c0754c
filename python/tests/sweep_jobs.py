# SPDX-License-Identifier: MIT OR Apache-2.0
"""What several tests sweep."""

import os
import signal

import blklab
from blklab._sweep import _work

#: Small loads: a run takes a few milliseconds.
LOADS = {
    "reads": {"r": {"rw": "randread", "direct": 1, "size": "16m", "io_size": "64k"}},
    "syncs": {"w": {"rw": "write", "size": "256k", "bs": "16k", "fsync": 2}},
}


def killing_batch(batch):
    """Runs a batch in whose last point the worker dies."""
    if any(run.values[0] == "bfq" for run in batch.runs):
        os.kill(os.getpid(), signal.SIGKILL)
    return _work.run_here(batch)


def killing_packed(packed):
    """The same, of a batch that came through a pipe."""
    import pickle

    return killing_batch(pickle.loads(packed))


def rows(sweep: blklab.Sweep) -> list[dict]:
    """All rows, in order."""
    return sweep.to_arrow().to_pylist()
