# SPDX-License-Identifier: MIT OR Apache-2.0
"""Designs: which points of the space of all factors are run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blklab._native import InputError
from blklab._sweep._factors import Factor, shown
from blklab._sweep._where import Condition

#: A value for each factor, in their order.
Point = tuple[Any, ...]

#: Designs that draw points, with how many rounds may be needed until conditions leave enough.
SAMPLED = ("latin-hypercube", "sobol", "random")
DESIGNS = ("grid", *SAMPLED)

#: Points that are drawn for each that is kept, at most.
_DRAWN_MAX = 64

#: Points of a grid, at most: what a sweep of a week has.
_GRID_MAX = 100_000_000


def points(
    design: str,
    factors: Sequence[Factor],
    number: int | None,
    seed: int,
    conditions: Sequence[Condition],
) -> list[Point]:
    """The points of a design that fulfil all conditions.

    Parameters
    ----------
    design : str
        One of :data:`DESIGNS`.
    factors : sequence of Factor
        What varies.
    number : int, optional
        How many points a design that draws them has; a grid takes none.
    seed : int
        Seed of what is drawn.
    conditions : sequence of callable
        What each point must fulfil.
    """
    if design not in DESIGNS:
        raise InputError(f"design={design!r}: there are {', '.join(DESIGNS)}")
    if design == "grid":
        if number is not None:
            raise InputError("points: a grid has all of them; the other designs take a number")
        return _grid(factors, conditions)
    if number is None or number < 1:
        raise InputError(f"points={number}: the design {design} needs how many, 1 or more")
    return _drawn(design, factors, number, seed, conditions)


def _wanted(factors: Sequence[Factor], conditions: Sequence[Condition]) -> Callable[[Point], bool]:
    def wanted(point: Point) -> bool:
        named: Mapping[str, Any] = {
            f.name: value if isinstance(value, (int, float)) else shown(value)
            for f, value in zip(factors, point, strict=True)
        }
        return all(holds(named) for holds in conditions)

    return wanted


def _grid(factors: Sequence[Factor], conditions: Sequence[Condition]) -> list[Point]:
    values = [f.values() for f in factors]
    number = 1
    for each in values:
        number *= len(each)
    if number > _GRID_MAX:
        raise InputError(f"{number} points (values multiplied): at most {_GRID_MAX}")
    every = itertools.product(*values)
    if not conditions:
        return list(every)
    return list(filter(_wanted(factors, conditions), every))


def _drawn(
    design: str,
    factors: Sequence[Factor],
    number: int,
    seed: int,
    conditions: Sequence[Condition],
) -> list[Point]:
    from scipy.stats import qmc

    varying = [place for place, f in enumerate(factors) if f.varies]
    if not varying:
        raise InputError(f"design={design}: nothing varies; name a factor with several values")
    fulfils = _wanted(factors, conditions)
    found: dict[tuple[str, ...], Point] = {}
    drawn = 0
    # A Sobol sequence goes on where it ended; the others begin anew with another seed.
    sequence = qmc.Sobol(len(varying), rng=seed) if design == "sobol" else None
    while len(found) < number and drawn < _DRAWN_MAX * number:
        if sequence is not None:
            count = number if drawn else 1 << (number - 1).bit_length()
            # Its balance holds for powers of two; fewer of them are points all the same.
            shares = sequence.random(count)
        elif design == "latin-hypercube":
            count = number
            shares = qmc.LatinHypercube(len(varying), rng=seed + drawn).random(count)
        else:
            import numpy

            count = number
            shares = numpy.random.default_rng(seed + drawn).random((count, len(varying)))
        drawn += count
        for row in shares:
            if len(found) == number:
                break
            point = [f.choices[0] if f.choices else None for f in factors]
            for place, share in zip(varying, row, strict=True):
                point[place] = factors[place].at(float(share))
            if fulfils(tuple(point)):
                # What rounding and choices make equal is one point.
                found.setdefault(tuple(map(shown, point)), tuple(point))
        if all(f.range is None for f in factors) and drawn >= _DRAWN_MAX * number:
            break
    if not found:
        raise InputError(f"where: none of {drawn} points fulfils the conditions")
    return list(found.values())
