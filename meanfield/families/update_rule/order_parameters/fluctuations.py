"""Covariance of the order parameters over runs of SGD, which is C/N to leading order (update_rules.md, section 6).

It obeys dC/dt = J C + C J^T + S, with the Jacobian J of the rates and the covariance S of a step, from C = 0, as all
runs have the same order parameters at the start.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

from meanfield.errors import InputError
from meanfield.families.update_rule.choices import check_tails
from meanfield.families.update_rule.order_parameters.equations import Choices, Equations, Place, Rules, programs_of
from meanfield.families.update_rule.order_parameters.errors import chosen_rule, errors_by, other_rules
from meanfield.families.update_rule.order_parameters.jacobian import EXPANDED, jacobian_at
from meanfield.families.update_rule.order_parameters.steps import covariance_of_step, expansion_of
from meanfield.numerics.gaussian_moments.expansion import Expansion
from meanfield.numerics.gaussian_moments.rules import MOST_NODES, Rule
from meanfield.numerics.linear_noise import covariance_in_stretches, interpolant
from meanfield.numerics.ode import Solution
from meanfield.typing import FloatArray

MOST_NUMBERS = 100
"""Largest number of order parameters whose covariance is followed: the cost grows with its cube."""

TOLERANCE = 1e-5
"""Least tolerance of averages; otherwise it is that of the order parameters, as bands need no more."""

SMOOTH = 2e-5
"""Tolerance of J and S as series in time, relative to their size: what is left out is a hundred times smaller."""

NODES = 24
"""Number of times of an interval of such series: in most problems one is enough for all times."""

IN_TIME = 1e-5
"""Error of a covariance by series in time, relative to its largest entry."""

POINTS = 2**12
"""Random points of a randomisation for such products of sums of terms that read more than memory allows in products."""

TRIED = 5
"""Times of a stretch at which other averages are taken, for errors."""


class Linear(NamedTuple):
    """Linear equations of deviations from the path in a stretch, as functions of time.

    Parameters
    ----------
    times : ndarray
        Both ends of the stretch, and output times in between.
    J, S : callable
        Jacobian of the rates and covariance of a step, shape (numbers, numbers).
    slopes : callable
        Derivatives of observables by the order parameters, shape (observables, numbers).
    """

    times: FloatArray
    J: Callable[[float], FloatArray]
    S: Callable[[float], FloatArray]
    slopes: Callable[[float], FloatArray]


def fluctuations(
    equations: Equations, solution: Solution, places: Iterable[Place], start: FloatArray | None = None
) -> tuple[dict[str, FloatArray], bool]:
    """N times covariances of the order parameters and of observables over runs, with errors.

    Parameters
    ----------
    equations : Equations
    solution : Solution
        With its path.
    places : iterable of (float, ndarray)
        Times and states at which rules of quadrature are chosen.
    start : ndarray, optional
        N times the covariance at the start; zero, if nothing is said.

    Returns
    -------
    arrays : dict of str to ndarray
        `overlap_covariance` of all order parameters, its parts `R_covariance` and so on, and their errors.
    interrupted : bool
        Whether Ctrl-C came, which leaves NaN or no errors.

    Raises
    ------
    InputError
        If the covariance is not known, with the reason.
    """
    choices, stretches = stretches_of(equations, solution, places)
    found, interrupted = _covariances(equations, solution, stretches, start)
    coarse = equations.with_fewer_hidden_nodes()
    exact = coarse is equations and all(choice.coarser is choice.rule for choice in choices.values())
    solutions: list[dict[str, FloatArray]] = []
    for number, which in enumerate([] if exact else other_rules(choices)):
        if interrupted:
            return found, True
        others = linear_along(coarse, solution, coarse.rules(choices, which), number)
        near = [_corrected(*each) for each in zip(stretches, others, strict=True)]
        other, interrupted = _covariances(equations, solution, near, start)
        solutions.append(other)
    errors = errors_by(solutions or [found], found)
    for name, values in found.items():  # the largest of all entries: at single ones solutions agree by chance
        largest = np.nanmax(errors[f"{name}_error"], initial=0.0) + IN_TIME * np.nanmax(np.abs(values), initial=0.0)
        errors[f"{name}_error"] = np.where(np.isnan(values), np.nan, largest)
    return found | errors, interrupted


def stretches_of(equations: Equations, solution: Solution, places: Iterable[Place]) -> tuple[Choices, list[Linear]]:
    """Linear equations in each stretch by series in time, and the rules of quadrature; see `fluctuations`."""
    if equations.nodes is not None:
        raise InputError(
            "coordinates have different variances, data.spectrum: overlaps at single eigenvalues scatter at the start"
        )
    tolerance = max(TOLERANCE, equations.problem.order_parameters.tolerance)
    choices = equations.choose(places, tolerance, {})
    rules = equations.rules(choices, chosen_rule)
    if len(equations.start) > (most := most_numbers(rules)):
        raise InputError(f"there are {len(equations.start)} order parameters, and at most {most} are followed")
    for number, stretch in enumerate(equations.stretches):
        system, G, _, constants = equations.place(number, float(stretch.times[0]), equations.start, rules.means[number])
        for draw in system.draws:
            check_tails(draw, draw.update, G, constants, products=4)
    return choices, [_in_time(each) for each in linear_along(equations, solution, rules)]


def most_numbers(rules: Rules) -> int:
    """Largest number of order parameters whose covariance is followed by averages with some rules."""
    terms = any(rule.kind == "terms" for stretch in rules.draws for rule in stretch)
    # Sums of terms allow 3 students of 3 teachers: 8 of 8 take as long as their path, to errors of a third.
    return 20 if terms else MOST_NUMBERS


def finer_rule(rule: Rule, directions: int, randomisation: int | None) -> Rule:
    """Rule for products of four values, which have twice the degree of those of two, as far as memory allows."""
    if rule.kind == "polynomial":
        return replace(rule, order=max(2 * rule.order - 1, rule.order + 1))
    # Factor of the nodes for products of four values of a rule, where averages have two.
    order = math.ceil(1.25 * rule.order)
    if rule.kind == "kinked":
        return replace(rule, order=order, degree=None if rule.degree is None else 2 * rule.degree + 1)
    if rule.kind == "smooth" and order**directions <= MOST_NODES:
        return replace(rule, order=order)
    if rule.kind == "terms" and rule.order**directions <= MOST_NODES:  # their order is more than products need
        return replace(rule, kind="smooth", parts=None)
    if rule.kind == "terms":  # the products have terms of more slots than two
        return Rule("random", POINTS, rule.kinks, randomisation=randomisation)
    return rule


def linear_along(
    equations: Equations, solution: Solution, rules: Rules, randomisation: int | None = None
) -> list[Linear]:
    """Linear equations in each stretch; where points are random, by one of their randomisations or all."""
    path = solution.path
    assert path is not None

    def in_stretch(number: int) -> Linear:
        stretch = equations.stretches[number]
        system, programs = stretch.system, programs_of(stretch.system)
        kinds = [kind[number] for kind in (rules.means, rules.draws, rules.observables)]
        first, last = np.cumsum([len(kind) for kind in kinds])[:2]
        finer = [
            finer_rule(rule, len(program.reads), randomisation)
            for (_, program), rule in zip(programs, itertools.chain(*kinds), strict=True)
        ]

        @cache
        def at(t: float) -> tuple[FloatArray, FloatArray, FloatArray]:
            def near(y: FloatArray) -> list[Expansion]:
                _, G, _, constants = equations.place(number, t, y, finer[:first])
                return [expansion_of(*each, G, constants, rule) for each, rule in zip(programs, finer, strict=True)]

            def values(near: list[Expansion], y: FloatArray) -> FloatArray:
                parts = near[:first], near[first:last], near[last:]
                averages = Rules(*((*((),) * number, tuple(part)) for part in parts))  # type: ignore[arg-type]
                rates = equations.velocity(number, averages)(t, y)
                return np.concatenate([rates, equations.measured(averages, t, y, number)])

            y = path(t)
            here, G = near(y), equations.place(number, t, y)[1]
            both = jacobian_at(lambda place: partial(values, here if place is y else near(place)), y, system, EXPANDED)
            return both[: len(y)], covariance_of_step(system, G, here[first:last]), both[len(y) :]

        J, S, slopes = (lambda t, part=part: at(float(t))[part] for part in range(3))
        return Linear(stretch.times, J, S, slopes)

    return [in_stretch(number) for number in range(len(equations.stretches))]


def _in_time(linear: Linear) -> Linear:
    """The same by series in time, which take little."""
    start, length = float(linear.times[0]), float(linear.times[-1] - linear.times[0])

    def series(function: Callable[[float], FloatArray], what: str) -> Callable[[float], FloatArray]:
        def values(x: FloatArray) -> FloatArray:
            return np.array([function(t) for t in start + length * x**2])

        found = interpolant(values, 0.0, 1.0, what, SMOOTH, NODES)  # by sqrt(t), as most changes at the start
        return lambda t: found(math.sqrt(max(t - start, 0.0) / length))

    J = series(linear.J, "the Jacobian of the order parameters")
    S = series(linear.S, "the covariance of a step")
    try:
        slopes = series(linear.slopes, "the slopes of observables")
    except InputError:  # that of one at its least value, such as the error of a student that makes none
        none = np.full_like(linear.slopes(start + length), np.nan)
        slopes = lambda t: none  # noqa: E731
    return Linear(linear.times, J, S, slopes)


def _corrected(linear: Linear, other: Linear) -> Linear:
    """Linear equations with what others change at some times, and between these in proportion."""
    times = np.linspace(linear.times[0], linear.times[-1], TRIED)

    def corrected(function: Callable[[float], FloatArray], by: Callable[[float], FloatArray]) -> Any:
        change = make_interp_spline(times, np.array([by(t) - function(t) for t in times]), k=1)
        return lambda t: function(t) + change(t)

    return Linear(linear.times, *map(corrected, linear[1:], other[1:]))


def _covariances(
    equations: Equations, solution: Solution, stretches: Sequence[Linear], start: FloatArray | None
) -> tuple[dict[str, FloatArray], bool]:
    """Covariances of all order parameters, of each, and of observables at output times; and whether Ctrl-C came."""
    inside = [(each.times, lambda t, each=each: (each.J(t), each.S(t))) for each in stretches]
    C, interrupted = covariance_in_stretches(inside, len(equations.start), solution.times, start)
    C = np.where(np.abs(C) > 1e-12 * np.nanmax(np.abs(C)), C, 0.0 * C)  # smaller ones are rounding
    found = {"overlap": C}
    places = equations.state(np.arange(C.shape[1], dtype=float))
    for name, place in places._asdict().items():
        index = place.astype(int).ravel()
        found[name] = C[:, index][:, :, index].reshape(len(C), *place.shape, *place.shape)
    slopes = np.full((len(C), len(equations.stretches[0].system.observables), C.shape[1]), np.nan)
    for each in stretches:
        for row in np.flatnonzero(np.isin(solution.times, each.times)):
            slopes[row] = each.slopes(solution.times[row])
    found["observables"] = slopes @ C @ slopes.swapaxes(1, 2)
    return {f"{name}_covariance": values for name, values in found.items() if values.size}, interrupted
