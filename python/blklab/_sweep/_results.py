# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a sweep found: its table, and what is made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from blklab import _native
from blklab._native import InputError
from blklab._sweep._bins import Bins
from blklab._sweep._driver import Tally
from blklab._sweep._factors import EXPERIMENT
from blklab._sweep._intervals import corrected, interval
from blklab._sweep._store import parts
from blklab._sweep._stored import Stored
from blklab._sweep._work import Failure
from blklab._table import Table

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

#: What a row is about beside its factors.
_WHO = ("job", "direction")


class Sweep(Stored):
    """The runs of a sweep, as they lie on disk: those of one folder, or of several shards.

    Nothing of it is in memory until it is asked for, and it may be opened while the sweep goes
    on: it has the runs that are done.

    Parameters
    ----------
    *folders : path
        Where the runs lie.
    tally : Tally, optional
        What the sweep came to that was run just now.
    unwritten : sequence of Failure
        Failures that could not be written.

    Examples
    --------
    >>> Sweep("nowhere")
    Traceback (most recent call last):
        ...
    blklab.InputError: nowhere: no sweep: it has no sweep.json
    """

    def __init__(
        self,
        *folders: str | os.PathLike[str],
        tally: Tally | None = None,
        unwritten: Sequence[Failure] = (),
    ) -> None:
        super().__init__(folders, "a sweep")
        described = self._descriptions()
        if any(each["columns"] != described[0]["columns"] for each in described):
            raise InputError("these folders have sweeps over different factors")
        self._columns: dict[str, str] = described[0]["columns"]
        #: How many runs were asked for, done, failed, and how long it took; None if it was
        #: opened, not run.
        self.tally = tally
        self._unwritten = list(unwritten)

    @property
    def factors(self) -> list[str]:
        """The experiment, and what else was named: columns that tell points apart."""
        return [EXPERIMENT, *self._columns]

    @property
    def table(self) -> pyarrow.dataset.Dataset:
        """The rows as a dataset of pyarrow, which reads what is asked of it.

        One row for each run, job and direction, with the hash of the run (``key``), the
        experiment, the factors, repetition and seed, and every metric of
        ``blklab.list.metrics()``. DuckDB and Polars take it as it is.
        """
        return self._dataset("no run is done yet; .failures has what failed")

    def to_arrow(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """The rows in memory, ordered by factors, repetition, job and direction."""
        rows = self.table.to_table(columns=None if columns is None else [*columns])
        order = [*self.factors, "repetition", "level", "job", "cgroup", "direction"]
        keys = [(name, "ascending") for name in order if name in rows.column_names]
        return rows.sort_by(keys)

    @cached_property
    def _done(self) -> set[str]:
        if not self.files:
            return set()
        return set(self.table.to_table(columns=["key"]).column("key").to_pylist())

    @property
    def failures(self) -> Table:
        """The runs that came to nothing: factors, repetition, seed, class and text.

        ``passing`` is 1 if the machine failed (a worker died, a disk was full), not the run:
        these are tried again when the sweep goes on.
        """
        import pyarrow.parquet as pq

        names = ["key", *self.factors, "repetition", "seed", "class", "text", "passing"]
        rows: dict[str, dict[str, Any]] = {}
        for folder in self._folders:
            for path in parts(folder, "failures"):
                for row in pq.ParquetFile(path).read().to_pylist():
                    rows[row["key"]] = row
        for failure in self._unwritten:
            run = failure.run
            row = {
                "key": run.key,
                **dict(zip(self._columns, run.values, strict=True)),
                "repetition": run.repetition,
                "class": failure.kind,
                "text": failure.text,
                "passing": failure.passing,
            }
            rows.setdefault(run.key, row)
        done = self._done
        kept = [row for key, row in rows.items() if key not in done]
        kept.sort(key=lambda row: [str(row.get(name)) for name in names[1:]])
        columns = {name: [row.get(name) for row in kept] for name in names}
        columns["passing"] = [int(bool(v)) for v in columns["passing"]]
        return Table(columns)

    def _values(
        self, columns: Sequence[str], job: str | None, direction: str | None
    ) -> list[dict[str, Any]]:
        wanted = [*self.factors, "repetition", "level", *_WHO, *columns]
        there = set(self.table.schema.names)
        for column in columns:
            if column not in there:
                raise InputError(
                    f"'{column}' is no column of the sweep; blklab.list.metrics() has the metrics"
                )
        rows = self.to_arrow(list(dict.fromkeys(wanted))).to_pylist()
        kept = [
            row
            for row in rows
            # Groups of jobs with several names are their sums.
            if row["level"] != "group"
            and (job is None or row["job"] == job)
            and (direction is None or row["direction"] == direction)
        ]
        if rows and not kept:
            who = sorted({f"{row['job']} {row['direction']}" for row in rows})
            raise InputError(f"nobody is job={job}, direction={direction}: {', '.join(who)}")
        return kept

    def _by(self, by: str | Sequence[str] | None, default: Sequence[str]) -> list[str]:
        names = [*default] if by is None else [by] if isinstance(by, str) else [*by]
        known = [*self.factors, *_WHO]
        for name in names:
            if name not in known:
                raise InputError(f"by={name!r}: there are {', '.join(known)}")
        return names

    def summary(
        self,
        metric: str,
        by: str | Sequence[str] | None = None,
        *,
        job: str | None = None,
        direction: str | None = None,
    ) -> Table:
        """A metric with its 95 % interval over the repetitions.

        Parameters
        ----------
        metric : str
            A column of the table.
        by : str or sequence of str, optional
            What tells rows of the summary apart: factors, ``job``, ``direction``; all of them
            otherwise. What is not named is averaged within each repetition first, so that the
            interval is one over repetitions.
        job, direction : str, optional
            Whose.

        Returns
        -------
        Table
            The groups with ``repetitions``, ``mean``, ``low``, ``high`` (Student's interval;
            none for one repetition), ``min`` and ``max`` of the repetitions.
        """
        names = self._by(by, [*self.factors, *_WHO])
        groups: dict[tuple[Any, ...], dict[int, list[float]]] = {}
        for row in self._values([metric], job, direction):
            if row[metric] is not None:
                group = groups.setdefault(tuple(row[name] for name in names), {})
                group.setdefault(row["repetition"], []).append(float(row[metric]))
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for name in ("repetitions", "mean", "low", "high", "min", "max"):
            columns[name] = []
        for key, repetitions in groups.items():
            means = [sum(values) / len(values) for values in repetitions.values()]
            for name, value in zip(names, key, strict=True):
                columns[name].append(value)
            found = (len(means), *interval(means), min(means), max(means))
            for name, number in zip([*columns][len(names) :], found, strict=True):
                columns[name].append(number)
        return Table(columns)

    def best(
        self,
        metric: str,
        by: str | Sequence[str] = (),
        *,
        job: str | None = None,
        direction: str | None = None,
        aim: str | None = None,
    ) -> Table:
        """The best point for a metric, and how sure it is that it is the best.

        Parameters
        ----------
        metric : str
            A column of the table.
        by : str or sequence of str, optional
            For each of these (a device, say) one best point; one for all otherwise. Of what
            stands in ``by`` nobody has a choice.
        job, direction : str, optional
            Whose; needed if several have it.
        aim : {'lower', 'higher'}, optional
            What is better; as ``blklab.list.metrics()`` has it otherwise.

        Returns
        -------
        Table
            For each group the factors of its best point, ``mean``, ``low``, ``high``, the
            ``next_mean`` of the second, and ``sure``: 1 if it is better than each other point by
            a 95 % interval over the repetitions of both with the same seeds, corrected for
            their number.
        """
        names = self._by(by, ())
        aim = aim or aim_of(metric)
        if aim not in ("lower", "higher"):
            raise InputError(f"metric {metric}: say which is better, aim='lower' or 'higher'")
        rows = self._values([metric], job, direction)
        who = {(row["job"], row["direction"]) for row in rows} if not set(names) & {*_WHO} else {0}
        if len(who) > 1:
            raise InputError(
                f"metric {metric}: several have it: name a job and a direction, or 'by' them"
            )
        chosen = [name for name in self.factors if name not in names]
        groups: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[int, float]]] = {}
        for row in rows:
            if row[metric] is not None:
                group = groups.setdefault(tuple(row[name] for name in names), {})
                point = group.setdefault(tuple(row[name] for name in chosen), {})
                point[row["repetition"]] = float(row[metric])
        sign = 1.0 if aim == "lower" else -1.0
        result: list[dict[str, Any]] = []
        for key, points in groups.items():
            result.append(dict(zip(names, key, strict=True)) | _best(points, chosen, sign))
        columns = [*names, *chosen, "mean", "low", "high", "repetitions", "next_mean", "sure"]
        return Table({name: [row[name] for row in result] for name in columns})

    def percentiles(
        self,
        percentiles: Sequence[float] = (50, 95, 99, 99.9),
        by: str | Sequence[str] | None = None,
        *,
        job: str | None = None,
        direction: str | None = None,
    ) -> Table:
        """Percentiles of the completion latencies of any group of rows together, in ns.

        The sweep needs ``bins=True``. The bins are fio's, 64 for each power of two, so that
        their sums lose nothing.

        Parameters
        ----------
        percentiles : sequence of float
            From 0 to 100.
        by : str or sequence of str, optional
            As of :meth:`summary`.
        job, direction : str, optional
            Whose.
        """
        names = self._by(by, [*self.factors, *_WHO])
        if "clat_bins" not in self.table.schema.names:
            raise InputError("the sweep has no bins: run it with bins=True")
        sums: dict[tuple[Any, ...], Bins] = {}
        for row in self._values(["clat_bins", "clat_max_ns"], job, direction):
            if row["clat_bins"]:
                bins = sums.setdefault(tuple(row[name] for name in names), Bins())
                bins.add_text(row["clat_bins"], row["clat_max_ns"])
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for key, bins in sums.items():
            for name, value in zip(names, key, strict=True):
                columns[name].append(value)
            columns.setdefault("count", []).append(bins.count)
            for p in percentiles:
                columns.setdefault(f"p{p:g}_ns", []).append(bins.percentile(p))
        return Table(columns)

    def __repr__(self) -> str:
        return f"<blklab.Sweep {self.path}: {len(self._done)} runs, {len(self.failures)} failed>"


def _best(
    points: Mapping[tuple[Any, ...], Mapping[int, float]], chosen: Sequence[str], sign: float
) -> dict[str, Any]:
    def mean_of(values: Mapping[int, float]) -> float:
        return sum(values.values()) / len(values)

    ranked = sorted(points.items(), key=lambda item: sign * mean_of(item[1]))
    winner, values = ranked[0]
    mean, low, high = interval([*values.values()])
    sure = len(ranked) > 1
    for _, others in ranked[1:]:
        both = [sign * (others[r] - values[r]) for r in values if r in others]
        _, least, _ = interval(both, corrected(0.95, len(ranked) - 1))
        sure = sure and least is not None and least > 0
    found = {
        "mean": mean,
        "low": low,
        "high": high,
        "repetitions": len(values),
        "next_mean": mean_of(ranked[1][1]) if len(ranked) > 1 else None,
        "sure": int(sure),
    }
    return dict(zip(chosen, winner, strict=True)) | found


def aim_of(metric: str) -> str:
    """Which way a metric is better: lower, higher, or empty if nobody can say."""
    for column, _, aim, _, _ in _native.metrics():
        if metric == column:
            return str(aim)
    return ""
