# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps that lose things: their own process, workers, disks, memory."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import blklab
import pytest
from blklab._sweep import _driver, _work
from sweep_jobs import LOADS, killing_batch, killing_packed, rows

PROGRAM = """
import signal
import sys
import blklab
from sweep_jobs import LOADS

if __name__ == "__main__":
    # Whoever runs the tests may ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    blklab.sweep(LOADS, out=sys.argv[1], device=["nvme-consumer", "sata-ssd"],
                 sched=["none", "bfq"], repeat=60, workers=2, batch_seconds=0.1)
"""

ASKED = {"device": ["nvme-consumer", "sata-ssd"], "sched": ["none", "bfq"], "repeat": 60}


def started(folder: Path, files: int = 4) -> subprocess.Popen:
    """A sweep in a process of its own, whose first files of rows are there."""
    here = str(Path(__file__).parent)
    program = folder.parent / f"{folder.name}.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, *sys.path])}
    process = subprocess.Popen(
        [sys.executable, program, folder], env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(list(folder.glob("runs/*.parquet"))) < files:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def children(pid: int) -> list[int]:
    """Processes whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_killed_sweep_goes_on_and_ends_as_if_nothing_had_happened(tmp_path):
    process = started(tmp_path / "killed")
    workers = children(process.pid)
    assert len(workers) >= 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    # Its workers end with it, within a moment.
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = {r["key"] for r in rows(blklab.Sweep(tmp_path / "killed"))}
    assert 0 < len(before) < 480
    with ThreadPoolExecutor(2) as threads:
        again = blklab.sweep(LOADS, out=tmp_path / "killed", executor=threads, **ASKED)
        whole = blklab.sweep(LOADS, out=tmp_path / "whole", executor=threads, **ASKED)
    assert (again.tally.there, again.tally.done) == (len(before), 480 - len(before))
    assert rows(again) == rows(whole)


def test_ctrl_c_keeps_what_is_under_way(tmp_path):
    # On a busy machine the others may follow before the signal does.
    process = started(tmp_path / "stopped", files=1)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    assert "KeyboardInterrupt" in process.stderr.read()
    kept = {r["key"] for r in rows(blklab.Sweep(tmp_path / "stopped"))}
    assert not (tmp_path / "stopped" / "pending").exists()
    with ThreadPoolExecutor(2) as threads:
        again = blklab.sweep(LOADS, out=tmp_path / "stopped", executor=threads, **ASKED)
    assert again.tally.there == len(kept) > 0
    assert again.tally.there + again.tally.done == 480


def test_a_worker_that_somebody_kills_costs_nothing(tmp_path):
    process = started(tmp_path / "s")
    # The resource tracker of multiprocessing is a child, too.
    worker = next(
        pid
        for pid in children(process.pid)
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(worker, signal.SIGKILL)
    assert process.wait(timeout=120) == 0
    swept = blklab.Sweep(tmp_path / "s")
    assert len({r["key"] for r in rows(swept)}) == 480
    assert not len(swept.failures)


def test_the_run_that_kills_its_worker_is_found_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_driver, "run_packed", killing_packed)
    asked = {"device": "nvme-consumer", "sched": ["none", "bfq", "kyber"], "repeat": 2}
    swept = blklab.sweep(LOADS["reads"], out=tmp_path, workers=2, **asked)
    assert {(r["sched"], r["repetition"]) for r in rows(swept)} == {
        (sched, repetition) for sched in ("none", "kyber") for repetition in (0, 1)
    }
    failed = swept.failures.rows()
    assert [(r["sched"], r["class"], r["passing"]) for r in failed] == [
        ("bfq", "WorkerLost", 1)
    ] * 2
    assert failed[0]["text"] == "its worker died 2 times with nothing else under way"
    # A machine's failure is no run's: it is tried again.
    monkeypatch.undo()
    again = blklab.sweep(LOADS["reads"], out=tmp_path, workers=1, **asked)
    assert (again.tally.there, again.tally.done) == (4, 2)
    assert not len(again.failures)


def test_a_pool_of_somebody_else_that_breaks_ends_the_sweep_with_reasons(tmp_path, monkeypatch):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    asked = {"device": "nvme-consumer", "sched": ["bfq", "none", "kyber"], "repeat": 20}
    context = multiprocessing.get_context("spawn")
    with monkeypatch.context() as patched, ProcessPoolExecutor(1, mp_context=context) as pool:
        patched.setattr(_driver, "run_packed", killing_packed)
        swept = blklab.sweep(LOADS["reads"], out=tmp_path, executor=pool, **asked)
    assert swept.tally.failed + swept.tally.done == 60
    assert {r["class"] for r in swept.failures} == {"WorkerLost"}
    # It ends as well if the pool is broken before it begins.
    again = blklab.sweep(LOADS["reads"], out=tmp_path / "again", executor=pool_of_nobody(), **asked)
    assert again.tally.failed == 60
    with ThreadPoolExecutor(1) as threads:
        rest = blklab.sweep(LOADS["reads"], out=tmp_path, executor=threads, **asked)
    assert rest.tally.there + rest.tally.done == 60


def pool_of_nobody():
    """A process pool whose workers are gone."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    class Broken(ProcessPoolExecutor):
        def submit(self, *_args, **_keywords):
            raise BrokenProcessPool("gone")

    return Broken(1)


def test_a_full_disk_fails_runs_and_not_the_sweep(tmp_path, monkeypatch):
    import errno

    full = {"now": True}
    write = _work.write

    def writes(table, path):
        if full["now"] and "pending" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(table, path)

    monkeypatch.setattr(_work, "write", writes)
    with ThreadPoolExecutor(1) as threads:
        asked = {"out": tmp_path, "executor": threads, "device": "sata-ssd", "repeat": 3}
        swept = blklab.sweep(LOADS, **asked)
        assert (swept.tally.done, swept.tally.failed) == (0, 6)
        assert {r["class"] for r in swept.failures} == {"CannotWrite"}
        assert "No space left" in swept.failures["text"][0]
        full["now"] = False
        again = blklab.sweep(LOADS, **asked)
    assert (again.tally.done, again.tally.failed, len(again.failures)) == (6, 0, 0)


def test_failures_that_cannot_be_written_are_still_told(tmp_path, monkeypatch):
    def full(table, path):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(_work, "write", full)
    monkeypatch.setattr("blklab._sweep._store.write", full)
    with ThreadPoolExecutor(1) as threads:
        swept = blklab.sweep(LOADS, out=tmp_path, executor=threads, device="sata-ssd")
    assert len(swept.failures) == 2 == swept.tally.failed


def test_memory_that_runs_out_fails_one_run(tmp_path, monkeypatch):
    native = _work._native.sweep

    def greedy(points, threads, bins, events):
        if any("bfq" in chosen["sched"] for _, chosen in points):
            raise MemoryError
        return native(points, threads, bins, events)

    class Module:
        sweep = staticmethod(greedy)

    monkeypatch.setattr(_work, "_native", Module)
    with ThreadPoolExecutor(1) as threads:
        swept = blklab.sweep(
            LOADS["reads"], sched=["none", "bfq", "kyber"], out=tmp_path, executor=threads
        )
    assert {r["sched"] for r in rows(swept)} == {"none", "kyber"}
    assert [(r["sched"], r["class"]) for r in swept.failures] == [("bfq", "OutOfMemory")]


def test_a_script_that_begins_itself_again_is_told_what_to_do(tmp_path):
    program = tmp_path / "bare.py"
    program.write_text(
        "import blklab\n"
        "job = {'r': {'rw': 'randread', 'size': '1m'}}\n"
        f"blklab.sweep(job, out={str(tmp_path / 'out')!r}, workers=1)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode != 0
    assert "__name__" in ended.stderr.splitlines()[-1]


def test_rows_that_are_not_here_are_no_rows(tmp_path):
    """Workers of another machine that do not see the folder."""

    class Elsewhere:
        _max_workers = 1

        def submit(self, task, packed):
            import pickle

            batch = pickle.loads(packed)
            future = Future()
            outcome = _work.run_here(batch)
            Path(batch.file).unlink()
            future.set_result(outcome)
            return future

    swept = blklab.sweep(LOADS["reads"], out=tmp_path, executor=Elsewhere(), device="sata-ssd")
    (failure,) = swept.failures
    assert failure["class"] == "CannotWrite"
    assert failure["text"].endswith("workers share the folder")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    distributed = pytest.importorskip("distributed")
    here = str(Path(__file__).parent)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path_factory.mktemp("dask")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(lambda: __import__("sys").path.insert(0, here))
        yield client


def test_a_cluster_gives_the_same_table(tmp_path, client):
    asked = {"device": ["nvme-consumer", "sata-ssd"], "repeat": 20, "bins": True}
    there = blklab.sweep(LOADS, out=tmp_path / "a", executor=client.get_executor(), **asked)
    with ThreadPoolExecutor(1) as threads:
        here = blklab.sweep(LOADS, out=tmp_path / "b", executor=threads, **asked)
    assert there.tally.done == 80
    assert rows(there) == rows(here)


def test_a_cluster_that_loses_a_worker_loses_no_run(tmp_path, client):
    killed = []

    def kill(swept_folder: Path) -> None:
        while len(list(swept_folder.glob("runs/*.parquet"))) < 3:
            time.sleep(0.01)
        address, pid = next(iter(client.run(os.getpid).items()))
        os.kill(pid, signal.SIGKILL)
        killed.append(address)

    with ThreadPoolExecutor(1) as beside:
        killing = beside.submit(kill, tmp_path)
        swept = blklab.sweep(
            LOADS, out=tmp_path, executor=client.get_executor(), batch_seconds=0.1, **ASKED
        )
        killing.result()
    assert killed
    keys = [r["key"] for r in rows(swept)]
    assert len(set(keys)) == 480
    assert len(keys) == len({(r["key"], r["job"], r["direction"]) for r in rows(swept)})
    assert not len(swept.failures)


def test_killing_batches_are_what_they_say(tmp_path):
    # The helper above must run what it does not kill.
    planned = blklab._sweep._run.plan(
        LOADS["reads"], [blklab._sweep._factors.factor("sched", ["none"])]
    )
    runs = tuple(planned.runs())
    source = next(iter(planned.experiments.values())).source
    batch = _work.Batch(
        str(tmp_path / "x.parquet"),
        {0: source},
        {0: "job"},
        tuple(planned.columns),
        runs,
        0,
        False,
        False,
    )
    assert killing_batch(batch).done == 1
