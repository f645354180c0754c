# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps as files of TOML: the keywords of :func:`blklab.sweep`, by their names."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from blklab._native import InputError, MissingFileError
from blklab._sweep._factors import KEYWORDS
from blklab._sweep._run import sweep

#: What a file says otherwise than the function: jobs by name, factors together.
_OWN = ("job", "jobs", "factors")

#: What only a program has.
_NOT_IN_FILES = ("executor", "progress")


def read_spec(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The keywords that a file says, ``job`` among them.

    Parameters
    ----------
    path : path
        A file of TOML. Paths of jobs and of the folder count from where it lies.

    Raises
    ------
    InputError
        If it says something else.
    """
    said = read_toml(path)
    keywords = keywords_of(said, path, sweep)
    folder = Path(path).parent
    if "out" in keywords:
        keywords["out"] = str(folder / str(keywords["out"]))
    return keywords


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A file of TOML."""
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise MissingFileError(f"{os.fspath(path)}: there is no such file") from None
    except (OSError, ValueError) as e:
        raise InputError(f"{os.fspath(path)}: {e}") from None


def keywords_of(
    said: Mapping[str, Any], path: str | os.PathLike[str], function: Callable[..., Any]
) -> dict[str, Any]:
    """The keywords of a function that a file says, its jobs read from beside it."""
    known = [
        name
        for name in inspect.signature(function).parameters
        if name not in (*KEYWORDS, "set", *_NOT_IN_FILES)
    ]
    known = list(dict.fromkeys([*_OWN, *known]))
    for name in said:
        if name not in known:
            raise InputError(f"{os.fspath(path)}: '{name}' is no key: there are {', '.join(known)}")
    keywords = {name: value for name, value in said.items() if name not in _OWN}
    keywords["job"] = jobs_of(said, path)
    factors = said.get("factors", {})
    if not isinstance(factors, Mapping):
        raise InputError(f"{os.fspath(path)}: factors is a table")
    for name, value in factors.items():
        if name != "set" and name not in KEYWORDS:
            raise InputError(
                f"{os.fspath(path)}: factors.{name}: there are {', '.join(KEYWORDS)}, and settings "
                "below factors.set"
            )
        keywords[name] = flat(value, "factors.set") if name == "set" else value
    return keywords


def jobs_of(said: Mapping[str, Any], path: str | os.PathLike[str]) -> Any:
    """The jobs that ``job`` or ``jobs`` of a file names."""
    if ("job" in said) == ("jobs" in said):
        raise InputError(
            f"{os.fspath(path)}: it names job, a path, a text or a list of them, or jobs, a table "
            "of these by name"
        )
    folder = Path(path).parent

    def found(job: Any) -> Any:
        # A path counts from the file; a scenario's name is none.
        if isinstance(job, str) and "\n" not in job and (folder / job).exists():
            return str(folder / job)
        return job

    if "jobs" in said:
        jobs = said["jobs"]
        if not isinstance(jobs, Mapping):
            raise InputError(f"{os.fspath(path)}: jobs is a table of jobs by name; a list is job")
        return {name: found(job) for name, job in jobs.items()}
    job = said["job"]
    return [found(each) for each in job] if isinstance(job, list) else found(job)


def flat(settings: Any, name: str) -> dict[str, Any]:
    """Settings whose names have dots may be tables: ``device = { rpm = [5400, 7200] }``."""
    if not isinstance(settings, Mapping):
        raise InputError(f"{name} is a table")
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and "low" not in value and "high" not in value:
            found.update({f"{key}.{inner}": v for inner, v in flat(value, name).items()})
        else:
            found[key] = value
    return found
