# SPDX-License-Identifier: MIT OR Apache-2.0
"""Thousands of traces: who waits for what, on which hosts, and which disks are slow among
their peers."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab._native import InputError
from blklab._sweep._driver import Driver, Tally
from blklab._sweep._executors import Pool
from blklab._sweep._store import Store, parts
from blklab._sweep._stored import Stored
from blklab._table import Table
from blklab.fleet._peers import against
from blklab.fleet._traces import ABOUT, plan

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

__all__ = ["Fleet", "survey"]

#: Requests of a trace from which on its 99th percentile is one of more than a few.
_REQUESTS_P99 = 1000


def survey(
    traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    pattern: str | None = None,
    about: str | os.PathLike[str] | Mapping[str, Mapping[str, str]] | None = None,
    context: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    executor: Executor | None = None,
    workers: int | None = None,
    batch_seconds: float = 2.0,
    progress: bool | None = None,
) -> Fleet:
    """Reads traces, and keeps what they say in a folder of Parquet files.

    A trace that was read is not read again unless it changed. One that cannot be read is kept as
    a failure, with its reason.

    Parameters
    ----------
    traces : path, pattern, address, or a list of these
        Files of any format that blklab reads, folders, patterns (``"traces/**/*.blktrace.0"``),
        or addresses that fsspec knows (``"s3://bucket/2026/*.txt"``).
    out : path
        The folder.
    pattern : str, optional
        A regular expression that is looked for in each path; its named groups say what is known:
        ``r"(?P<host>[^/]+)/(?P<model>[^/]+)/[^/]+$"``. ``host``, ``model`` and ``kernel`` have a
        meaning; others become columns.
    about : path or dict, optional
        A CSV table, or a dictionary of dictionaries, that says the same by path, by a file's
        name or by host.
    context : path or list of paths, optional
        What is known of all machines, as of :func:`blklab.load`.
    executor, workers, batch_seconds, progress : optional
        As of :func:`blklab.sweep`.

    Returns
    -------
    Fleet
    """
    contexts = [context] if isinstance(context, (str, os.PathLike)) else list(context)
    planned = plan(traces, pattern=pattern, about=about, context=[os.fspath(c) for c in contexts])
    with Store(Path(out).resolve(), planned) as store:
        pool = Pool(executor, workers)
        abandon = True
        try:
            driver = Driver(
                planned,
                store,
                pool,
                batch_seconds=batch_seconds,
                progress=progress,
                unit="traces",
            )
            tally = driver.run()
            abandon = False
        finally:
            pool.close(abandon=abandon)
    return Fleet(out, tally=tally)


class Fleet(Stored):
    """What surveys read: one, or those of several days together.

    Parameters
    ----------
    *folders : path
        Where they lie.
    tally : Tally, optional
        What the survey came to that was made just now.
    """

    def __init__(self, *folders: str | os.PathLike[str], tally: Tally | None = None) -> None:
        super().__init__(folders, "a survey")
        described = self._descriptions()
        self._names: list[str] = list(described[0].get("columns", ()))
        for folder, each in zip(self._folders, described, strict=True):
            if not each.get("survey"):
                raise InputError(f"{folder}: it has a sweep, not a survey of traces")
            if list(each["columns"]) != self._names:
                raise InputError(f"{folder}: it knows other things of a trace than the first one")
        self.tally = tally

    @property
    def table(self) -> pyarrow.dataset.Dataset:
        """The rows as a dataset of pyarrow, which reads what is asked of it.

        One row for each device of each trace: host, model, kernel, times at the device (``d2c``)
        and from its submission on (``q2c``) in ns, requests per second, findings.
        """
        return self._dataset("no trace could be read; .failures says why")

    def to_arrow(self) -> pyarrow.Table:
        """The rows in memory, ordered by path and device."""
        return self.table.to_table().sort_by([("path", "ascending"), ("dev", "ascending")])

    def _rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Some columns of all rows, ordered by path and device."""
        if not self.files:
            return []
        wanted = list(dict.fromkeys([*columns, "path", "dev"]))
        table = self.table.to_table(columns=wanted)
        rows: list[dict[str, Any]] = table.sort_by(
            [("path", "ascending"), ("dev", "ascending")]
        ).to_pylist()
        return rows

    @property
    def failures(self) -> Table:
        """The traces that could not be read: path, what is known of them, class and text."""
        import pyarrow.parquet as pq

        names = ["path", *self._names, "class", "text"]
        done = {row["key"] for row in self._rows(["key"])}
        found = {}
        files = [file for folder in self._folders for file in parts(folder, "failures")]
        for file in files:
            for row in pq.ParquetFile(file).read().to_pylist():
                if row["key"] not in done:
                    found[row["key"]] = row
        rows = sorted(found.values(), key=lambda row: str(row["path"]))
        return Table({name: [row.get(name) for row in rows] for name in names})

    @property
    def counts(self) -> dict[str, int]:
        """How many traces were read, were not, are incomplete (events lost, records damaged),
        and how many hosts and devices there are."""
        rows = self._rows(["key", "host", "model", "lost", "damaged"])
        traces = {row["key"]: row for row in rows}
        return {
            "traces": len(traces) + len(self.failures),
            "read": len(traces),
            "not_read": len(self.failures),
            "with_lost_events": sum(row["lost"] > 0 for row in traces.values()),
            "with_damaged_records": sum(row["damaged"] > 0 for row in traces.values()),
            "hosts": len({row["host"] for row in rows if row["host"] is not None}),
            "devices": len({_device(row) for row in rows}),
        }

    def findings(self, by: str | Sequence[str] = ("model",)) -> Table:
        """What makes I/O slow, and where.

        Parameters
        ----------
        by : str or sequence of str
            ``host``, ``model``, ``kernel``, or what else is known.

        Returns
        -------
        Table
            For each group and kind of finding: ``traces`` that have it, their ``share`` of the
            group's, ``total_s`` that I/O waited, ``worst_ns``.
        """
        names = [by] if isinstance(by, str) else list(by)
        for name in names:
            if name not in self._names:
                raise InputError(f"by={name!r}: there are {', '.join(self._names)}")
        traces: dict[tuple[Any, ...], set[str]] = {}
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self._rows(["key", *names, "findings"]):
            group = tuple(row[name] for name in names)
            traces.setdefault(group, set()).add(row["key"])
            for finding in json.loads(row["findings"]):
                entry = found.setdefault(
                    (*group, finding["kind"]), {"keys": set(), "total_ns": 0, "worst_ns": 0}
                )
                entry["keys"].add(row["key"])
                entry["total_ns"] += finding["total_ns"] or 0
                entry["worst_ns"] = max(entry["worst_ns"], finding["worst_ns"] or 0)
        ordered = sorted(found.items(), key=lambda item: -item[1]["total_ns"])
        columns: dict[str, list[Any]] = {
            name: [key[place] for key, _ in ordered] for place, name in enumerate(names)
        }
        columns["kind"] = [key[-1] for key, _ in ordered]
        columns["traces"] = [len(entry["keys"]) for _, entry in ordered]
        columns["share"] = [len(e["keys"]) / len(traces[key[:-1]]) for key, e in ordered]
        columns["total_s"] = [entry["total_ns"] / 1e9 for _, entry in ordered]
        columns["worst_ns"] = [entry["worst_ns"] for _, entry in ordered]
        return Table(columns)

    def _devices(self, figure: str) -> list[dict[str, Any]]:
        """One item for each device: the medians of its traces."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self._rows([*ABOUT, figure, "rate"]):
            groups.setdefault(_device(row), []).append(row)
        found = []
        for rows in groups.values():
            item = {name: rows[0][name] for name in (*ABOUT, "dev")}
            for name in (figure, "rate"):
                values = [row[name] for row in rows if row[name] is not None]
                item[name] = statistics.median(values) if values else None
            item["traces"] = len(rows)
            item["path"] = rows[0]["path"]
            found.append(item)
        return found

    def slow_devices(
        self,
        *,
        figure: str | None = None,
        sigmas: float = 3.5,
        ratio: float = 1.5,
        peers_min: int = 5,
    ) -> Table:
        """Devices that are slow among devices of the same model: fail-slow ones.

        A device counts with the median of its traces. What it takes more because it has more to
        do is no fault: a trend of the figure with the rate of requests among the peers is taken
        off first.

        Parameters
        ----------
        figure : str, optional
            The slow tail, a column of the table. ``d2c_p99_ns`` where the usual trace has 1000
            requests or more; with fewer that is the time of a few requests, and
            ``d2c_p95_ns`` counts.
        sigmas, ratio : float
            A device is slow if it is so many robust standard deviations (of the median
            absolute deviation) and so many times slower than was to be expected.
        peers_min : int
            Models with fewer devices have nothing to compare with.

        Returns
        -------
        Table
            The worst first, with its peers and a trace to look at.
        """
        figure = self._figure(figure)
        names = [*ABOUT, "dev", "figure", "value_ns", "peers_median_ns", "ratio", "sigmas"]
        items = against(self._devices(figure), "model", figure, peers_min)
        slow = [i for i in items if i["sigmas"] >= sigmas and i["ratio"] >= ratio]
        for item in slow:
            item["figure"], item["value_ns"] = figure, item[figure]
        names += ["peers", "traces", "path"]
        return Table({name: [item[name] for item in slow] for name in names})

    def _figure(self, said: str | None) -> str:
        if said is None:
            rows = self.table.to_table(columns=["requests"])
            requests = [n for n in rows.column("requests").to_pylist() if n]
            many = bool(requests) and statistics.median(requests) >= _REQUESTS_P99
            return "d2c_p99_ns" if many else "d2c_p95_ns"
        if said not in self.table.schema.names or not said.endswith("_ns"):
            raise InputError(f"figure={said!r}: a column of times, such as d2c_p99_ns")
        return said

    def slow_hosts(
        self,
        *,
        figure: str | None = None,
        sigmas: float = 3.5,
        ratio: float = 1.2,
        devices_min: int = 2,
    ) -> Table:
        """Hosts whose devices are slow together: a controller, a cable, a setting, not a disk.

        The figure of a host is the median of how many times slower each of its devices is than
        its own peers; hosts are compared by that.

        Parameters
        ----------
        figure, sigmas, ratio
            As of :meth:`slow_devices`.
        devices_min : int
            Hosts with fewer devices are left out.
        """
        figure = self._figure(figure)
        groups: dict[Any, list[dict[str, Any]]] = {}
        for item in against(self._devices(figure), "model", figure, 5):
            if item["host"] is not None:
                groups.setdefault(item["host"], []).append(item)
        hosts = [
            {
                "host": host,
                "all": "hosts",
                "ratio_to_peers": statistics.median(i["ratio"] for i in items),
                "devices": len(items),
            }
            for host, items in groups.items()
            if len(items) >= devices_min
        ]
        slow = [
            host
            for host in against(hosts, "all", "ratio_to_peers", 5)
            if host["sigmas"] >= sigmas and host["ratio"] >= ratio
        ]
        names = ["host", "devices", "ratio_to_peers", "sigmas", "peers"]
        return Table({name: [host[name] for host in slow] for name in names})

    def __str__(self) -> str:
        counts = self.counts
        lines = [
            f"{counts['traces']} traces of {counts['hosts']} hosts and {counts['devices']} "
            f"devices: {counts['read']} read, {counts['not_read']} could not be read"
        ]
        for name, said in (
            ("with_lost_events", "lost events when they were recorded"),
            ("with_damaged_records", "have damaged records"),
        ):
            if counts[name]:
                lines.append(f"{counts[name]} of those that were read {said}")
        reasons: dict[str, list[str]] = {}
        for row in self.failures:
            reasons.setdefault(row["class"], []).append(f"{row['path']}: {row['text']}")
        for kind, texts in reasons.items():
            lines.append(f"not read, {len(texts)} times {kind}: the first is {texts[0]}")
        if not self.files:
            return "\n".join(lines)
        lines += ["", "What makes I/O slow:"]
        kinds = self.findings(by=[])
        for row in list(kinds)[:8]:
            lines.append(f"  {row['kind']}: {row['traces']} traces, {row['total_s']:.3g} s in all")
        if not len(kinds):
            lines.append("  nothing was found")
        slow = self.slow_devices()
        lines += ["", f"Devices that are slow among their peers: {len(slow)}"]
        for row in list(slow)[:10]:
            lines.append(
                f"  {row['host']} {row['dev']} ({row['model']}): {row['figure']} "
                f"{row['value_ns'] / 1e6:.3g} ms, {row['ratio']:.3g} times that of "
                f"{row['peers'] - 1} others ({row['sigmas']:.3g} sigmas)"
            )
        hosts = self.slow_hosts()
        if len(hosts):
            lines += ["", f"Hosts whose devices are slow together: {len(hosts)}"]
            for row in list(hosts)[:10]:
                lines.append(
                    f"  {row['host']}: {row['devices']} devices, {row['ratio_to_peers']:.3g} times "
                    "their peers"
                )
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = self.counts
        return f"<blklab.Fleet {self.path}: {counts['read']} traces, {counts['not_read']} not read>"


def _device(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells devices apart: of a host that nobody knows each trace is one."""
    if row["host"] is None:
        return row["path"], row["dev"]
    return row["host"], row["model"], row["dev"]
