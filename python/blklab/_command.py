# SPDX-License-Identifier: MIT OR Apache-2.0
"""The commands ``blklab-sweep``, ``blklab-tune`` and ``blklab-fleet``, which ``blklab sweep``
and its siblings run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from blklab._native import BlklabError, InputError

#: Exit codes, as those of the command.
_FAILED, _WRONG, _INTERRUPTED = 1, 2, 130


def _guarded(work: Callable[[], int]) -> int:
    try:
        return work()
    except BlklabError as e:
        print(f"blklab: {e}", file=sys.stderr)
        return _WRONG
    except ModuleNotFoundError as e:
        print(f"blklab: the Python package {e.name} is not installed", file=sys.stderr)
        return _WRONG
    except KeyboardInterrupt:
        print("blklab: interrupted; what is done is kept", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        return _FAILED


def _where(parser: argparse.ArgumentParser) -> None:
    """Options that say where things run."""
    parser.add_argument("--workers", type=int, metavar="N", help="how many run at a time")
    parser.add_argument(
        "--threads", action="store_true", help="in threads of this process, not in processes"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="on the workers of a Dask scheduler: tcp://HOST:8786"
    )


@contextmanager
def _executor(said: argparse.Namespace) -> Iterator[Executor | None]:
    if said.threads and said.dask:
        raise InputError("--threads: --dask says another place")
    if said.threads:
        with ThreadPoolExecutor(said.workers) as threads:
            yield threads
    elif said.dask:
        import distributed

        connect: Any = distributed.Client
        try:
            client = connect(said.dask, timeout=10)
        except OSError as e:
            raise InputError(f"--dask {said.dask}: no scheduler answers: {e}") from None
        with client:
            yield client.get_executor()
    else:
        yield None


def sweep(arguments: Sequence[str] | None = None) -> int:
    """Runs ``blklab-sweep``; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="blklab sweep",
        description="Runs the points of a sweep and keeps their metrics in Parquet files. "
        "What is there is not run again.",
    )
    parser.add_argument("file", metavar="FILE.toml", help="what is swept (docs/python-sweeps.md)")
    parser.add_argument("--out", metavar="FOLDER", help="where the rows go, if FILE does not say")
    parser.add_argument("--shard", metavar="I/N", help="only this part of the runs")
    parser.add_argument("--budget-runs", type=int, metavar="N", help="at most so many runs")
    parser.add_argument("--budget-seconds", type=float, metavar="S", help="at most so long")
    parser.add_argument("--repeat", type=int, metavar="N", help="repetitions of each point")
    parser.add_argument(
        "--no-events",
        action="store_true",
        help="metrics of jobs alone: no digests, nothing of the disks, half the time",
    )
    parser.add_argument("--bins", action="store_true", help="rows have fio's bins of latency")
    parser.add_argument(
        "--summary", metavar="METRIC", help="print this metric by factors when all is done"
    )
    _where(parser)
    return _guarded(lambda: _sweep(parser.parse_args(arguments)))


def _sweep(said: argparse.Namespace) -> int:
    from blklab import _sweep as sweeps
    from blklab._sweep._file import read_spec

    keywords = read_spec(said.file)
    own: dict[str, Any] = {
        "out": said.out,
        "shard": said.shard,
        "budget_runs": said.budget_runs,
        "budget_seconds": said.budget_seconds,
        "repeat": said.repeat,
        "bins": said.bins or None,
        "events": False if said.no_events else None,
        "workers": said.workers,
    }
    keywords.update({name: value for name, value in own.items() if value is not None})
    if "out" not in keywords:
        raise InputError(f"{said.file}: it has no out, a folder for the rows: say --out FOLDER")
    with _executor(said) as executor:
        done = sweeps.sweep(**keywords, executor=executor)
    tally = done.tally
    assert tally is not None
    print(f"{tally.asked} runs: {tally.there} were there, {tally.done} done, {tally.failed} failed")
    if tally.ended:
        print(f"ended early: {tally.ended}")
    if tally.lost:
        print(f"workers were lost {tally.lost} times")
    if tally.done:
        runs = tally.done + tally.failed
        each = tally.simulated_seconds / runs * 1e3
        beside = (tally.worker_seconds - tally.simulated_seconds) / runs * 1e3
        print(
            f"{tally.wall_seconds:.1f} s; a run took {each:.3g} ms of a worker, and {beside:.3g} "
            "ms beside, with the start of workers"
        )
    _failures(done)
    if said.summary:
        _table(done.summary(said.summary))
    print(f"rows: {done.path}/runs/*.parquet")
    return _FAILED if tally.failed and not (tally.done or tally.there) else 0


