# SPDX-License-Identifier: MIT OR Apache-2.0
"""The search: trials in batches, the front, and what is left out of a setting again."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blklab._native import InputError
from blklab._tune._bench import Bench, Failed, Figures, Scene, cost, excess
from blklab._tune._objective import Bound, Objective
from blklab._tune._space import Setting, Space

if TYPE_CHECKING:
    import optuna

#: A figure may get so much worse when a knob is left as it was: 1 %.
_SAME = 0.01


class Search:
    """Looks for settings that are better than the default in several figures.

    Parameters
    ----------
    bench : Bench
        Where settings are tried.
    space : Space
        The knobs.
    goals : sequence of Objective
        What is to become better.
    bounds : sequence of Bound
        What must be kept.
    scenes : sequence of Scene
        Loads on devices.
    robust : str
        ``worst`` or ``mean`` of the scenes.
    seed, repeat : int
        The first seed, and how many.
    """

    def __init__(
        self,
        bench: Bench,
        space: Space,
        goals: Sequence[Objective],
        bounds: Sequence[Bound],
        scenes: Sequence[Scene],
        robust: str,
        seed: int,
        repeat: int,
    ) -> None:
        self.bench = bench
        self.space = space
        self.goals = goals
        self.bounds = bounds
        self.scenes = scenes
        self.robust = robust
        self.seed = seed
        self.repeat = repeat
        self.failures: list[str] = []
        (default,) = bench.figures([{}], scenes, seed, repeat)
        if isinstance(default, Failed):
            raise InputError(f"as it is, it does not run: {default}")
        self.default = default

    def costs(self, figures: Figures, repetition: int | None = None) -> list[float]:
        """How a setting does, a number for each goal: logarithms, 0 is the default."""
        return [cost(g, figures, self.default, self.robust, repetition) for g in self.goals]

    def excesses(self, figures: Figures) -> list[float]:
        """How far each bound is exceeded."""
        return [excess(b, figures, self.default) for b in self.bounds]

    def tried(self, settings: Sequence[Setting]) -> list[Figures | Failed]:
        """Tries settings."""
        return self.bench.figures(settings, self.scenes, self.seed, self.repeat)

    def study(self, trials: int, batch: int, sampler: str, seed: int) -> optuna.Study:
        """Runs trials, so many at a time."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            directions=["minimize"] * len(self.goals), sampler=_sampler(sampler, seed)
        )
        while len(study.trials) < trials:
            asked = [study.ask() for _ in range(min(batch, trials - len(study.trials)))]
            settings = [self.space.suggest(trial) for trial in asked]
            for trial, setting, figures in zip(asked, settings, self.tried(settings), strict=True):
                costs = None if isinstance(figures, Failed) else self.costs(figures)
                if costs is None or not all(math.isfinite(c) for c in costs):
                    said = str(figures) if isinstance(figures, Failed) else "nothing came through"
                    self.failures.append(f"{self.space.what(setting)}: {said}")
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                    continue
                assert not isinstance(figures, Failed)
                for b, beyond in zip(self.bounds, self.excesses(figures), strict=True):
                    trial.set_constraint(b.text, beyond)
                study.tell(trial, costs)
        return study

    def simplified(self, setting: Setting) -> dict[str, Any]:
        """A setting without the knobs that make no difference in it."""
        whole = dict(setting)
        if len(whole) < 2:
            return whole
        without = {name: {k: v for k, v in whole.items() if k != name} for name in whole}
        tried = dict(zip(without, self.tried([whole, *without.values()])[1:], strict=True))
        (figures,) = self.tried([whole])
        if isinstance(figures, Failed):
            return whole
        costs = self.costs(figures)
        idle = [name for name, each in tried.items() if self._same(each, costs)]
        less = {k: v for k, v in whole.items() if k not in idle}
        # Two knobs may do the same: without either nothing changes, without both it does.
        while idle and not self._same(self.tried([less])[0], costs):
            back = idle.pop(0)
            less[back] = whole[back]
        return {name: value for name, value in whole.items() if name in less}

    def _same(self, figures: Figures | Failed, costs: Sequence[float]) -> bool:
        if isinstance(figures, Failed) or any(e > 0 for e in self.excesses(figures)):
            return False
        mine = self.costs(figures)
        return all(m <= c + _SAME for m, c in zip(mine, costs, strict=True))


