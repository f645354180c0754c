# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: designs, conditions, tables, what is run again, what fails."""

import threading
from concurrent.futures import ThreadPoolExecutor

import blklab
import pytest
from blklab._sweep import _design, _driver, _where
from blklab._sweep._bins import Bins
from blklab._sweep._factors import Factor, Range, factor
from sweep_jobs import LOADS, rows


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_a_run_of_a_sweep_is_the_run_of_the_matrix(tmp_path, threads):
    asked = {"sched": ["none", "mq-deadline"], "device": "sata-ssd", "repeat": 3}
    swept = blklab.sweep(LOADS["syncs"], out=tmp_path, executor=threads, **asked)
    runs = blklab.matrix(LOADS["syncs"], **asked)
    of_matrix = {(run.name, run.repetition): run for run in runs}
    assert len(swept.to_arrow()) == 2 * sum(len(run.jobs) for run in runs) // 2
    for row in rows(swept):
        run = of_matrix[row["sched"], row["repetition"]]
        assert row["digest"] == run.digest
        assert row["seed"] == run.seed
        assert row["clat_p99_ns"] == run.metric(
            "clat_p99_ns", job=row["job"], direction=row["direction"]
        )
        assert row["disk_util_percent"] == run.metric("disk_util_percent")


def test_what_is_there_is_not_run_again_and_more_is_added(tmp_path, threads):
    asked = {"out": tmp_path, "executor": threads, "device": "nvme-consumer"}
    first = blklab.sweep(LOADS["reads"], sched=["none"], repeat=2, **asked)
    assert (first.tally.done, first.tally.there) == (2, 0)
    files = first.files
    again = blklab.sweep(LOADS["reads"], sched=["none"], repeat=2, **asked)
    assert (again.tally.done, again.tally.there, again.files) == (0, 2, files)
    more = blklab.sweep(LOADS["reads"], sched=["none", "bfq"], repeat=3, **asked)
    assert (more.tally.done, more.tally.there) == (4, 2)
    assert len({row["key"] for row in rows(more)}) == 6
    with pytest.raises(blklab.InputError, match="it has a sweep with columns"):
        blklab.sweep(LOADS["reads"], kernel="6.1", **asked)


def test_another_job_of_the_same_name_is_another_run(tmp_path, threads):
    asked = {"out": tmp_path, "executor": threads, "device": "nvme-consumer"}
    for size in ("64k", "128k", "64k"):
        job = {"r": {"rw": "randread", "direct": 1, "size": "16m", "io_size": size}}
        swept = blklab.sweep(job, **asked)
    assert swept.tally.there == 1
    assert sorted(row["ios"] for row in rows(swept)) == [16, 32]


def test_a_device_file_that_changes_makes_other_runs(tmp_path, threads):
    device = tmp_path / "d.toml"
    counts = []
    for latency in ("100000", "200000", "100000"):
        device.write_text(f'[device]\nname = "null_blk"\ncompletion_nsec = {latency}\n')
        swept = blklab.sweep(LOADS["reads"], device=device, out=tmp_path / "out", executor=threads)
        counts.append(swept.tally.there)
    assert counts == [0, 0, 1]


def test_designs_keep_to_ranges_and_conditions():
    factors = [
        Factor("sched", ("none", "bfq", "kyber")),
        Factor("n", range=Range(4, 1024, log=True, integer=True)),
    ]
    few = _where.condition("sched == 'none' or n < 100", ["sched", "n"])
    for design in _design.SAMPLED:
        points = _design.points(design, factors, 32, 7, [few])
        assert points == _design.points(design, factors, 32, 7, [few])
        assert points != _design.points(design, factors, 32, 8, [few])
        assert len(set(points)) == 32
        assert all(4 <= n <= 1024 and (s == "none" or n < 100) for s, n in points)
        assert {s for s, _ in points} == {"none", "bfq", "kyber"}
        # Logarithmic: about half of them below the geometric mean.
        below = sum(n < 64 for s, n in _design.points(design, factors, 64, 1, []))
        assert 22 <= below <= 42, design
    with pytest.raises(blklab.InputError, match="a grid needs a list of values"):
        _design.points("grid", factors, None, 0, [])
    stepped = factor("n", {"low": 1, "high": 100, "log": True, "steps": 3})
    assert _design.points("grid", [stepped], None, 0, []) == [(1,), (10,), (100,)]


