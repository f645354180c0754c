# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the kernel changed for a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from blklab import _native
from blklab._job import Job, experiment
from blklab._stack import Values, check_single, stack
from blklab._table import Table


class KernelChanges(Sequence[Mapping[str, Any]]):
    """From each kernel to the next: how the numbers differ, and which change does it.

    Each step is a dictionary: ``before``, ``after``, ``runs``, ``figures``, ``effects`` (a
    change with its ``name``, ``what``, ``source`` and ``figures``), ``without_effect`` (names of
    changes that do nothing here) and ``is_all`` (the later kernel without all of them runs event
    for event as the earlier one).
    """

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self._steps = steps

    def __getitem__(self, place: Any) -> Any:
        return self._steps[place]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._steps)

    @cached_property
    def figures(self) -> Table:
        """A row for each number of the jobs: on the kernel before, on the one after, their
        ratio, its 95 % interval, the verdict."""
        rows = [
            {"before": step["before"], "after": step["after"], **_figure(figure)}
            for step in self
            for figure in step["figures"]
        ]
        return _table(["before", "after", *_FIGURE], rows)

    @cached_property
    def effects(self) -> Table:
        """A row for each change and number: the value without the change and with it, the
        largest effect first."""
        rows = [
            {"step": f"{step['before']} -> {step['after']}", "change": effect["name"]}
            | _figure(figure)
            | {"what": effect["what"]}
            for step in self
            for effect in step["effects"]
            for figure in effect["figures"]
        ]
        return _table(["step", "change", *_FIGURE, "what"], rows)

    def __str__(self) -> str:
        lines = []
        for step in self:
            lines.append(f"{step['before']} -> {step['after']}")
            lines += [f"  {_words(figure)}" for figure in step["figures"] if _is_one(figure)]
            for effect in step["effects"]:
                lines.append(f"  {effect['name']}: {effect['what']}")
                lines += [f"    {_words(f)}" for f in effect["figures"] if _is_one(f)]
            nothing = len(step["without_effect"])
            lines.append(f"  {nothing} changes between the two do nothing here")
            if step["is_all"]:
                lines.append("  that is all: without them the runs are the same, event for event")
            else:
                lines.append("  that is not all: without them the runs still differ")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<blklab.KernelChanges: {len(self)} steps>"

    def _repr_html_(self) -> str:
        return self.figures._repr_html_() + self.effects._repr_html_()


#: Columns of a number that differs.
_FIGURE = ("job", "direction", "metric", "value_before", "value_after", "ratio", "low", "high",
           "verdict")  # fmt: skip


def _figure(figure: Mapping[str, Any]) -> dict[str, Any]:
    low, high = figure["interval"] or (None, None)
    return {
        "job": figure["job"],
        "direction": figure["direction"],
        "metric": figure["metric"],
        "value_before": figure["before"],
        "value_after": figure["after"],
        "ratio": figure["ratio"],
        "low": low,
        "high": high,
        "verdict": figure["verdict"],
    }


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table({name: [row[name] for row in rows] for name in columns})


def _is_one(figure: Mapping[str, Any]) -> bool:
    if figure["verdict"] == "one_run" and figure["ratio"]:
        # Nothing is known of the noise.
        return bool(abs(figure["ratio"] - 1) >= 0.01)
    return figure["verdict"] not in ("no_difference", "same")


def _words(figure: Mapping[str, Any]) -> str:
    ratio = figure["ratio"]
    times = "" if ratio is None else f", {ratio:.3g} times"
    return (
        f"{figure['job']} {figure['direction']} {figure['metric']}: "
        f"{figure['before']:.6g} -> {figure['after']:.6g}{times} ({figure['verdict']})"
    )


def kernels(
    job: Job,
    kernels: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    repeat: int = 5,
    seed: int | None = None,
    threads: int | None = None,
    sched: Any = None,
    device: Any = None,
    fs: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 -- the command's name
    md: str | None = None,
    dm: str | None = None,
    memory: str | None = None,
    section: Values = None,
) -> KernelChanges:
    """What newer kernels change for a job, and which of their changes does it.

    The job runs on each kernel. Then each change between a kernel and the next is left out of
    the later one, one at a time: what the result loses is what the change does.

    Parameters
    ----------
    job : str, path, dict or Experiment
    kernels : sequence of str
        Two or more, as :func:`run` takes them.
    metrics : sequence of str, optional
        Columns of ``blklab.list.metrics()`` that jobs have; the usual ones otherwise.
    repeat : int, default 5
        Seeds of each, in pairs: intervals and verdicts are over these.
    sched, device, fs, set, md, dm, memory, section, seed, threads : optional
        As :func:`run` takes them. Without ``sched`` each kernel has its own default.

    Returns
    -------
    KernelChanges

    Examples
    --------
    >>> job = {"r": {"rw": "read", "size": "32m"}}
    >>> found = kernels(job, ["6.12", "7.3"], device="sata-7200-2008", repeat=2)
    >>> found[0]["is_all"]
    True
    """
    chosen = stack(
        sched=sched,
        device=device,
        fs=fs,
        set=set,
        md=md,
        dm=dm,
        memory=memory,
        section=section,
        seed=seed,
        repeat=repeat,
    )
    check_single(chosen)
    steps = _native.changes(experiment(job)._native, chosen, list(kernels), list(metrics), threads)
    return KernelChanges(steps)
