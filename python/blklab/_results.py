# SPDX-License-Identifier: MIT OR Apache-2.0
"""What came of runs, and what traces hold."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from blklab import _native
from blklab._native import InputError
from blklab._table import Table, html_table

if TYPE_CHECKING:
    import pandas
    import polars

#: Metrics that a notebook shows of each job.
_SHOWN = ("ios", "bandwidth_mib_s", "clat_mean_ns", "clat_p99_ns", "clat_p999_ns", "clat_max_ns")


class Why(Mapping[str, Any]):
    """What made somebody wait: the answer of ``blklab why`` as a dictionary.

    ``str(why)`` is the verdict with the first findings, in words.
    """

    def __init__(self, answer: dict[str, Any], findings: Table) -> None:
        self._answer = answer
        #: The findings, a row each.
        self.findings = findings

    def __getitem__(self, key: str) -> Any:
        return self._answer[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer)

    def __len__(self) -> int:
        return len(self._answer)

    @property
    def verdict(self) -> str:
        """What it comes to, in a sentence."""
        return str(self._answer["verdict"]["sentence"])

    def __str__(self) -> str:
        lines = [self.verdict]
        for number, finding in enumerate(self.findings, 1):
            kind, confidence = finding["kind"], finding["confidence"]
            lines.append(f"{number}. {kind} ({confidence}): {finding['what']}")
            if finding["change"]:
                lines.append(f"   change: {finding['change']}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<blklab.Why: {self.verdict}>"

    def _repr_html_(self) -> str:
        columns = ["kind", "confidence", "what", "change"]
        rows = [[row[c] for c in columns] for row in self.findings]
        return f"<p>{html.escape(self.verdict)}</p>" + html_table(columns, rows)


class _Events:
    """What a run and a trace have in common: both hold events."""

    _held: _native.Run | _native.Trace

    @property
    def events(self) -> Table:
        """A row for each trace event: what blktrace records."""
        return Table(self._held.table("events"))

    @property
    def bios(self) -> Table:
        """A row for each bio with the times of its life, in ns."""
        return Table(self._held.table("bios"))

    @property
    def lives(self) -> Table:
        """A row for each request with the times of its life, in ns."""
        return Table(self._held.table("ios"))

    @property
    def findings(self) -> Table:
        """What made somebody wait, a row each, the worst first."""
        return self.why().findings

    def why(self) -> Why:
        """What made somebody wait, with evidence, and what would help."""
        answer, findings = self._held.why()
        return Why(answer, Table(findings))

    def stats(self) -> dict[str, Any]:
        """Statistics of the events, as ``blklab trace stats --format json`` gives them."""
        return self._held.stats()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page of HTML, as :func:`blklab.report` does."""
        from blklab._api import report

        report(self, path)  # type: ignore[arg-type]


class Trace(_Events):
    """A recorded trace, read again for each question: nothing of it stays in memory."""

    _held: _native.Trace

    def __init__(self, native: _native.Trace) -> None:
        self._held = native

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self._held.path)

    @property
    def reading(self) -> dict[str, int]:
        """What its reader could not use, in numbers: lost events, damaged records, and so on."""
        return dict(self._held.reading())

    def __repr__(self) -> str:
        return f"<blklab.Trace {self.path}>"