def test_a_latin_hypercube_has_one_point_in_each_slice():
    points = _design.points(
        "latin-hypercube", [Factor("x", range=Range(0.0, 1.0)), Factor("y", (1, 2))], 10, 3, []
    )
    assert sorted(int(x * 10) for x, _ in points) == list(range(10))
    assert sorted(y for _, y in points) == [1] * 5 + [2] * 5


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("sched in ['none', 'bfq'] and n * 2 == 64", True),
        ("not (device.rpm > 7000) and 10 < n <= 32", False),
        ("n % 5 == 2 and -n < 0", True),
        ("device.rpm // 1000 == 7 or missing", None),
        ("__import__('os').system('true')", None),
        ("n.__class__", None),
        ("(lambda: 1)()", None),
        ("[x for x in [1]]", None),
        ("n ** 99999999", None),
        ("'a' * 9999999999 == sched", None),
        ("n <", None),
        ("sched < 3", None),
        ("n / 0", None),
        ("(" * 500 + ")" * 500, None),
    ],
)
def test_conditions_say_what_they_may_and_nothing_else(text, holds):
    point = {"sched": "bfq", "n": 32, "device.rpm": 7200}
    if holds is None:
        with pytest.raises(blklab.InputError, match=r"^where="):
            _where.condition(text, list(point))(point)
    else:
        assert _where.condition(text, list(point))(point) is holds


def test_a_function_is_a_condition(tmp_path, threads):
    swept = blklab.sweep(
        LOADS,
        sched=["none", "bfq"],
        where=["sched != 'bfq' or experiment == 'syncs'", lambda p: p["experiment"] != "reads"],
        out=tmp_path,
        executor=threads,
    )
    assert {(r["experiment"], r["sched"]) for r in rows(swept)} == {
        ("syncs", "none"),
        ("syncs", "bfq"),
    }


def test_failed_runs_are_kept_with_their_reason(tmp_path, threads):
    asked = {"out": tmp_path, "executor": threads, "repeat": 2}
    swept = blklab.sweep(
        LOADS["reads"], kernel=["2.6.28", "7.3"], sched=["none", "deadline"], **asked
    )
    failed = swept.failures.rows()
    assert [(r["kernel"], r["sched"]) for r in failed] == [("2.6.28", "none")] * 2 + [
        ("7.3", "deadline")
    ] * 2
    assert all(r["class"].endswith("Error") and "\n" not in r["text"] for r in failed)
    assert {(r["kernel"], r["sched"]) for r in rows(swept)} == {
        ("2.6.28", "deadline"),
        ("7.3", "none"),
    }
    assert (
        blklab.sweep(
            LOADS["reads"], kernel=["2.6.28", "7.3"], sched=["none", "deadline"], **asked
        ).tally.there
        == 8
    )


def test_what_is_wrong_everywhere_is_said_at_once(tmp_path, threads):
    asked = {"out": tmp_path / "out", "executor": threads}
    wrong = [
        ({"set": {"nr_request": [1, 2]}}, "nr_request"),
        ({"device": "floppy"}, "floppy"),
        ({"design": "sobol", "set": {"nr_requests": {"low": 4, "high": 8}}}, "points=None"),
        ({"design": "triangle"}, "triangle"),
        ({"set": {"nr_requests": {"low": 8, "high": 4}}}, "is not below"),
        ({"set": {"nr_requests": {"from": 8}}}, "'from' is no key"),
        ({"set": {"nr_requests": [4, 4]}}, "twice"),
        ({"sched": []}, "empty list"),
        ({"set": {"seed": [1, 2]}}, "seed is a keyword"),
        ({"where": "sched == 'none'"}, "no factor is called 'sched'"),
        ({"sched": ["none"], "where": "sched == 'bfq'"}, "no point fulfils"),
        ({"repeat": 0}, "repeat=0"),
        ({"shard": "5/4"}, "shard="),
        ({"budget_runs": 0}, "budget_runs=0"),
        ({"workers": 0}, "workers=0"),
    ]
    for keywords, said in wrong:
        with pytest.raises(blklab.InputError, match=said) as e:
            blklab.sweep(LOADS["reads"], **asked, **keywords)
        assert "\n" not in str(e.value)
    assert not list((tmp_path / "out").glob("runs/*.parquet"))


def test_shards_are_all_of_it_together(tmp_path, threads):
    asked = {"device": ["nvme-consumer", "sata-ssd"], "repeat": 6, "executor": threads}
    folders = [tmp_path / f"{i}" for i in (1, 2, 3)]
    shards = [
        blklab.sweep(LOADS, out=folder, shard=f"{i}/3", **asked)
        for i, folder in enumerate(folders, 1)
    ]
    assert all(s.tally.asked > 0 for s in shards)
    assert sum(s.tally.asked for s in shards) == 24
    whole = blklab.sweep(LOADS, out=tmp_path / "whole", **asked)
    assert rows(blklab.Sweep(*folders)) == rows(whole)


