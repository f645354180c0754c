# SPDX-License-Identifier: MIT OR Apache-2.0
"""What runs: experiments of job files, texts, dictionaries, scenarios and traces."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from blklab import _native


class Experiment:
    """A workload, and the block stack and device that it names.

    Made by :func:`experiment`; it does not change, and can be sent to another process.
    """

    def __init__(self, source: tuple[str, ...]) -> None:
        self._source = source
        kind, *rest = source
        if kind == "file":
            self._native = _native.Experiment.load(*rest)
        elif kind == "trace":
            path, settings = rest
            self._native = _native.Experiment.of_trace(path, json.loads(settings))
        else:
            name, text = rest
            self._native = _native.Experiment.parse(name, kind, text)

    @property
    def id(self) -> str:
        """Its name."""
        return self._native.id

    @property
    def source(self) -> tuple[str, ...]:
        """What it was made of: the kind, then a path, or a name and a text."""
        return self._source

    def __reduce__(self) -> tuple[Any, ...]:
        return (Experiment, (self._source,))

    def __repr__(self) -> str:
        return f"<blklab.Experiment {self.id}>"


#: What :func:`experiment` reads.
Job = str | os.PathLike[str] | Mapping[str, Any] | Experiment


def experiment(job: Job) -> Experiment:
    """Reads what is to run.

    Parameters
    ----------
    job : str, path, dict or Experiment
        The path of a fio job file, of an experiment file (TOML or JSON) or of a run directory;
        the name of a built-in scenario; the text of a job or experiment file (it has a line
        feed in it); a dictionary of sections, each a dictionary of fio's options (True for an
        option without a value); or a dictionary with the keys of an experiment file.

    Raises
    ------
    InputError
        If it is none of these, with what would be right.

    Examples
    --------
    >>> experiment("[reader]\\nrw=randread\\nsize=1m\\n")
    <blklab.Experiment job>
    >>> experiment({"reader": {"rw": "randread", "size": "1m", "direct": 1}})
    <blklab.Experiment job>
    """
    if isinstance(job, Experiment):
        return job
    if isinstance(job, Mapping):
        if all(isinstance(options, Mapping) for options in job.values()) and job:
            return Experiment(("fio", "job.fio", job_text(job)))
        return Experiment(("json", "experiment.json", json.dumps(job)))
    text = os.fspath(job)
    if "\n" in text:
        return Experiment(_of_text(text))
    return Experiment(("file", text))


def of_trace(path: str | os.PathLike[str], **settings: str) -> Experiment:
    """The experiment that repeats the I/O of a trace."""
    return Experiment(("trace", os.fspath(path), json.dumps([*settings.items()])))


def job_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """A fio job file of sections with their options."""
    lines = []
    for name, options in sections.items():
        lines.append(f"[{name}]")
        for option, value in options.items():
            if value is True:
                lines.append(option)
            elif value is not None and value is not False:
                lines.append(f"{option}={value}")
    return "\n".join(lines) + "\n"


def _of_text(text: str) -> tuple[str, str, str]:
    said = (line.strip() for line in text.splitlines())
    first = next((line for line in said if line and line[0] not in "#;"), "")
    if first.startswith("{"):
        return ("json", "experiment.json", text)
    if first.startswith("["):
        return ("fio", "job.fio", text)
    return ("toml", "experiment.toml", text)
