# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces, run directories, comparisons and pages."""

import blklab
import pytest

TRACE = """\
  8,0 0 1 0.000000000 10 Q R 64 + 8 [x]
  8,0 0 2 0.000001000 10 G R 64 + 8 [x]
  8,0 0 3 0.000002000 10 D R 64 + 8 [x]
  8,0 0 4 0.000102000 0 C R 64 + 8 [0]
"""


def test_a_trace_of_another_tool(tmp_path):
    file = tmp_path / "trace.txt"
    file.write_text(TRACE)
    trace = blklab.load(file)
    assert trace.lives["d2c_ns"] == [100_000]
    assert trace.events["action"] == ["Q", "G", "D", "C"]
    assert trace.reading["damaged"] == 0
    assert trace.stats()["devices"]
    assert "only 1 request" in trace.why().verdict


def test_what_is_no_trace_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("dear diary\n")
    with pytest.raises(blklab.InputError, match="expected a trace"):
        blklab.load(file)
    with pytest.raises(blklab.BlklabError, match="no-such"):
        blklab.load(tmp_path / "no-such")


def test_a_saved_run_is_the_same_run(reader, tmp_path):
    run = blklab.run(reader, device="sata-7200-2008", sched="bfq")
    run.save(tmp_path / "out")
    there = blklab.load(tmp_path / "out")
    assert there.events.rows() == run.events.rows()
    assert blklab.run(tmp_path / "out").digest == run.digest
    again = blklab.compare(run, tmp_path / "out")
    assert again["identical"]
    # What is not of a run directory is not replaced.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "job.fio").write_text("mine")
    with pytest.raises(blklab.InputError, match="is not replaced"):
        run.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "job.fio").read_text() == "mine"


def test_why_names_the_cause_in_words_and_rows():
    job = {
        "backup": {"rw": "write", "bs": "1m", "size": "64m"},
        "wal": {"rw": "write", "bs": "4k", "size": "1m", "fdatasync": 1},
    }
    run = blklab.run(job, device="sata-7200-2008", fs="ext4", kernel="6.12")
    why = run.why()
    assert why["verdict"]["sentence"] == why.verdict
    assert why.findings.rows() == run.findings.rows()
    assert why.findings["kind"][0] in str(why)


def test_comparisons_have_intervals_and_verdicts(reader):
    runs = blklab.matrix(reader, device=["sata-7200-2008", "nvme-consumer"], repeat=5)
    before, after = runs[:5], runs[5:]
    compared = blklab.compare(before, after)
    assert compared["before"] == "sata-7200-2008"
    assert compared["after"] == "nvme-consumer"
    (row,) = [r for r in compared.changes if r["metric"] == "clat_p99_ns"]
    assert row["ratio"] < 0.5
    assert row["verdict"] == "better"


def test_a_page_about_runs_and_traces(reader, tmp_path):
    (tmp_path / "trace.txt").write_text(TRACE)
    page = tmp_path / "page.html"
    runs = blklab.matrix(reader, sched=["none", "bfq"])
    blklab.report([runs, blklab.load(tmp_path / "trace.txt")], page)
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert not [*tmp_path.glob("*.part")]