def test_a_budget_is_kept_and_is_a_fair_part(tmp_path, threads):
    asked = {"device": ["nvme-consumer", "sata-ssd"], "sched": ["none", "bfq"], "repeat": 4}
    part = blklab.sweep(LOADS, out=tmp_path, budget_runs=8, executor=threads, **asked)
    assert part.tally.done == 8
    assert part.tally.ended == "the budget of 8 runs is spent"
    # All points once, not one point eight times.
    assert {r["repetition"] for r in rows(part)} == {0}
    none = blklab.sweep(LOADS, out=tmp_path, budget_seconds=1e-9, executor=threads, **asked)
    assert (none.tally.done, none.tally.ended) == (0, "the budget of 1e-09 s is spent")
    rest = blklab.sweep(LOADS, out=tmp_path, executor=threads, **asked)
    assert (rest.tally.there, rest.tally.done) == (8, 24)


def test_two_sweeps_do_not_write_to_one_folder(tmp_path, threads):
    store = _driver.Store(
        tmp_path, blklab._sweep._run.plan(LOADS["reads"], [factor("sched", ["none"])])
    )
    with store, pytest.raises(blklab.InputError, match=r"another sweep writes to it .process"):
        blklab.sweep(LOADS["reads"], sched=["none"], out=tmp_path, executor=threads)
    assert (
        blklab.sweep(LOADS["reads"], sched=["none"], out=tmp_path, executor=threads).tally.done == 1
    )


def test_a_summary_has_intervals_over_repetitions(tmp_path, threads):
    job = {"r": {"rw": "randread", "direct": 1, "size": "64m", "io_size": "256k"}}
    swept = blklab.sweep(
        job, device=["nvme-consumer", "sata-ssd"], repeat=5, out=tmp_path, executor=threads
    )
    (fast, slow) = swept.summary("clat_mean_ns", by="device").rows()
    values = [r["clat_mean_ns"] for r in rows(swept) if r["device"] == "nvme-consumer"]
    assert fast["repetitions"] == 5 == len(values)
    from scipy import stats

    low, high = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    assert (fast["low"], fast["high"]) == pytest.approx((low, high))
    assert fast["high"] < slow["low"]
    both = swept.summary("clat_mean_ns", by=["experiment"]).rows()[0]
    assert both["repetitions"] == 5
    assert both["mean"] == pytest.approx((fast["mean"] + slow["mean"]) / 2)
    (best,) = swept.best("clat_mean_ns").rows()
    assert (best["device"], best["sure"]) == ("nvme-consumer", 1)
    (most,) = swept.best("iops", aim="lower").rows()
    assert most["device"] == "sata-ssd"
    with pytest.raises(blklab.InputError, match="'p99' is no column"):
        swept.summary("p99")
    with pytest.raises(blklab.InputError, match="nobody is job=x"):
        swept.summary("clat_mean_ns", job="x")


def test_equal_points_have_no_sure_best(tmp_path, threads):
    # Reads one by one: the number of requests makes no difference.
    swept = blklab.sweep(
        LOADS["reads"], set={"nr_requests": [32, 64]}, repeat=3, out=tmp_path, executor=threads,
        device="nvme-consumer", sched="bfq",
    )  # fmt: skip
    (best,) = swept.best("clat_mean_ns").rows()
    assert best["sure"] == 0


def test_percentiles_of_several_rows_are_those_of_all_their_calls(tmp_path, threads):
    swept = blklab.sweep(
        LOADS["reads"], device=["sata-7200-2008", "sata-ssd"], repeat=3, bins=True,
        out=tmp_path, executor=threads,
    )  # fmt: skip
    every = swept.percentiles([50, 99], by=[], job="r").rows()[0]
    import json

    values = sorted(
        value
        for row in rows(swept)
        for value, count in json.loads(row["clat_bins"])
        for _ in range(count)
    )
    assert every["count"] == len(values) == sum(row["ios"] for row in rows(swept)) == 96
    assert every["p50_ns"] == values[47]
    assert every["p99_ns"] == max(row["clat_max_ns"] for row in rows(swept))
    # Of one row they are what fio says of it.
    one = swept.percentiles([50, 99], by=["device"]).rows()
    assert len(one) == 2
    single = blklab.sweep(
        LOADS["reads"], device=["sata-ssd"], bins=True, out=tmp_path / "1", executor=threads
    )
    (row,) = rows(single)
    assert single.percentiles([99]).rows()[0]["p99_ns"] == row["clat_p99_ns"]


def test_bins_of_nothing_have_no_percentile():
    assert Bins().percentile(99) is None


def test_duckdb_and_polars_read_it(tmp_path, threads):
    import duckdb
    import polars

    swept = blklab.sweep(LOADS, device="nvme-consumer", repeat=2, out=tmp_path, executor=threads)
    pattern = f"{swept.path}/runs/*.parquet"
    (number,) = duckdb.sql(f"select count(distinct key) from read_parquet('{pattern}')").fetchall()[
        0
    ]
    assert number == 4
    assert polars.scan_parquet(pattern).select("key").unique().collect().height == 4
    assert swept.to_polars().height == len(swept.to_pandas()) == len(rows(swept))


