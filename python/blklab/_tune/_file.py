# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tuning as files of TOML: the keywords of :func:`blklab.tune`, by their names."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from blklab._native import InputError
from blklab._sweep._file import flat, jobs_of, read_toml
from blklab._tune._run import tune

#: What only a program has.
_NOT_IN_FILES = ("executor", "progress")


def read_tuning(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The keywords that a file says, ``job`` among them.

    Parameters
    ----------
    path : path
        A file of TOML. Paths of jobs and of the folder count from where it lies. ``jobs`` and
        ``held_out`` are tables of jobs by name, or paths.
    """
    said = read_toml(path)
    known = [n for n in inspect.signature(tune).parameters if n not in _NOT_IN_FILES]
    known.insert(1, "jobs")
    for name in said:
        if name not in known:
            raise InputError(f"{os.fspath(path)}: '{name}' is no key: there are {', '.join(known)}")
    if "goals" not in said:
        raise InputError(f"{os.fspath(path)}: it has no goals: 'read p99 of db'")
    keywords = {name: value for name, value in said.items() if name not in ("job", "jobs")}
    keywords["job"] = jobs_of({k: said[k] for k in ("job", "jobs") if k in said}, path)
    if "held_out" in said:
        held = said["held_out"]
        key = "jobs" if isinstance(held, dict) else "job"
        keywords["held_out"] = jobs_of({key: held}, path)
    for name in ("knobs", "set"):
        if name in said:
            keywords[name] = flat(said[name], name)
    if "out" in said:
        keywords["out"] = str(Path(path).parent / str(said["out"]))
    return keywords
