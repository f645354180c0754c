# SPDX-License-Identifier: MIT OR Apache-2.0
"""Schedulers of one's own."""

import sys
from pathlib import Path

import blklab
import pytest
from blklab.testing import check_scheduler

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from sstf import Sstf


class Fifo(blklab.Scheduler):
    """First come, first served."""

    name = "py-fifo"

    def __init__(self, queue):
        super().__init__(queue)
        self.waiting = []

    def insert(self, request, at_head):
        self.waiting.insert(0 if at_head else len(self.waiting), request)

    def dispatch(self):
        return self.waiting.pop(0) if self.waiting else None

    def absorbed(self, request, other):
        self.waiting.remove(other)


def broken(name, **methods):
    return type(name, (Fifo,), {"name": name, **methods})


def test_a_scheduler_keeps_what_all_schedulers_keep():
    check_scheduler(Fifo, runs=10)


def test_a_class_that_is_written_anew_takes_the_place_of_the_old(reader):
    def last(self):
        return self.waiting.pop() if self.waiting else None

    job = {"reader": {**reader["reader"], "iodepth": 64, "ioengine": "libaio"}}
    first = blklab.run(job, sched=broken("py-mine"), device="sata-7200-2008")
    second = blklab.run(job, sched=broken("py-mine", dispatch=last), device="sata-7200-2008")
    assert first.record["scheduler"] == second.record["scheduler"] == "py-mine"
    assert first.digest != second.digest


def test_tunables_are_settings(reader):
    class Lazy(Fifo):
        """Waits for a while."""

        name = "py-lazy"
        tunables = {"delay_us": (0, 0, 1_000_000, "how long it waits before each request")}

        def insert(self, request, at_head):
            super().insert(request, at_head)
            self.due = self.queue.now_ns + 1000 * self.queue.tunables["delay_us"]

        def dispatch(self):
            if self.queue.now_ns < self.due:
                self.queue.wake_in(self.due - self.queue.now_ns)
                return None
            return super().dispatch()

    prompt, late = (
        blklab.run(reader, sched=Lazy, device="nvme-consumer", set={"delay_us": us})
        for us in (0, 500)
    )
    assert late.metric("clat_p50_ns") >= prompt.metric("clat_p50_ns") + 490_000
    with pytest.raises(blklab.InputError, match="delay_us"):
        blklab.run(reader, sched=Lazy, set={"delay_us": "soon"})


@pytest.mark.parametrize(
    ("methods", "kind", "words"),
    [
        ({"dispatch": lambda self: None}, blklab.InvariantError, "nobody would ask again"),
        ({"dispatch": lambda self: self.waiting[0]}, blklab.InvariantError, "has left already"),
        ({"dispatch": lambda self: 1 // 0}, ZeroDivisionError, "by zero"),
        ({"dispatch": lambda self: 7}, TypeError, "dispatch returned 7"),
        ({"insert": lambda self, request: None}, TypeError, "takes 2 positional"),
        ({"completed": lambda self, request: 1 // 0}, ZeroDivisionError, "by zero"),
    ],
)
def test_what_breaks_an_invariant_is_named(reader, methods, kind, words):
    with pytest.raises(kind, match=words):
        blklab.run(reader, sched=broken("py-broken", **methods), device="sata-7200-2008")


def test_what_breaks_is_named_wherever_it_runs(reader):
    wrong = broken("py-wrong", dispatch=lambda self: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        blklab.kernels(reader, ["6.1", "7.3"], sched=wrong, repeat=1)
    with pytest.raises(ZeroDivisionError):
        blklab.matrix(reader, sched=["none", wrong])


def test_the_names_of_blklabs_schedulers_are_taken(reader):
    with pytest.raises(blklab.InputError, match="a scheduler of blklab is called bfq"):
        blklab.run(reader, sched=broken("bfq"))
    with pytest.raises(blklab.InputError, match="no spaces or commas"):
        blklab.run(reader, sched=broken("my own"))


#: Digests of the same runs with the scheduler `sstf` of examples/write-a-scheduler, whose
#: tests have them, too.
TWIN = {"reads": "ee4d2f452968af0c", "mixed": "cfaf621e4f7879a1"}

JOBS = {
    "reads": "[r]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\nsize=1g\nio_size=2m\n",
    "mixed": (
        "[w]\nrw=write\nsize=8m\nfsync=64\n"
        "[r]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nsize=1g\nio_size=1m\n"
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_it_dispatches_as_its_twin_in_rust(job):
    run = blklab.run(JOBS[job], sched=Sstf, kernel="6.12", device="sata-7200-2008")
    assert run.digest == TWIN[job]


def test_shortest_seek_time_first_keeps_what_all_keep():
    check_scheduler(Sstf, runs=10)
