# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which traces there are, whose they are, and what a worker makes of them."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import _native
from blklab._native import BlklabError, InputError, MissingFileError
from blklab._sweep._work import Outcome, class_of, guarded, write

#: What is known of a trace beside its events.
ABOUT = ("host", "model", "kernel")

#: What a file system says of a file that changes when the file does.
_VERSIONS = ("size", "mtime", "ETag", "etag", "LastModified", "last_modified", "created")

#: Files of one recording, one for each processor.
_PART = re.compile(r"(?P<base>.+\.blktrace\.)\d+(?P<packed>\.(?:gz|zst|xz))?")


@dataclass(frozen=True)
class TraceOf:
    """A trace that is to be read.

    Parameters
    ----------
    key : str
        Hash of where it is, its size and age, and the version of blklab.
    path : str
        Where: a path, or an address that fsspec knows.
    files : tuple of str
        All files of it.
    about : tuple
        A value for each name of what is known of it; None is not known.
    """

    key: str
    path: str
    files: tuple[str, ...]
    about: tuple[str | None, ...]


@dataclass(frozen=True)
class Plan:
    """All traces of a survey, as the driver of sweeps takes them."""

    traces: tuple[TraceOf, ...]
    names: tuple[str, ...]
    context: tuple[str, ...] = ()

    def runs(self) -> Iterable[TraceOf]:
        """The traces, in order."""
        return self.traces

    def kind(self, trace: TraceOf) -> Any:
        """What is equal for traces that take equally long: nobody knows before."""
        return None

    def batch(self, file: str, runs: Sequence[TraceOf]) -> Batch:
        """What goes to a worker for some traces."""
        return Batch(file, tuple(runs), self.names, self.context)

    def describe(self) -> dict[str, Any]:
        """What must be the same in all traces of a folder."""
        return {"columns": dict.fromkeys(self.names, "text"), "survey": True}

    def identity(self, runs: Sequence[TraceOf]) -> dict[str, Any]:
        """Columns that tell traces apart."""
        import pyarrow as pa

        found = {
            "key": pa.array([t.key for t in runs], pa.string()),
            "path": pa.array([t.path for t in runs], pa.string()),
        }
        for place, name in enumerate(self.names):
            found[name] = pa.array([t.about[place] for t in runs], pa.string())
        return found


@dataclass(frozen=True)
class Batch:
    """Traces that one worker reads one after the other."""

    file: str
    traces: tuple[TraceOf, ...]
    names: tuple[str, ...]
    context: tuple[str, ...]

    def run(self) -> Outcome:
        """Reads them, and writes their rows."""
        return guarded(lambda: _read_all(self))


def _read_all(batch: Batch) -> tuple[int, list[tuple[int, str, str]], float]:
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    failed: list[tuple[int, str, str]] = []
    inside = 0.0
    for place, trace in enumerate(batch.traces):
        start = time.perf_counter()
        known = {"key": trace.key, "path": trace.path}
        known |= dict(zip(batch.names, trace.about, strict=True))  # type: ignore[arg-type]
        try:
            rows += [known | row for row in _read_one(trace, batch.context)]
        except (BlklabError, OSError, ValueError) as e:
            failed.append((place, _kind(e), " ".join(str(e).split())))
        inside += time.perf_counter() - start
    if rows:
        write(pa.Table.from_pylist(rows, schema=_schema(batch.names)), Path(batch.file))
    return len(batch.traces) - len(failed), failed, inside


def _kind(e: Exception) -> str:
    return "CannotRead" if isinstance(e, OSError) else class_of(e)