def _failures(done: Any) -> None:
    reasons: dict[tuple[str, str], int] = {}
    for row in done.failures:
        reason = (row["class"], row["text"])
        reasons[reason] = reasons.get(reason, 0) + 1
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    for (kind, text), number in ordered[:5]:
        print(f"failed {number} times: {kind}: {text}")
    if len(ordered) > 5:
        print(f"and {len(ordered) - 5} other reasons, in {done.path}/failures/*.parquet")


def _table(table: Any) -> None:
    def text(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    rows = [table.columns, *([text(row[c]) for c in table.columns] for row in table)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(table.columns))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())


def tune(arguments: Sequence[str] | None = None) -> int:
    """Runs ``blklab-tune``; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="blklab tune",
        description="Looks for settings that make several figures better at once, tries them on "
        "seeds and loads that were held out, and says what to paste, or to leave it as it is.",
    )
    parser.add_argument("file", metavar="FILE.toml", help="what is tuned (docs/python-tuning.md)")
    parser.add_argument("--trials", type=int, metavar="N", help="settings that are tried")
    parser.add_argument("--sampler", choices=["default", "gp"], help="which of Optuna's samplers")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the search and of the runs")
    parser.add_argument("--disk", metavar="NAME", help="the disk in what is to be pasted: sda")
    parser.add_argument("--out", metavar="FOLDER", help="keep all runs there")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the trials and the front")
    _where(parser)
    return _guarded(lambda: _tune(parser.parse_args(arguments)))


def _tune(said: argparse.Namespace) -> int:
    from blklab import _tune as tuning
    from blklab._tune._file import read_tuning

    keywords = read_tuning(said.file)
    for name in ("trials", "sampler", "seed", "disk", "out", "workers"):
        value = getattr(said, name)
        if value is not None:
            keywords[name] = value
    with _executor(said) as executor:
        tuned = tuning.tune(**keywords, executor=executor)
    print(tuned)
    if said.plot:
        tuned.plot(said.plot)
    return 0


def fleet(arguments: Sequence[str] | None = None) -> int:
    """Runs ``blklab-fleet``; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="blklab fleet",
        description="Reads many traces: what makes I/O slow on which hosts, and which disks are "
        "slow among those of the same model. What was read is not read again.",
    )
    parser.add_argument(
        "traces", nargs="+", metavar="TRACES", help="files, folders, patterns, s3://… addresses"
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the rows go")
    parser.add_argument(
        "--pattern", metavar="REGEX", help="what paths say: (?P<host>[^/]+)/(?P<model>[^/]+)/"
    )
    parser.add_argument("--about", metavar="CSV", help="host, model, kernel by path or host")
    parser.add_argument("--context", action="append", default=[], metavar="FILE")
    parser.add_argument("--by", metavar="NAMES", help="count findings by these: model,kernel")
    _where(parser)
    return _guarded(lambda: _fleet(parser.parse_args(arguments)))


def _fleet(said: argparse.Namespace) -> int:
    from blklab.fleet import survey

    with _executor(said) as executor:
        surveyed = survey(
            said.traces,
            out=said.out,
            pattern=said.pattern,
            about=said.about,
            context=said.context,
            executor=executor,
            workers=said.workers,
        )
    print(surveyed)
    if said.by:
        print()
        _table(surveyed.findings(by=said.by.split(",")))
    print(f"\nrows: {surveyed.path}/runs/*.parquet")
    return 0 if surveyed.files else _FAILED


if __name__ == "__main__":
    sys.exit(sweep())
