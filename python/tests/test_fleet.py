# SPDX-License-Identifier: MIT OR Apache-2.0
"""Surveys of many traces: a thousand small ones, of which some are slow and some damaged."""

import random
from concurrent.futures import ThreadPoolExecutor

import blklab
import pytest
from blklab.fleet import Fleet, survey
from blklab.fleet._peers import against

MODELS = {"hdd-a": 8_000_000, "ssd-b": 400_000, "nvme-c": 80_000}


def text_of(rng: random.Random, mean_ns: float, times_slower: float, pause_ns: float) -> str:
    """A trace as blkparse prints it: reads one by one, each with its time at the device."""
    lines = []
    now, seq = 0, 1
    for number in range(60):
        sector = rng.randrange(1 << 20) * 8
        took = mean_ns * rng.lognormvariate(0, 0.35) * times_slower
        for action, at in (("Q", now), ("G", now + 500), ("I", now + 900), ("D", now + 1500)):
            lines.append(line(seq, at, action, sector))
            seq += 1
        now = int(now + 1500 + took)
        lines.append(line(seq, now, "C", sector))
        seq += 1
        now += int(rng.expovariate(1 / pause_ns)) + number
    return "".join(lines)


def line(seq: int, at: int, action: str, sector: int) -> str:
    seconds, ns = divmod(at, 1_000_000_000)
    who = "0" if action == "C" else "[db]"
    return f"8,0    0 {seq:8} {seconds:5}.{ns:09}  4711  {action}   R {sector} + 8 {who}\n"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """A thousand traces: hosts with three disks each; some disks, and one host, are slow."""
    root = tmp_path_factory.mktemp("fleet")
    rng = random.Random(7)
    for host in range(333):
        for model, mean in MODELS.items():
            folder = root / f"host{host:03}" / model
            folder.mkdir(parents=True)
            slower = 1.0
            if (host, model) in {(17, "hdd-a"), (42, "ssd-b"), (99, "nvme-c")}:
                slower = 3.0
            if host == 200:
                slower = 2.5
            (folder / "trace.txt").write_text(text_of(rng, mean, slower, mean * 5))
    folder = root / "host999" / "hdd-a"
    folder.mkdir(parents=True)
    (folder / "trace.txt").write_bytes(b"\x00\x01\x02 nothing of this is a trace" * 10)
    return root


PATTERN = r"(?P<host>host\d+)/(?P<model>[^/]+)/"


@pytest.fixture(scope="module")
def surveyed(traces, tmp_path_factory):
    out = tmp_path_factory.mktemp("survey")
    with ThreadPoolExecutor(2) as threads:
        return survey(
            f"{traces}/**/*.txt", out=out, pattern=PATTERN, executor=threads
        )  # fmt: skip


def test_every_trace_counts_also_those_that_nobody_can_read(surveyed, traces):
    counts = surveyed.counts
    assert (counts["traces"], counts["read"], counts["not_read"]) == (1000, 999, 1)
    assert (counts["hosts"], counts["devices"]) == (333, 999)
    (failure,) = surveyed.failures
    assert failure["path"] == f"{traces}/host999/hdd-a/trace.txt"
    assert failure["host"] == "host999"
    assert failure["text"] and "\n" not in failure["text"]
    assert "1 could not be read" in str(surveyed)
    assert "host999" in str(surveyed)


def test_slow_devices_are_found_and_no_others(surveyed):
    slow = {(r["host"], r["model"]) for r in surveyed.slow_devices()}
    assert slow == {
        ("host017", "hdd-a"),
        ("host042", "ssd-b"),
        ("host099", "nvme-c"),
        *(("host200", model) for model in MODELS),
    }
    worst = surveyed.slow_devices().rows()[0]
    assert 2.0 < worst["ratio"] < 5.0
    assert worst["peers"] == 333
    (host,) = surveyed.slow_hosts()
    assert (host["host"], host["devices"]) == ("host200", 3)
    with pytest.raises(blklab.InputError, match="figure='speed'"):
        surveyed.slow_devices(figure="speed")


def test_the_numbers_of_a_row_are_those_of_the_trace(surveyed, traces):
    path = f"{traces}/host005/ssd-b/trace.txt"
    (row,) = [r for r in surveyed.to_arrow().to_pylist() if r["path"] == path]
    stats = blklab.load(path).stats()
    d2c = stats["devices"][0]["phases"]["d2c"]
    assert row["requests"] == d2c["count"] == 60
    assert row["d2c_max_ns"] == d2c["max"]
    assert row["d2c_p99_ns"] == dict(map(tuple, d2c["percentiles"]))[99.0]
    assert row["rate"] == pytest.approx(60 / (stats["end_ns"] - stats["start_ns"]) * 1e9)
    assert (row["host"], row["model"], row["kernel"]) == ("host005", "ssd-b", None)


def test_what_was_read_is_not_read_again_unless_it_changed(tmp_path, traces):
    some = [traces / f"host00{i}" for i in range(5)]
    with ThreadPoolExecutor(1) as threads:
        asked = {"out": tmp_path / "out", "pattern": PATTERN, "executor": threads}
        assert survey(some, **asked).tally.done == 15
        assert survey(some, **asked).tally.done == 0
        mine = tmp_path / "host777" / "ssd-b"
        mine.mkdir(parents=True)
        for seed in (1, 2):
            (mine / "t.txt").write_text(text_of(random.Random(seed), 4e5, 1.0, 1e6))
            assert survey([*some, mine], **asked).tally.done == 1
        with pytest.raises(blklab.InputError, match="it has a sweep with columns"):
            survey(some, out=tmp_path / "out", pattern="(?P<rack>host.)", executor=threads)