def _read_one(trace: TraceOf, context: Sequence[str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="blklab-") as folder:
        return _rows(_native.Trace(_local(trace, Path(folder)), list(context)))


def _local(trace: TraceOf, folder: Path) -> str:
    """Where the files of a trace are on this machine; others are fetched."""
    if "://" not in trace.path:
        return trace.path
    import fsspec

    for file in trace.files:
        fs, path = fsspec.core.url_to_fs(file)
        fs.get_file(path, str(folder / path.rpartition("/")[2]))
    return str(folder / trace.path.rpartition("/")[2])


def _rows(native: _native.Trace) -> list[dict[str, Any]]:
    """A row for each device of a trace."""
    stats, why, found = native.survey()
    if not stats["nr_events"]:
        raise InputError("it has no events of a block device")
    reading = dict(found)
    span_ns = max(stats["end_ns"] - stats["start_ns"], 1)
    rows = []
    for device in stats["devices"]:
        of_device = [f for f in why["findings"] if f["dev"] == device["dev"]]
        phases = device["phases"]
        row: dict[str, Any] = {
            "dev": device["dev"],
            "events": stats["nr_events"],
            "seconds": span_ns / 1e9,
            "requests": phases["d2c"]["count"],
            "rate": phases["d2c"]["count"] / span_ns * 1e9,
            "verdict": why["verdict"]["answer"],
            "sentence": why["verdict"]["sentence"],
            "findings": json.dumps([_short(f) for f in of_device]),
            "lost": reading["lost"],
            "damaged": reading["damaged"],
        }
        for phase in ("d2c", "q2c"):
            numbers = phases[phase]
            percentiles = {str(p): v for p, v in numbers["percentiles"]}
            there = bool(numbers["count"])
            row[f"{phase}_mean_ns"] = float(numbers["mean"]) if there else None
            row[f"{phase}_p50_ns"] = _number(percentiles.get("50.0"))
            row[f"{phase}_p95_ns"] = _number(percentiles.get("95.0"))
            row[f"{phase}_p99_ns"] = _number(percentiles.get("99.0"))
            row[f"{phase}_p999_ns"] = _number(percentiles.get("99.9"))
            row[f"{phase}_max_ns"] = float(numbers["max"]) if there else None
        rows.append(row)
    return rows


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _short(finding: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kind", "confidence", "count", "total_ns", "worst_ns", "what", "cause")
    return {name: finding.get(name) for name in names}


def _schema(names: Sequence[str]) -> Any:
    import pyarrow as pa

    phases = [
        pa.field(f"{phase}_{figure}_ns", pa.float64())
        for phase in ("d2c", "q2c")
        for figure in ("mean", "p50", "p95", "p99", "p999", "max")
    ]
    texts = ["key", "path", *names, "dev"]
    return pa.schema(
        [
            *(pa.field(name, pa.string()) for name in texts),
            pa.field("events", pa.int64()),
            pa.field("seconds", pa.float64()),
            pa.field("requests", pa.int64()),
            pa.field("rate", pa.float64()),
            *(pa.field(name, pa.string()) for name in ("verdict", "sentence", "findings")),
            pa.field("lost", pa.int64()),
            pa.field("damaged", pa.int64()),
            *phases,
        ]
    )


#: Says of a path what is known: host, model, kernel, and whatever else.
About = Callable[[str], Mapping[str, str | None]]


def plan(
    traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    pattern: str | None,
    about: str | os.PathLike[str] | Mapping[str, Mapping[str, str]] | None,
    context: Sequence[str],
) -> Plan:
    """The traces that were named, and what is known of each."""
    listed = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    files: dict[str, dict[str, Any]] = {}
    for each in listed:
        files.update(_found(os.fspath(each)))
    groups: dict[str, list[str]] = {}
    for path in sorted(files):
        part = _PART.fullmatch(path)
        groups.setdefault(f"{part['base']}#{part['packed']}" if part else path, []).append(path)
    known = _known(pattern, about)
    described = {group[0]: known(group[0]) for group in groups.values()}
    extra = [name for each in described.values() for name in each if name not in ABOUT]
    names = (*ABOUT, *dict.fromkeys(extra))
    found = []
    for group in groups.values():
        versions = [[file, *(str(files[file].get(v)) for v in _VERSIONS)] for file in group]
        said = described[group[0]]
        values = tuple(said.get(name) for name in names)
        text = json.dumps([versions, values, sorted(context), _native.version])
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        found.append(TraceOf(key, group[0], tuple(group), values))
    if not found:
        raise MissingFileError(f"{', '.join(map(str, listed))}: there is no trace")
    return Plan(tuple(found), names, tuple(context))


def _found(said: str) -> dict[str, dict[str, Any]]:
    """Files of a path, a pattern, or an address, with what changes when they do."""
    if "://" not in said:
        return _found_here(said)
    try:
        import fsspec
    except ImportError:
        raise InputError(f"{said}: addresses need the package fsspec") from None
    try:
        fs, path = fsspec.core.url_to_fs(said)
        if any(c in path for c in "*?["):
            infos = fs.glob(path, detail=True)
        elif fs.isdir(path):
            infos = fs.find(path, detail=True)
        else:
            infos = {path: fs.info(path)}
    except FileNotFoundError:
        raise MissingFileError(f"{said}: there is no such file") from None
    except (OSError, ValueError, ImportError) as e:
        raise InputError(f"{said}: {e}") from None
    return {
        fs.unstrip_protocol(path): info
        for path, info in infos.items()
        if info.get("type") == "file"
    }


def _found_here(said: str) -> dict[str, dict[str, Any]]:
    path = Path(said)
    paths: Iterable[Path]
    if any(c in said for c in "*?["):
        # A pattern counts from its first folder without one.
        plain = Path(*_before_pattern(path))
        paths = plain.glob(str(path.relative_to(plain)))
    elif path.is_dir():
        paths = path.rglob("*")
    elif path.exists():
        paths = [path]
    else:
        raise MissingFileError(f"{said}: there is no such file")
    found = {}
    for each in paths:
        if each.is_file():
            stat = each.stat()
            found[str(each)] = {"size": stat.st_size, "mtime": stat.st_mtime_ns}
    return found


def _before_pattern(path: Path) -> Iterable[str]:
    for part in path.parts:
        if any(c in part for c in "*?["):
            return
        yield part


def _known(
    pattern: str | None, about: str | os.PathLike[str] | Mapping[str, Mapping[str, str]] | None
) -> About:
    try:
        compiled = re.compile(pattern) if pattern else None
    except re.error as e:
        raise InputError(f"pattern={pattern!r}: {e}") from None
    if compiled is not None and not compiled.groupindex:
        raise InputError(f"pattern={pattern!r}: it names nothing: (?P<host>[^/]+)")
    table = _table(about) if isinstance(about, (str, os.PathLike)) else dict(about or {})

    def known(path: str) -> Mapping[str, str | None]:
        said: dict[str, str | None] = {}
        match = compiled.search(path) if compiled else None
        if match:
            said.update(match.groupdict())
        for name in (path, path.rpartition("/")[2], said.get("host")):
            if name is not None and name in table:
                said.update(table[name])
                break
        return said

    return known


def _table(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """A CSV table whose first column is a path, a file's name, or a host."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"{os.fspath(path)}: {e}") from None
    if not rows:
        raise InputError(f"{os.fspath(path)}: no rows: a head line, then path or host, model, …")
    first = next(iter(rows[0]))
    found = {}
    for row in rows:
        rest = {k: v for k, v in row.items() if k is not None and k != first}
        if first == "host":
            rest["host"] = row[first]
        found[row[first]] = rest
    return found