def _sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    import optuna

    if name == "default":
        return optuna.samplers.TPESampler(seed=seed)
    if name == "gp":
        try:
            import torch  # noqa: F401
        except ImportError:
            raise InputError("sampler='gp': it needs torch, which is not installed") from None
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=False)
    raise InputError(f"sampler={name!r}: there are default, gp")


def kept(trial: optuna.trial.FrozenTrial) -> bool:
    """Whether a trial keeps all bounds."""
    return all(value <= 0 for value in trial.constraints.values())


def front(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that keep the bounds and that no other is better than in all goals."""
    done = [t for t in study.trials if t.state.name == "COMPLETE" and kept(t)]

    def beats(one: Sequence[float], other: Sequence[float]) -> bool:
        no_worse = all(a <= b for a, b in zip(one, other, strict=True))
        return no_worse and any(a < b for a, b in zip(one, other, strict=True))

    best = [t for t in done if not any(beats(o.values, t.values) for o in done)]
    unique = {tuple(sorted((k, str(v)) for k, v in t.params.items())): t for t in best}
    return sorted(unique.values(), key=lambda t: list(t.values))


@dataclass(frozen=True)
class _ValueAt:
    """What a trial came to in one goal."""

    place: int

    def __call__(self, trial: optuna.trial.FrozenTrial) -> float:
        return float(trial.values[self.place])


def importances(
    study: optuna.Study, goals: Sequence[Objective], conditional: bool
) -> list[dict[str, Any]]:
    """How much of each goal each knob decides, by PED-ANOVA: of all trials, and, as tunables
    belong to one scheduler, of those with each scheduler."""
    import optuna

    found: list[dict[str, Any]] = []
    done = [t for t in study.trials if t.state.name == "COMPLETE"]
    parts: dict[str | None, list[optuna.trial.FrozenTrial]] = {None: done}
    if conditional:
        for trial in done:
            parts.setdefault(str(trial.params.get("sched")), []).append(trial)
    for part, trials in parts.items():
        if len(trials) < 10:
            continue
        some = optuna.create_study(directions=["minimize"] * len(goals))
        some.add_trials(trials)
        for place, goal in enumerate(goals):
            if len({t.values[place] for t in trials}) < 2:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                of_goal: Callable[[Any], float] = _ValueAt(place)
                shares = optuna.importance.get_param_importances(
                    some,
                    evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                    target=of_goal,
                )
            for knob, share in shares.items():
                found.append(
                    {
                        "goal": goal.text,
                        "sched": part,
                        "knob": knob,
                        "share": float(share),
                        "trials": len(trials),
                    }
                )
    return found


def sobol(search: Search, number: int, seed: int) -> list[dict[str, Any]]:
    """Sobol's indices of the knobs for each goal, by SALib: what a knob decides by itself
    (``first``), and with all that it does together with others (``total``)."""
    import numpy
    from SALib.analyze import sobol as analyze
    from SALib.sample import sobol as sample

    names = [knob.name for knob in search.space.knobs]
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    shares = sample.sample(problem, number, calc_second_order=False, seed=seed)
    tried = search.tried([search.space.at([float(s) for s in row]) for row in shares])
    found = []
    failed = sum(isinstance(f, Failed) for f in tried)
    if failed:
        raise InputError(f"sobol: {failed} of {len(tried)} settings do not run: narrow the knobs")
    costs = numpy.array([search.costs(f) for f in tried if not isinstance(f, Failed)])
    for place, goal in enumerate(search.goals):
        values = costs[:, place]
        if not numpy.isfinite(values).all() or not values.std():
            continue
        indices = analyze.analyze(
            problem, values, calc_second_order=False, seed=seed, print_to_console=False
        )
        for at, name in enumerate(names):
            found.append(
                {
                    "goal": goal.text,
                    "knob": name,
                    "first": float(indices["S1"][at]),
                    "first_interval": float(indices["S1_conf"][at]),
                    "total": float(indices["ST"][at]),
                    "total_interval": float(indices["ST_conf"][at]),
                }
            )
    return found
