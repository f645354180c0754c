# SPDX-License-Identifier: MIT OR Apache-2.0
"""2,400 runs on a cluster that loses a worker: five schedulers, one of them written here, six
devices, eight loads, ten seeds.

    python sweep_on_a_cluster.py FOLDER [FIGURE.svg]

The first part stops after 1,600 runs, the second goes on where it was. In between one of the two
workers is killed. Then the same runs on processes of this machine: the same table, row for row.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import blklab


class Fifo(blklab.Scheduler):
    """First come, first served, with one queue for all."""

    name = "fifo"

    def __init__(self, queue: Any) -> None:
        super().__init__(queue)
        self.waiting: list[blklab.Request] = []

    def insert(self, request: blklab.Request, at_head: bool) -> None:
        self.waiting.insert(0 if at_head else len(self.waiting), request)

    def dispatch(self) -> blklab.Request | None:
        return self.waiting.pop(0) if self.waiting else None

    def absorbed(self, request: blklab.Request, other: blklab.Request) -> None:
        self.waiting.remove(other)


def load(reader: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    """A reader, and what runs beside it."""
    base = {"direct": 1, "ioengine": "libaio", "size": "256m", "time_based": True}
    base["runtime"] = "50ms"
    jobs = {"reader": reader} | others
    return {name: base | job for name, job in jobs.items()}


READ = {"rw": "randread", "bs": "4k"}
WRITER = {"rw": "write", "bs": "64k", "iodepth": 64}

LOADS = {
    "reads": load(READ),
    "reads-qd16": load(READ | {"iodepth": 16}),
    "mixed": load({"rw": "randrw", "bs": "8k", "iodepth": 4}),
    "scan": load({"rw": "read", "bs": "128k", "iodepth": 2}),
    "reads+writer": load(READ, writer=WRITER),
    "reads+random-writer": load(READ, writer={"rw": "randwrite", "bs": "16k", "iodepth": 64}),
    "reads+scan": load(READ, scan={"rw": "read", "bs": "128k", "iodepth": 64}),
    "reads+two-writers": load(READ, writer=WRITER | {"numjobs": 2}),
}

SWEEP: dict[str, Any] = {
    "kernel": "7.3",
    "sched": ["none", "mq-deadline", "kyber", "bfq", Fifo],
    "device": [
        "sata-7200-2008",
        "sas-15k",
        "sata-ssd",
        "samsung-850-evo",
        "nvme-consumer",
        "nvme-datacenter",
    ],
    "repeat": 10,
    "batch_seconds": 1.0,
}


def on_a_cluster(folder: Path) -> blklab.Sweep:
    """Two parts on a cluster, of which a worker is killed."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        executor = client.get_executor()

        def kill() -> None:
            while len(_keys(folder)) < 1000:
                time.sleep(0.2)
            _, pid = next(iter(client.run(os.getpid).items()))
            os.kill(pid, signal.SIGKILL)
            print(f"killed a worker after {len(_keys(folder))} runs")

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        first = blklab.sweep(LOADS, out=folder, executor=executor, budget_runs=1600, **SWEEP)
        tell("first part", first)
        killer.join()
        second = blklab.sweep(LOADS, out=folder, executor=executor, **SWEEP)
        tell("second part", second)
    return second


def _keys(folder: Path) -> set[str]:
    try:
        swept = blklab.Sweep(folder)
        return set(swept.table.to_table(columns=["key"]).column("key").to_pylist())
    except blklab.BlklabError:
        return set()


def tell(what: str, swept: blklab.Sweep) -> None:
    """What a sweep came to, in a line."""
    tally = swept.tally
    assert tally is not None
    beside = (tally.worker_seconds - tally.simulated_seconds) / max(tally.done, 1) * 1e3
    print(
        f"{what}: {tally.there} were there, {tally.done} done, {tally.failed} failed, "
        f"{tally.wall_seconds:.1f} s of wall time, {tally.simulated_seconds:.1f} s of simulation, "
        f"{beside:.3f} ms of a worker beside each run",
        flush=True,
    )


def draw(swept: blklab.Sweep, path: str) -> None:
    """p99 of the reader beside a random writer, by scheduler and device, with 95 % intervals."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "blklab"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(SWEEP["device"]), figsize=(13, 3.2))
    summary = swept.summary("clat_p99_ns", job="reader", direction="read").rows()
    schedulers = ["none", "mq-deadline", "kyber", "bfq", "fifo"]
    for axis, device in zip(axes, SWEEP["device"], strict=True):
        for at, sched in enumerate(schedulers):
            (row,) = [
                r
                for r in summary
                if r["experiment"] == "reads+random-writer"
                and (r["device"], r["sched"]) == (device, sched)
            ]
            ends = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
            ends = [[end / 1e6 for end in side] for side in ends]
            axis.errorbar([at], [row["mean"] / 1e6], yerr=ends, fmt="o", capsize=3, color="C0")
        axis.set_title(device, fontsize=9)
        axis.set_xticks(range(len(schedulers)), schedulers, rotation=60, fontsize=8)
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("p99 of reads, ms")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main() -> None:
    """All of it."""
    folder = Path(sys.argv[1])
    cluster = on_a_cluster(folder / "cluster")
    processes = blklab.sweep(LOADS, out=folder / "processes", workers=2, **SWEEP)
    tell("on processes", processes)
    same = cluster.to_arrow().equals(processes.to_arrow())
    rows = cluster.to_arrow().num_rows
    print(f"{rows} rows of each, {'the same' if same else 'NOT the same'}, row for row")
    best = processes.best(
        "clat_p99_ns", by=["device", "experiment"], job="reader", direction="read"
    )
    sure: dict[str, int] = {}
    for row in best:
        name = row["sched"] if row["sure"] else "not sure"
        sure[name] = sure.get(name, 0) + 1
    print(f"best p99 of the reader, of {len(best)} loads on devices: {sure}")
    if len(sys.argv) > 2:
        draw(cluster, sys.argv[2])


if __name__ == "__main__":
    main()
