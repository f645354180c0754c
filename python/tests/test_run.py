# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs and matrices, and what they refuse."""

import pickle
import threading

import blklab
import pytest


def test_a_run_repeats_bit_for_bit_and_its_numbers_are_fios(reader):
    first = blklab.run(reader, device="nvme-consumer", kernel="7.3", sched="mq-deadline")
    again = blklab.run(reader, device="nvme-consumer", kernel="7.3", sched="mq-deadline")
    assert first.digest == again.digest
    assert first.metric("ios", job="reader", direction="read") == 64
    fio = first.fio_json()
    assert fio["jobs"][0]["read"]["total_ios"] == 64
    assert fio["jobs"][0]["read"]["clat_ns"]["max"] == first.metric("clat_max_ns", job="reader")
    assert first.record["digest"] == first.digest
    assert first.metrics["disk"].keys() >= {"disk_util_percent"}


def test_events_lives_and_bios_tell_the_same(reader):
    run = blklab.run(reader, device="sata-7200-2008", sched="bfq", kernel="6.12")
    assert len(run.lives) == len(run.bios) == 64
    actions = run.events["action"]
    assert actions.count("D") == actions.count("C") == 64
    d2c = [c - d for c, d in zip(run.lives["complete_ns"], run.lives["issue_ns"], strict=True)]
    assert d2c == run.lives["d2c_ns"]
    assert all(ns > 0 for ns in d2c)


def test_texts_files_dictionaries_and_scenarios_are_the_same_experiment(reader, tmp_path):
    text = "[reader]\nrw=randread\ndirect=1\nsize=64m\nio_size=256k\n"
    file = tmp_path / "job.fio"
    file.write_text(text)
    toml = f'kernel = "7.3"\nscheduler = "none"\njob = """\n{text}"""\n'
    runs = [
        blklab.run(job, kernel="7.3", sched="none", device="nvme-consumer")
        for job in (reader, text, file, str(file), toml, blklab.experiment(reader))
    ]
    assert len({run.digest for run in runs}) == 1
    assert blklab.experiment("dd+cat").id == "dd+cat"


def test_an_experiment_travels_to_other_processes(reader):
    there = pickle.loads(pickle.dumps(blklab.experiment(reader)))
    assert blklab.run(there).digest == blklab.run(reader).digest


def test_a_matrix_has_every_combination_in_order(reader):
    settings = {"nr_requests": [8, 64]}
    runs = blklab.matrix(
        reader, sched=["none", "bfq"], device="sata-7200-2008", set=settings, repeat=2
    )
    assert [run.name for run in runs[::2]] == [
        "none nr_requests=8",
        "none nr_requests=64",
        "bfq nr_requests=8",
        "bfq nr_requests=64",
    ]
    assert [run.repetition for run in runs] == [0, 1] * 4
    assert runs[0].label == {"scheduler": "none", "nr_requests": "8"}
    assert runs.jobs["nr_requests"] == ["8", "8", "64", "64"] * 2
    assert len(runs.named("bfq nr_requests=8")) == 2
    with pytest.raises(blklab.InputError, match="no run 'cfq'"):
        runs.named("cfq")


def test_repetitions_draw_other_offsets(reader):
    runs = blklab.run(reader, device="sata-7200-2008", repeat=3)
    assert len({run.digest for run in runs}) == 3


def test_threads_change_nothing(reader):
    one = blklab.matrix(reader, sched=["none", "mq-deadline", "bfq"], threads=1)
    two = blklab.matrix(reader, sched=["none", "mq-deadline", "bfq"], threads=2)
    assert [run.digest for run in one] == [run.digest for run in two]


def test_other_threads_of_python_go_on_meanwhile(reader):
    job = {"reader": {**reader["reader"], "io_size": "64m"}}
    turns = 0
    done = threading.Event()

    def run():
        blklab.run(job, device="sata-7200-2008")
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        turns += 1
        done.wait(0.001)
    thread.join()
    assert turns > 1


@pytest.mark.parametrize(
    ("kind", "words", "wrong"),
    [
        (blklab.InputError, "sched=cqf: no scheduler is called 'cqf'", {"sched": "cqf"}),
        (blklab.UnknownNameError, "kernel=nine: 'nine' is no kernel", {"kernel": "nine"}),
        (blklab.InputError, "device=nvme", {"device": "nvme"}),
        (blklab.InputError, "device.*is no parameter", {"device": "nvme-consumer,7"}),
        (blklab.UnknownNameError, "nothing to set is called", {"set": {"nr_reqests": 1}}),
        (blklab.InputError, "sched has 2 values: blklab.matrix", {"sched": ["none", "bfq"]}),
        (blklab.InputError, "repeat=0: at least 1", {"repeat": 0}),
        (blklab.InputError, "no collect is called", {"collect": "all"}),
    ],
)
def test_what_is_wrong_is_said_in_the_commands_words(reader, kind, words, wrong):
    with pytest.raises(kind, match=words):
        blklab.run(reader, **wrong)


def test_wrong_jobs_say_the_line():
    with pytest.raises(blklab.InputError, match=r"job.fio:2: .*rw=foo"):
        blklab.run({"a": {"rw": "foo"}})
    with pytest.raises(blklab.MissingFileError, match=r"no-such\.fio: cannot read"):
        blklab.run("no-such.fio")
    with pytest.raises(blklab.InputError, match=r"experiment\.json"):
        blklab.run({"kernel": "7.3"})


def test_a_number_that_is_not_one_is_refused(reader):
    job = {**reader, "writer": {**reader["reader"], "rw": "randwrite"}}
    run = blklab.run(job)
    with pytest.raises(blklab.InputError, match="several have it: name a job and a direction"):
        run.metric("iops")
    with pytest.raises(blklab.InputError, match="nobody has it"):
        run.metric("iops", job="nobody")
    with pytest.raises(blklab.InputError, match="no metric 'clat_p98'"):
        run.metric("clat_p98", job="reader")
    assert run.metric("iops", job="writer", direction="write") > 0


def test_lists_have_what_there_is():
    for what in ("schedulers", "tunables", "devices", "kernels", "changes", "targets", "patches",
                 "scenarios", "filesystems", "dm", "formats", "findings"):  # fmt: skip
        entries = getattr(blklab.list, what)()
        assert entries and all(entry["name"] for entry in entries), what
    assert "bfq" not in [s["name"] for s in blklab.list.schedulers(kernel="2.6.28")]
    columns = {m["column"]: m for m in blklab.list.metrics()}
    assert columns["clat_p99_ns"]["better"] == "lower"
    assert columns["iops"]["better"] == "higher"
