# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tuning found."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from blklab._native import InputError
from blklab._table import Table

if TYPE_CHECKING:
    import optuna

#: What is less is no difference that anybody notices: 3 %, as of ``blklab recommend``.
_MATTERS = 1.03


@dataclass(frozen=True)
class Gain:
    """What a setting does to a goal, on seeds and loads that were not searched with.

    Parameters
    ----------
    goal : str
        The figure.
    before, after : str
        What it is by default and with the setting, on the mean of the seeds, in the scene that
        gains least.
    scene : str
        Which one that is.
    better : float
        How many times better it is: in that scene, or on the mean of all if that counts.
    low, high : float
        The ends of its interval, corrected for the number of comparisons; all hold with 95 %.
    """

    goal: str
    before: str
    after: str
    scene: str
    better: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """better or worse, surely and by 3 % or more; no difference, if that is sure; or not
        sure."""
        if self.low > 1 and self.better >= _MATTERS:
            return "better"
        if self.high < 1 and self.better <= 1 / _MATTERS:
            return "worse"
        if self.low > 1 / _MATTERS and self.high < _MATTERS:
            return "no difference"
        return "not sure"

    def __str__(self) -> str:
        factor, low, high, word = self.better, self.low, self.high, "better"
        if factor < 1:
            factor, low, high, word = 1 / factor, 1 / high, 1 / low, "worse"
        return (
            f"{self.goal} goes from {self.before} to {self.after} "
            f"({factor:.2f} times {word}, 95 %: {low:.2f} to {high:.2f}; {self.scene})"
        )


@dataclass(frozen=True)
class Tried:
    """A setting that was tried on what was held out.

    Parameters
    ----------
    what : str
        In words.
    setting : dict
        By knob.
    values : dict
        What is set, by key.
    gains : sequence of Gain
        One for each goal.
    broken : sequence of str
        Bounds that it does not keep.
    """

    what: str
    setting: Mapping[str, Any]
    values: Mapping[str, Any]
    gains: Sequence[Gain]
    broken: Sequence[str]


@dataclass
class Tuned:
    """What :func:`blklab.tune` found.

    ``print(tuned)`` says what to set, why, and what to paste; or to leave it as it is.

    Parameters
    ----------
    answer : Tried, optional
        The setting to install; None if the default is fine.
    paste : str
        What to paste, each block with its evidence.
    confirmed : sequence of Tried
        The finalists on held-out seeds and loads.
    runs : int
        How many runs it took.
    seconds : float
        Wall time.
    notes : sequence of str
        What a reader should know.
    """

    goals: Sequence[str]
    answer: Tried | None
    paste: str
    confirmed: Sequence[Tried]
    study: optuna.Study
    importance_rows: Sequence[Mapping[str, Any]]
    sobol_rows: Sequence[Mapping[str, Any]]
    front_rows: Sequence[Mapping[str, Any]]
    runs: int
    seconds: float
    notes: Sequence[str] = field(default_factory=list)

    @property
    def front(self) -> Table:
        """The settings that keep the bounds, and that no other is better than in all goals: for
        each goal how many times better than the default it is, on the seeds of the search."""
        return _table(self.front_rows, ["what", *self.goals])

    @property
    def importance(self) -> Table:
        """How much of each goal each knob decides, from 0 to 1, by PED-ANOVA; ``sched`` is empty
        for all trials, or the scheduler of those that count."""
        return _table(self.importance_rows, ["goal", "sched", "knob", "share", "trials"])

    @property
    def sobol(self) -> Table:
        """Sobol's indices with their 95 % intervals; empty unless they were asked for."""
        names = ["goal", "knob", "first", "first_interval", "total", "total_interval"]
        return _table(self.sobol_rows, names)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws all trials and the front, two goals at a time; needs matplotlib."""
        try:
            import matplotlib
        except ImportError:
            raise InputError("plot: it needs matplotlib, which is not installed") from None
        matplotlib.use("Agg")
        from matplotlib import pyplot

        done = [t for t in self.study.trials if t.state.name == "COMPLETE"]
        pairs = [(0, place) for place in range(1, max(len(self.goals), 2))]
        figure, axes = pyplot.subplots(
            1, len(pairs), figsize=(5.5 * len(pairs), 4.2), squeeze=False
        )
        for axis, (x, y) in zip(axes[0], pairs, strict=True):
            y = min(y, len(self.goals) - 1)
            points = [(math.exp(-t.values[x]), math.exp(-t.values[y])) for t in done]
            axis.scatter(*zip(*points, strict=True), s=12, color="0.7", label="trials")
            front = [(row[self.goals[x]], row[self.goals[y]]) for row in self.front_rows]
            if front:
                axis.plot(*zip(*sorted(front), strict=True), "o-", color="C0", label="front")
            axis.plot([1], [1], "x", color="C3", markersize=9, label="default")
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel(f"{self.goals[x]}: times better")
            axis.set_ylabel(f"{self.goals[y]}: times better")
            axis.legend(frameon=False)
        figure.tight_layout()
        figure.savefig(path, dpi=120)
        pyplot.close(figure)

    def __str__(self) -> str:
        lines = []
        if self.answer is None:
            lines.append(self._leave())
        else:
            better = [g for g in self.answer.gains if g.verdict == "better"]
            lines.append(f"Set {self.answer.what}: {better[0]}.")
            lines += [f"   {gain}." for gain in self.answer.gains if gain is not better[0]]
        lines.append("")
        if self.confirmed:
            lines.append("Finalists on seeds and loads that were not searched with:")
        for tried in self.confirmed:
            mark = ">" if self.answer is not None and tried.what == self.answer.what else " "
            lines.append(f"{mark} {tried.what}")
            lines += [f"     {gain.verdict}: {gain}" for gain in tried.gains]
            lines += [f"     breaks: {text}" for text in tried.broken]
        shares = [row for row in self.importance_rows if row["sched"] is None]
        if shares:
            lines += ["", "Which knobs matter (PED-ANOVA, of all trials):"]
            for goal in self.goals:
                mine = sorted(
                    (r for r in shares if r["goal"] == goal), key=lambda r: -float(r["share"])
                )
                said = ", ".join(f"{r['knob']} {100 * r['share']:.0f} %" for r in mine[:4])
                lines.append(f"  {goal}: {said}")
        if self.paste:
            lines += ["", self.paste]
        lines += ["", *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines).rstrip()

    def _leave(self) -> str:
        if not self.front_rows:
            return "Leave it as it is: no setting that was tried keeps to the bounds."
        if not self.confirmed:
            return "Leave it as it is: no knob that was turned makes a difference of 1 %."
        nearest = self.confirmed[0]
        return (
            f"Leave it as it is: of {len(self.study.trials)} settings that were tried none is "
            f"surely better, surely worse nowhere, and keeps to the bounds; the nearest is "
            f"{nearest.what}."
        )

    def __repr__(self) -> str:
        said = "leave it as it is" if self.answer is None else f"set {self.answer.what}"
        return f"<blklab.Tuned: {said}>"


def _table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    return Table({name: [row.get(name) for row in rows] for name in names})