def test_addresses_of_fsspec_and_files_of_processes_are_read(tmp_path, traces):
    import fsspec

    memory = fsspec.filesystem("memory")
    for host in range(3):
        text = (traces / f"host00{host}" / "ssd-b" / "trace.txt").read_bytes()
        memory.pipe(f"/fleet/host00{host}/ssd-b/t.txt", text)
    with ThreadPoolExecutor(1) as threads:
        there = survey(
            "memory://fleet/*/*/*.txt", out=tmp_path / "a", pattern=PATTERN, executor=threads
        )
    here = survey(
        [traces / f"host00{host}" / "ssd-b" for host in range(3)],
        out=tmp_path / "b",
        pattern=PATTERN,
        workers=2,
    )
    columns = ["host", "model", "d2c_p99_ns", "q2c_max_ns", "requests", "findings"]
    assert there.to_arrow().select(columns) == here.to_arrow().select(columns)
    with pytest.raises(blklab.MissingFileError):
        survey("memory://fleet/nobody", out=tmp_path / "c")


def test_a_recording_of_several_processors_is_one_trace(tmp_path):
    import shutil
    from pathlib import Path

    data = Path(__file__).parents[2] / "testdata" / "blkparse"
    for part in data.glob("all-actions.blktrace.*"):
        shutil.copy(part, tmp_path / part.name)
    about = tmp_path / "about.csv"
    about.write_text("file,host,model,kernel\nall-actions.blktrace.0,h1,disk,6.1\n")
    with ThreadPoolExecutor(1) as threads:
        fleet = survey(
            f"{tmp_path}/*.blktrace.*", out=tmp_path / "out", about=about, executor=threads
        )
    assert fleet.counts["traces"] == 1
    rows = fleet.to_arrow().to_pylist()
    assert {(r["host"], r["model"], r["kernel"]) for r in rows} == {("h1", "disk", "6.1")}
    whole = blklab.load(data / "all-actions.blktrace.0").stats()
    assert rows[0]["events"] == whole["nr_events"]


def test_findings_are_counted_by_what_is_known(tmp_path):
    from pathlib import Path

    data = Path(__file__).parents[2] / "testdata" / "blkparse"
    with ThreadPoolExecutor(1) as threads:
        fleet = survey(
            [data / "sync-write-stall-2.6.26.txt", data / "sync-write-2.6.24.txt"],
            out=tmp_path,
            about={
                "sync-write-stall-2.6.26.txt": {"host": "a", "kernel": "2.6.26"},
                "sync-write-2.6.24.txt": {"host": "b", "kernel": "2.6.24"},
            },
            executor=threads,
        )
    held = [r for r in fleet.findings(by="kernel") if r["kind"] == "held-back"]
    assert [(r["kernel"], r["traces"], r["share"]) for r in held][:1] == [("2.6.26", 1, 1.0)]
    assert held[0]["total_s"] == pytest.approx(4.47, abs=0.01)
    with pytest.raises(blklab.InputError, match="by='rack'"):
        fleet.findings(by="rack")


def test_more_to_do_is_no_fault():
    """Latency that grows with the rate is that of all peers; the slow one is slower than that."""
    rng = random.Random(1)
    items = []
    for number in range(40):
        rate = 10 ** rng.uniform(2, 4)
        p99 = 1e5 * rate**0.5 * rng.lognormvariate(0, 0.05)
        items.append({"name": number, "model": "m", "rate": rate, "p99": p99})
    items.append({"name": "slow", "model": "m", "rate": 150.0, "p99": 1e5 * 150**0.5 * 2})
    # It is slower than the fastest busy ones are, and yet not the slowest.
    assert items[-1]["p99"] < max(i["p99"] for i in items)
    found = [i for i in against(items, "model", "p99", 5) if i["sigmas"] > 3.5 and i["ratio"] > 1.5]
    assert [i["name"] for i in found] == ["slow"]
    assert found[0]["ratio"] == pytest.approx(2, rel=0.15)
    assert against(items[:4], "model", "p99", 5) == []


def test_the_command_surveys(tmp_path, traces, capsys):
    from blklab import _command

    (tmp_path / "broken.txt").write_bytes(b"\x00\x01\x02")
    said = [str(traces / "host001"), str(tmp_path / "broken.txt"), "--out", str(tmp_path / "o")]
    assert _command.fleet([*said, "--pattern", PATTERN, "--threads"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 traces of 1 hosts and 3 devices: 3 read, 1 could not be read\n")
    assert _command.fleet(["/nowhere/x", "--out", str(tmp_path / "p")]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_a_sweep_is_no_survey(tmp_path):
    (tmp_path / "sweep.json").write_text('{"format": 1, "columns": {}}')
    with pytest.raises(blklab.InputError, match="a sweep, not a survey"):
        Fleet(tmp_path)


def test_surveys_of_several_days_are_one(tmp_path):
    """A device that is slow on one day of three is none; the one that is slow on two is."""
    rng = random.Random(3)
    days = []
    with ThreadPoolExecutor(2) as threads:
        for day in range(3):
            for host in range(8):
                slower = 3.0 if (host, day) in {(5, 0), (5, 2), (2, 0)} else 1.0
                folder = tmp_path / f"day{day}" / f"host{host}" / "ssd"
                folder.mkdir(parents=True)
                (folder / "t.txt").write_text(text_of(rng, 4e5, slower, 2e6))
            days.append(tmp_path / f"rows{day}")
            survey(tmp_path / f"day{day}", out=days[-1], pattern=PATTERN, executor=threads)
    assert {r["host"] for r in Fleet(days[0]).slow_devices()} == {"host2", "host5"}
    every = Fleet(*days)
    assert every.counts["traces"] == 24
    assert [(r["host"], r["traces"]) for r in every.slow_devices()] == [("host5", 3)]
