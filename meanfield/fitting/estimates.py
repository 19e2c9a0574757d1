"""Fit of numbers of a problem to runs: the Gaussian likelihood of what runs show at all times, to leading order in 1/N.

Runs scatter about the limit with a covariance C/N at and between all output times (`meanfield.numerics.linear_noise`).
What they show at the start is taken as it is, and carried on. Fisher scoring maximises the likelihood, with derivatives
of the limit and of C by differences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield.arguments import as_text
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.errors import InputError
from meanfield.fitting.likelihood import Data, Likelihood
from meanfield.numerics.linear_noise import NoiseInTime
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import held_by, value_of, with_values
from meanfield.problems.variable import AGREES, DIFFERS
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

STEP = 1e-3
"""Step of differences, relative to the value of a key: their error is some 1e-6 of a derivative."""

INDISTINGUISHABLE = 1e-6
"""Least eigenvalue of the Fisher information, in units in which each key has 1: differences hide smaller ones."""

MOST_STEPS, MOST_HALVINGS = 50, 30

At = Callable[[FloatArray], Likelihood]
Effect = tuple[FloatArray, FloatArray]
"""Derivatives of mean and covariance by a key."""


def fit(problem: Problem, runs: xr.Dataset, keys: Sequence[str]) -> xr.Dataset:
    """Estimate numbers of a problem from runs of SGD, with confidence intervals.

    Parameters
    ----------
    problem : Problem
        That the runs are held to be of; it has the values at which the search starts.
    runs : xarray.Dataset
        One run or more of the kind `particles`, of the library or by `meanfield.runs`, at output times of the problem.
    keys : sequence of str
        Keys of the numbers to estimate, such as `model.learning_rate`, within what the problem allows.

    Returns
    -------
    xarray.Dataset
        Of the kind `fit`: `estimate` of each `key`, `lower` and `upper` ends of its 95 % interval, and
        `estimate_covariance`; `chi_square` of the means over runs about the fitted limit and of the scatter of runs,
        with `degrees` of freedom and the `chance` of such a one. The attribute `verdict` is AGREES if the fitted limit
        describes the runs, else DIFFERS.

    Raises
    ------
    InputError
        If a key holds no real number, nothing that runs show depends on it, keys cannot be told apart, an estimate runs
        into the end of its range, or the covariance of runs in time is not known.

    Notes
    -----
    Intervals are those of the Fisher information, of means and scatter, and hold where the likelihood is parabolic over
    them. Errors of order 1/N of the limit are left out: take N well above the number of runs.
    """
    started = time.perf_counter()
    keys = _checked_keys(problem, keys)
    family = family_of(problem)
    if not family.noise_in_time:
        raise InputError(f"fit: of the family '{family.name}' the covariance of runs between times is not known")
    data = Data.of(problem, runs)
    limit_of: Callable[[Problem], NoiseInTime] = resolve(family.noise_in_time)

    def at(values: FloatArray) -> Likelihood:
        return Likelihood.of(data, limit_of(with_values(problem, dict(zip(keys, values.tolist(), strict=True)))))

    values = np.array([value_of(problem, key) for key in keys], dtype=float)
    here = at(values)
    effects: list[Effect] | None = None
    for _ in range(MOST_STEPS):
        fresh = effects is None
        effects = effects or _effects(keys, values, here, at)
        score, information = _score(here, effects)
        if fresh:
            _check_apart(keys, values, information)
        step = np.asarray(np.linalg.solve(information, score), dtype=float)
        size = float(step @ information @ step)
        if fresh and size < 1e-4:  # square of a step in standard errors: a hundredth of one
            break
        if fresh:
            values, here = _better(keys, values, step, here, at)
            effects = effects if size < 4.0 else None  # within two standard errors derivatives hardly change
        else:
            further, effects = _allowed(values + step, at), None
            values, here = (values + step, further) if further and further.value > here.value else (values, here)
    else:
        raise InputError(f"fit: no estimate after {MOST_STEPS} steps; give a problem with values nearer to the runs")
    covariance = np.linalg.inv(information)
    half = 1.959964 * np.sqrt(np.diag(covariance))  # 95 % of a normal law
    chi_square, degrees, chance = here.judged(len(keys))
    arrays = {
        "key": np.array(keys),
        "estimate": values,
        "lower": values - half,
        "upper": values + half,
        "estimate_covariance": covariance,
        "part": np.array(["means", "scatter"][: len(chance)]),
        "chi_square": chi_square,
        "degrees": degrees,
        "chance": chance,
    }
    verdict = AGREES if chance.min() * len(chance) >= FALSE_ALARMS else DIFFERS
    solved = Solved(
        "fit", arrays, effort={"runs": data.runs.sizes["replica"], "N": data.N}, attributes={"verdict": verdict}
    )
    return solved.dataset(problem, time.perf_counter() - started)


def format_fit(found: xr.Dataset) -> str:
    """A fit in words: estimates with their intervals, and whether the fitted limit agrees with the runs."""
    width = max(map(len, found["key"].values.tolist()))
    rows = zip(*(found[name].values.tolist() for name in ("key", "estimate", "lower", "upper")), strict=True)
    lines = [f"{key:{width}}  {value:.6g}  (95 %: {low:.6g} to {high:.6g})" for key, value, low, high in rows]
    parts = zip(*(found[name].values.tolist() for name in ("part", "chi_square", "degrees", "chance")), strict=True)
    judged = [f"chi^2 of {part} {value:.1f} for {degrees:g} (p = {p:.2g})" for part, value, degrees, p in parts]
    return "\n".join([*lines, f"fitted limit - runs: {found.attrs['verdict']}; {', '.join(judged)}"])


def _checked_keys(problem: Problem, keys: Sequence[str]) -> list[str]:
    check_problem(problem)
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not keys:
        raise InputError(f"keys = {keys!r:.60}; give a list of keys, such as ['model.learning_rate']")
    for key in keys:
        as_text(key, "keys", "give keys, such as 'model.learning_rate'")
        value_of(problem, key)
        if isinstance(held_by(problem, key), int):
            raise InputError(f"'{key}' takes whole numbers only; estimate keys that vary continuously")
    twice = next((key for key in keys if list(keys).count(key) > 1), None)
    if twice is not None:
        raise InputError(f"keys: '{twice}' stands there twice; give each once")
    return list(keys)


def _effects(keys: list[str], values: FloatArray, here: Likelihood, at: At) -> list[Effect]:
    """Derivatives of mean and covariance by each key, by differences.

    Raises
    ------
    InputError
        If a key cannot be varied alone, or decides the start.
    """
    found = []
    for i, shift in enumerate(np.diag(STEP * _units(values))):
        ends = [(side, near) for side in (1.0, -1.0) if (near := _allowed(values + side * shift, at)) is not None]
        (first, one), (second, other) = [*ends, (0.0, here), (0.0, here)][:2]  # one side alone at an end of the range
        if one.mean.shape != other.mean.shape or one is other:
            raise InputError(
                f"fit: '{keys[i]}' = {values[i]:g} cannot be varied alone; leave it out, or start from another value"
            )
        if not np.array_equal(one.start, other.start):
            raise InputError(f"fit: '{keys[i]}' decides the start, which the runs show themselves; leave it out")
        length = (first - second) * shift[i]
        found.append(((one.mean - other.mean) / length, (one.covariance - other.covariance) / length))
    return found


def _score(here: Likelihood, effects: list[Effect]) -> tuple[FloatArray, FloatArray]:
    """Score and Fisher information by derivatives of mean and covariance."""
    white, runs = here.white, len(here.away)
    scores, parts = [], []
    for of_mean, of_covariance in effects:
        slope = np.sqrt(here.N) * here.whitened(of_mean)
        spread = here.whitened(here.whitened(of_covariance).T)
        scores.append(slope @ white.sum(axis=1) + 0.5 * (np.sum(white * (spread @ white)) - runs * np.trace(spread)))
        parts.append(np.append(slope, math.sqrt(0.5) * spread))
    return np.array(scores), runs * np.array(parts) @ np.array(parts).T


def _units(values: FloatArray) -> FloatArray:
    """Sizes of numbers, 1 of those that are 0."""
    return np.where(values == 0.0, 1.0, np.abs(values))


def _check_apart(keys: list[str], values: FloatArray, information: FloatArray) -> None:
    """Refuse keys on which nothing depends, or whose effects are the same."""
    scale = np.sqrt(np.diag(information))
    relative = scale * _units(values)
    for key, size in zip(keys, relative, strict=True):
        if not size > np.sqrt(INDISTINGUISHABLE):
            raise InputError(f"fit: nothing that the runs show after their start depends on '{key}'; leave it out")
    eigenvalues, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    if eigenvalues[0] < INDISTINGUISHABLE:
        direction = vectors[:, 0] / relative
        direction = direction / direction[np.abs(direction).argmax()]
        moved = [
            f"{key} by {0.01 * part:+.3g}" if value == 0.0 else f"{key} by {part:+.3g} %"
            for key, value, part in zip(keys, values, direction, strict=True)
            if abs(part) > 1e-3
        ]
        raise InputError(
            f"fit: the keys cannot be told apart, as what runs show stays the same if one changes {', '.join(moved)} "
            f"(eigenvalue {eigenvalues[0]:.1g} of the Fisher information); leave one of them out"
        )


def _allowed(values: FloatArray, at: At) -> Likelihood | None:
    """Likelihood of some values, None where the problem or its limit does not have them."""
    try:
        return at(values)
    except (InputError, np.linalg.LinAlgError):
        return None


def _better(
    keys: list[str], values: FloatArray, step: FloatArray, here: Likelihood, at: At
) -> tuple[FloatArray, Likelihood]:
    """Values along a step with a larger likelihood, at half of it or less where the whole has none."""
    refused, relative = False, np.abs(step) / _units(values)
    # A fifth of its value is the largest change of a number: far from the runs the likelihood is no parabola.
    step = step / max(1.0, float(relative.max()) / 0.2)
    for halvings in range(MOST_HALVINGS):
        further = values + 0.5**halvings * step
        found = _allowed(further, at)
        if found is not None and found.value > here.value:
            return further, found
        refused |= found is None
    key = keys[int(np.argmax(relative))]
    raise InputError(
        f"fit: the estimate of '{key}' runs into the end of what the problem allows, near {values.tolist()}; leave it "
        "out, or start from other values"
        if refused
        else f"fit: the likelihood does not rise along '{key}' near {values.tolist()}, where the limit is not smooth; "
        "lower its tolerance, or start from other values"
    )