def test_a_scheduler_in_python_is_a_factor(tmp_path, threads):
    from own_scheduler import Fifo

    asked = {"device": "sata-ssd", "out": tmp_path}
    swept = blklab.sweep(LOADS["reads"], sched=["none", Fifo], executor=threads, **asked)
    assert [r["sched"] for r in rows(swept)] == ["none", "sweep-fifo"]
    assert not len(swept.failures)
    # Other processes find it in its module.
    other = blklab.sweep(LOADS["reads"], sched=["none", Fifo], repeat=2, workers=1, **asked)
    assert (other.tally.there, other.tally.done, other.tally.failed) == (2, 2, 0)


def test_what_cannot_be_sent_is_a_failure_and_the_others_go_on(tmp_path):
    class Held(blklab.Scheduler):
        name = "sweep-held"
        lock = threading.Lock()

    swept = blklab.sweep(
        LOADS["reads"], sched=["none", Held, "bfq"], device="sata-ssd", out=tmp_path, workers=1
    )
    assert {r["sched"] for r in rows(swept)} == {"none", "bfq"}
    (failure,) = swept.failures.rows()
    assert failure["sched"] == "sweep-held"
    assert failure["text"].startswith("cannot be sent to a worker: ")


def test_a_damaged_file_is_set_aside_and_its_runs_are_run_again(tmp_path, threads):
    asked = {"device": "sata-ssd", "repeat": 3, "out": tmp_path, "executor": threads}
    before = rows(blklab.sweep(LOADS, **asked))
    damaged = next(tmp_path.glob("runs/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    again = blklab.sweep(LOADS, **asked)
    assert 0 < again.tally.done < 6
    assert rows(again) == before
    assert list(tmp_path.glob("runs/*.damaged"))


def test_the_command_runs_a_file(tmp_path, capsys):
    from blklab import _command

    (tmp_path / "r.fio").write_text("[r]\nrw=randread\ndirect=1\nsize=16m\nio_size=64k\n")
    spec = tmp_path / "sweep.toml"
    spec.write_text(
        'job = "r.fio"\nout = "rows"\nrepeat = 2\ndesign = "sobol"\npoints = 4\n'
        "where = \"sched == 'bfq' or nr_requests < 100\"\n"
        '[factors]\nsched = ["none", "bfq"]\ndevice = "sata-ssd"\n'
        "[factors.set]\nnr_requests = { low = 4, high = 256, log = true }\n"
    )
    assert _command.sweep([str(spec), "--threads", "--workers", "2", "--summary", "iops"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("8 runs: 0 were there, 8 done, 0 failed\n")
    assert "experiment" in said.out
    assert said.err == ""
    assert _command.sweep([str(spec), "--threads", "--shard", "1/2"]) == 0
    assert " 0 done, 0 failed" in capsys.readouterr().out
    for text, wrong in [
        ("jobs = 3\n", "jobs is a table"),
        ('job = "x"\ncolour = 1\n', "'colour' is no key"),
        ('job = "x"\n[factors]\nspeed = 1\n', "factors.speed"),
        ("job = \n", "spec"),
    ]:
        (tmp_path / "spec.toml").write_text(text)
        assert _command.sweep([str(tmp_path / "spec.toml"), "--out", str(tmp_path / "o")]) == 2
        said = capsys.readouterr()
        assert wrong in said.err
        assert said.err.startswith("blklab: ") and said.err.count("\n") == 1


def test_progress_tells_how_far_it_is_and_how_long_it_takes():
    from blklab._sweep._progress import Progress, clock

    progress = Progress(100, "runs", shown=False)
    progress.add(20, 5)
    assert progress.line(50.0) == "25 of 100 runs, 5 failed, 0.5 a second, 2:30 left"
    assert clock(3725) == "1:02:05"


def test_without_events_the_metrics_of_jobs_are_the_same(tmp_path, threads):
    asked = {"device": ["sata-ssd"], "repeat": 2, "executor": threads}
    full = blklab.sweep(LOADS["reads"], out=tmp_path / "full", **asked)
    lean = blklab.sweep(LOADS["reads"], out=tmp_path / "lean", events=False, **asked)
    for a, b in zip(rows(full), rows(lean), strict=True):
        assert a["digest"] and a["disk_util_percent"] is not None
        assert b["digest"] is None and b["disk_util_percent"] is None
        same = [c for c in a if c.startswith(("clat", "iops", "bandwidth", "ios"))]
        assert same and {c: a[c] for c in same} == {c: b[c] for c in same}
    # They are not mixed in one folder.
    with pytest.raises(blklab.InputError):
        blklab.sweep(LOADS["reads"], out=tmp_path / "full", events=False, **asked)