class Run(_Events):
    """What came out of an experiment.

    Its events are not kept: :attr:`events`, :attr:`lives` and :meth:`why` run it again, which
    gives the same events bit for bit.
    """

    _held: _native.Run

    def __init__(self, native: _native.Run) -> None:
        self._held = native

    @property
    def name(self) -> str:
        """What varies in its matrix, in one piece; what ran if nothing does."""
        return self._held.plan.name or str(self.record["experiment"])

    @property
    def label(self) -> dict[str, str]:
        """What varies in its matrix, and its values."""
        return dict(self._held.plan.label)

    @property
    def repetition(self) -> int:
        """Which repetition it is, from 0."""
        return self._held.plan.repetition

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self._held.plan.seed

    @property
    def digest(self) -> str:
        """Digest of all its events: equal for equal runs, on each machine."""
        return self._held.digest

    @property
    def end_ns(self) -> int:
        """Virtual time at its end, in ns."""
        return self._held.end_ns

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        return self._held.notes

    @cached_property
    def record(self) -> dict[str, Any]:
        """The stack, the device and what came out: the ``blklab`` object of ``result.json``."""
        return self._held.record()

    @cached_property
    def jobs(self) -> Table:
        """A row for the jobs of each name and direction, with every metric
        (``blklab.list.metrics()``)."""
        return Table(self._held.jobs())

    @property
    def metrics(self) -> dict[str, Any]:
        """Every number: ``disk`` by column, and ``jobs``, a dictionary for each row of
        :attr:`jobs`."""
        return {"jobs": self.jobs.rows(), "disk": dict(self._held.disk())}

    def metric(self, column: str, *, job: str | None = None, direction: str | None = None) -> float:
        """One number.

        Parameters
        ----------
        column : str
            A column of ``blklab.list.metrics()``, of jobs or of the disk (``disk_util_percent``).
        job : str, optional
            Whose; needed if several jobs have it.
        direction : {'read', 'write', 'trim', 'sync'}, optional
            Needed if the job has several.

        Raises
        ------
        InputError
            If there is no such number, or more than one.
        """
        if job is None and direction is None:
            disk = dict(self._held.disk())
            if column in disk:
                return _number(disk[column], column)
        rows = [
            row
            for row in self.jobs
            if (job is None or row["job"] == job)
            and (direction is None or row["direction"] == direction)
        ]
        if job is None and len(rows) > 1:
            rows = [row for row in rows if row["level"] != "group"]
        if len(rows) == 1:
            if column not in rows[0]:
                raise InputError(f"no metric '{column}'; blklab.list.metrics() has all")
            return _number(rows[0][column], column)
        there = ", ".join(f"{row['job'] or 'all'} {row['direction']}" for row in self.jobs)
        said = "several have it" if rows else "nobody has it"
        raise InputError(f"metric {column}: {said}: name a job and a direction of {there}")

    def fio_json(self) -> dict[str, Any]:
        """The result as fio's ``json+`` has it, with the ``blklab`` object beside it."""
        return self._held.fio_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a run directory, as ``blklab run --out`` does."""
        self._held.save(os.fspath(path))

    def __repr__(self) -> str:
        r = self.record
        device = r["device"]["name"]
        return f"<blklab.Run {r['experiment']}: {r['kernel']}, {r['scheduler']}, {device}>"

    def _repr_html_(self) -> str:
        columns = ["job", "direction", *_SHOWN]
        columns = [c for c in columns if c in self.jobs.columns]
        rows = [[row[c] for c in columns] for row in self.jobs]
        return f"<p>{html.escape(repr(self)[1:-1])}</p>" + html_table(columns, rows)


def _number(value: float | None, column: str) -> float:
    if value is None:
        raise InputError(f"metric {column}: there is none: nothing of the kind happened")
    return value


class Runs(Sequence[Run]):
    """Several runs: those of a matrix, or repetitions."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> Run | Runs:
        if isinstance(place, slice):
            return Runs(self._runs[place])
        return self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def name(self) -> str:
        """The names of all of them, in one piece."""
        return ", ".join(dict.fromkeys(run.name for run in self))

    def named(self, name: str) -> Runs:
        """The repetitions of one name."""
        found = [run for run in self if run.name == name]
        if not found:
            raise InputError(f"no run '{name}': there are {self.name}")
        return Runs(found)

    @cached_property
    def jobs(self) -> Table:
        """The rows of all runs' :attr:`Run.jobs`, after what varies, the repetition and the
        seed."""
        columns: dict[str, list[Any]] = {}
        keys = list(dict.fromkeys(key for run in self for key in run.label))
        for run in self:
            own = run.jobs.to_dict()
            rows = len(run.jobs)
            for key in keys:
                columns.setdefault(key, []).extend([run.label.get(key)] * rows)
            columns.setdefault("repetition", []).extend([run.repetition] * rows)
            columns.setdefault("seed", []).extend([run.seed] * rows)
            for name, values in own.items():
                # A setting may be called as a column is.
                columns.setdefault(name if name not in keys else f"{name}_", []).extend(values)
        return Table(columns)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The :attr:`Run.metrics` of each."""
        return [run.metrics for run in self]

    def to_pandas(self) -> pandas.DataFrame:
        """:attr:`jobs` as a data frame of pandas."""
        return self.jobs.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """:attr:`jobs` as a data frame of Polars."""
        return self.jobs.to_polars()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a folder of run directories, as ``blklab run --out`` does."""
        root = Path(path)
        width = len(str(max(len(self) - 1, 0)))
        for place, run in enumerate(self):
            run.save(root / f"{place:0{width}}")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a page of HTML about all of them, as :func:`blklab.report` does."""
        from blklab._api import report

        report(self, path)

    def __repr__(self) -> str:
        return f"<blklab.Runs: {len(self)} runs>"

    def _repr_html_(self) -> str:
        labels = list(dict.fromkeys(key for run in self for key in run.label))
        columns = [*labels, "repetition", "job", "direction", *_SHOWN]
        columns = [c for c in columns if c in self.jobs.columns]
        rows = [[row[c] for c in columns] for row in self.jobs]
        return html_table(columns, rows)


class Comparison(Mapping[str, Any]):
    """How two sides differ: what ``blklab compare --format json`` gives, as a dictionary."""

    def __init__(self, compared: dict[str, Any]) -> None:
        self._compared = compared

    def __getitem__(self, key: str) -> Any:
        return self._compared[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._compared)

    def __len__(self) -> int:
        return len(self._compared)

    @cached_property
    def changes(self) -> Table:
        """A row for each metric of each job: before, after, ratio, the 95 % interval of the
        change, the verdict."""
        names = ("before", "after", "ratio", "low", "high", "verdict")
        columns: dict[str, list[Any]] = {"who": [], "direction": [], "metric": []}
        for row in self._compared["rows"]:
            for change in row["changes"]:
                columns["who"].append(row["who"])
                columns["direction"].append(row["direction"])
                columns["metric"].append(change["metric"])
                for name in names:
                    columns.setdefault(name, []).append(change.get(name))
        return Table(columns)

    def __repr__(self) -> str:
        same = ", identical" if self._compared["identical"] else ""
        return f"<blklab.Comparison {self._compared['before']} -> {self._compared['after']}{same}>"

    def _repr_html_(self) -> str:
        return self.changes._repr_html_()
