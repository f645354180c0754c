# SPDX-License-Identifier: MIT OR Apache-2.0
"""The folder of a sweep: who may write to it, and what is in it.

``sweep.json`` says what the columns are, ``runs/*.parquet`` has the rows, ``failures/*.parquet``
the runs that came to nothing. Workers write to ``pending``; the one process that holds the lock
moves a file to ``runs`` when it knows that the batch is done, so each run is there once,
whoever dies when.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab import _native
from blklab._native import InputError
from blklab._sweep._work import Failure, write

if TYPE_CHECKING:
    import pyarrow

    from blklab._sweep._driver import Tasks

#: Version of the folder's layout.
FORMAT = 1


class Store:
    """A folder that this process writes to, alone."""

    def __init__(self, folder: Path, tasks: Tasks) -> None:
        self.folder = folder
        self._tasks = tasks
        self.session = uuid.uuid4().hex[:12]
        #: Failures that could not be written.
        self.unwritten: list[Failure] = []
        self._batches = 0
        try:
            for name in ("runs", "failures"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise InputError(f"{folder}: cannot make the folder of a sweep: {e.strerror}") from e
        self._lock = _locked(folder)
        try:
            self._describe()
            # What workers of an earlier sweep still write is nobody's.
            shutil.rmtree(folder / "pending", ignore_errors=True)
            self._pending = folder / "pending" / self.session
            self._pending.mkdir(parents=True)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets others write to it."""
        pending = getattr(self, "_pending", None)
        if pending is not None:
            shutil.rmtree(pending.parent, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _describe(self) -> None:
        mine = {"format": FORMAT, **self._tasks.describe()}
        path = self.folder / "sweep.json"
        if path.exists():
            theirs = read_description(self.folder)
            for what, value in mine.items():
                if theirs.get(what) != value:
                    raise InputError(
                        f"{self.folder}: it has a sweep with {what} {theirs.get(what)}, not "
                        f"{value}: name another folder"
                    )
            return
        mine["version"] = _native.version
        part = path.with_name(".sweep.json")
        part.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")
        part.replace(path)

    def next_file(self) -> str:
        """Where a worker writes the rows of the next batch."""
        self._batches += 1
        return str(self._pending / f"{self.session}-{self._batches:06}.parquet")

    def keep(self, file: str) -> bool:
        """A batch is done: its rows count. False if there are none."""
        path = Path(file)
        try:
            path.replace(self.folder / "runs" / path.name)
        except OSError:
            return False
        return True

    def forget(self, file: str) -> None:
        """A batch is run anew, under another name: its rows do not count."""
        Path(file).unlink(missing_ok=True)

    def fail(self, failures: Sequence[Failure]) -> None:
        """Keeps runs that came to nothing."""
        if not failures:
            return
        import pyarrow as pa

        columns = self._tasks.identity([f.run for f in failures])
        columns["class"] = pa.array([f.kind for f in failures], pa.string())
        columns["text"] = pa.array([f.text for f in failures], pa.string())
        columns["passing"] = pa.array([f.passing for f in failures], pa.bool_())
        name = f"{self.session}-{uuid.uuid4().hex[:8]}.parquet"
        try:
            write(pa.table(columns), self.folder / "failures" / name)
        except OSError:
            self.unwritten.extend(failures)

    def there(self) -> tuple[set[str], set[str]]:
        """Keys of the runs that are done, and of those that have failed for good."""
        done: set[str] = set()
        for path in parts(self.folder, "runs"):
            keys = _read(path, ["key"])
            if keys is not None:
                done.update(keys.column("key").to_pylist())
        failed: set[str] = set()
        for path in parts(self.folder, "failures"):
            rows = _read(path, ["key", "passing"])
            if rows is not None:
                pairs = zip(*(rows.column(c).to_pylist() for c in ("key", "passing")), strict=True)
                failed.update(key for key, passing in pairs if not passing)
        return done, failed - done


def _locked(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(lock, 200).decode(errors="replace").strip() or "another process"
        os.close(lock)
        raise InputError(
            f"{folder}: another sweep writes to it ({owner}): wait for it, or name another folder"
        ) from None
    with contextlib.suppress(OSError):
        # A full disk is no reason not to begin.
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
    return lock


def _read(path: Path, columns: list[str]) -> pyarrow.Table | None:
    """Columns of a file; one that is damaged is set aside, and its runs are run again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read(columns=columns)
    except (pa.ArrowException, OSError):
        path.rename(path.with_name(path.name + ".damaged"))
        return None


def parts(folder: Path, what: str) -> list[Path]:
    """The files of a folder's ``runs`` or ``failures``, in order."""
    return sorted((folder / what).glob("[!.]*.parquet"))


def read_description(folder: Path) -> dict[str, Any]:
    """What ``sweep.json`` says."""
    path = folder / "sweep.json"
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: no sweep: it has no sweep.json") from None
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot read it: {e}") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise InputError(f"{path}: it has another format than {FORMAT}")
    return described
