# SPDX-License-Identifier: MIT OR Apache-2.0
"""A database beside a backup on three devices: what should be set on all of them?

    python tune_database.py [FOLDER [FIGURE.png]]

The search sees one database with two seeds; the finalists are run with eight other seeds, and
with another database, which writes more, and another backup.
"""

from __future__ import annotations

import sys
from typing import Any

import blklab


def load(database: dict[str, Any], backup: dict[str, Any]) -> dict[str, Any]:
    """A database, its log, and a backup on the same disk."""
    base = {"direct": 1, "time_based": True, "runtime": "300ms", "ioengine": "psync"}
    return {
        "db": base | {"filename": "tables", "size": "2g", "numjobs": 2} | database,
        "wal": base
        | {"filename": "wal", "size": "64m", "rw": "write", "bs": "8k"}
        | {"fdatasync": 1, "thinktime": 500},
        "backup": base | {"filename": "copy", "size": "4g", "ioengine": "libaio"} | backup,
    }


SEARCHED = {
    "oltp": load({"rw": "randread", "bs": "8k"}, {"rw": "write", "bs": "1m", "iodepth": 16}),
}

HELD_OUT = {
    "oltp, more writes": load(
        {"rw": "randrw", "rwmixread": 70, "bs": "16k"},
        {"rw": "write", "bs": "512k", "iodepth": 8},
    ),
}

DEVICES = ["sata-7200-2008", "sata-ssd", "nvme-consumer"]
GOALS = ["read p99 of db", "bandwidth of backup"]


def main() -> None:
    """Each device by itself, then one setting for all three."""
    out = sys.argv[1] if len(sys.argv) > 1 else None
    asked: dict[str, Any] = {
        "keep": ["bandwidth of backup >= 70 %", "sync p99 of wal <= 110 %"],
        "fs": "ext4",
        "held_out": HELD_OUT,
        "kernel": "6.12",
        "trials": 60,
        "repeat": 2,
        "confirm": 8,
        "workers": 2,
        "out": out,
    }
    for device in [*DEVICES, DEVICES]:
        tuned = blklab.tune(SEARCHED, GOALS, device=device, **asked)
        on = device if isinstance(device, str) else "all three"
        print(f"=== {on}: {tuned.runs} runs, {tuned.seconds:.0f} s")
        print(tuned)
        print()
        if len(sys.argv) > 2 and on == "all three":
            tuned.plot(sys.argv[2])


if __name__ == "__main__":
    main()
