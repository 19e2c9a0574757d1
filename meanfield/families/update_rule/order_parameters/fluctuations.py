"""Covariance of the order parameters over runs of SGD, which is C/N to leading order (update_rules.md, section 6).

It obeys dC/dt = J C + C J^T + S, with the Jacobian J of the rates and the covariance S of a step, from C = 0, as all
runs have the same order parameters at the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.choices import check_tails
from meanfield.families.update_rule.order_parameters.equations import Equations, Place, Rules, programs_of
from meanfield.families.update_rule.order_parameters.errors import errors_by, other_rules
from meanfield.families.update_rule.order_parameters.jacobian import jacobian_at
from meanfield.families.update_rule.order_parameters.steps import covariance_of_step
from meanfield.numerics.gaussian_moments.rules import MOST_NODES, Rule
from meanfield.numerics.linear_noise import covariance_in_stretches, interpolant
from meanfield.numerics.ode import Path, Solution
from meanfield.typing import FloatArray

MOST_NUMBERS = 100
"""Largest number of order parameters whose covariance is followed: the cost grows with its cube."""

MOST_NUMBERS_OF_TERMS = 20
"""That of rules that are sums of terms, whose averages take up to 1000 times as long: 3 students of 3 teachers."""

TOLERANCE = 1e-5
"""Least tolerance of averages; otherwise it is that of the order parameters, as bands need no more."""

TOLERANCE_AT_KINKS = 1e-8
"""That of rules with kinks, whose averages jump by their errors where panels between kinks come and go."""

SMOOTH = 1e-4
"""Tolerance of J and S as series in time, relative to their size: what is left out is a hundred times smaller."""

IN_TIME = 1e-5
"""Error of a covariance by series in time, relative to its largest entry."""

FINER = 1.25
"""Factor of the nodes for products of four values of a rule, where averages have two."""

POINTS = 2**13
"""Random points of a randomisation for such products of sums of terms that read more than memory allows in products."""


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
    if equations.nodes is not None:
        raise InputError("coordinates have different variances, data.spectrum")
    if len(equations.start) > MOST_NUMBERS:
        raise InputError(f"there are {len(equations.start)} order parameters, and at most {MOST_NUMBERS} are followed")
    kinks = any(len(program.kinks.levels) for _, program in programs_of(equations.stretches[0].system))
    tolerance = max(TOLERANCE, equations.problem.order_parameters.tolerance)
    choices = equations.choose(places, TOLERANCE_AT_KINKS if kinks else tolerance, {})
    terms = any(choice.rule.kind == "terms" for choice in choices.values())
    if terms and len(equations.start) > MOST_NUMBERS_OF_TERMS:
        raise InputError(
            f"there are {len(equations.start)} order parameters, and at most {MOST_NUMBERS_OF_TERMS} are followed "
            "where the rule is a sum of terms"
        )
    for number, stretch in enumerate(equations.stretches):
        means = equations.rules(choices, lambda choice: choice.rule).means[number]
        system, G, _, constants = equations.place(number, float(stretch.times[0]), equations.start, means)
        for draw in system.draws:
            check_tails(draw, draw.update, G, constants, products=4)
    if kinks and any(choice.rule.kind == "random" for choice in choices.values()):
        raise InputError("averages over random points that meet kinks have no derivatives")
    solutions: list[dict[str, FloatArray]] = []
    coarse = equations.with_fewer_hidden_nodes()
    exact = coarse is equations and all(choice.coarser is choice.rule for choice in choices.values())
    others = [] if exact else [(coarse, which, 0) for which in other_rules(choices)]
    for each, which, randomisation in [(equations, lambda choice: choice.rule, None), *others]:
        rules = each.rules(choices, which)
        C, interrupted = _covariance(each, solution, rules, randomisation, start)
        solutions.append(_parts(each, solution, rules, C))
        if interrupted:
            return solutions[0], True
    found = solutions[0]
    errors = errors_by(solutions[1:] or [found], found)
    for name, values in found.items():  # the largest of all entries: at single ones solutions agree by chance
        largest = np.nanmax(errors[f"{name}_error"], initial=0.0) + IN_TIME * np.nanmax(np.abs(values), initial=0.0)
        errors[f"{name}_error"] = np.where(np.isnan(values), np.nan, largest)
    return found | errors, False


def _finer(rule: Rule, directions: int, randomisation: int | None) -> Rule:
    """Rule for products of four values, which have twice the degree of those of two, as far as memory allows."""
    if rule.kind == "polynomial":
        return replace(rule, order=max(2 * rule.order - 1, rule.order + 1))
    order = math.ceil(FINER * rule.order)
    if rule.kind == "kinked":
        return replace(rule, order=order)
    if rule.kind != "random" and order**directions <= MOST_NODES:
        return replace(rule, kind="smooth", order=order, parts=None)
    if rule.kind == "terms":  # the products have terms of more slots than two
        return Rule("random", POINTS, rule.kinks, randomisation=randomisation)
    return rule


def _covariance(
    equations: Equations, solution: Solution, rules: Rules, randomisation: int | None, start: FloatArray | None
) -> tuple[FloatArray, bool]:
    """C at output times, and whether Ctrl-C came; where points are random, by one of their randomisations or all."""
    path = solution.path
    assert path is not None

    def stretches() -> Iterator[tuple[FloatArray, Callable[[float], tuple[FloatArray, FloatArray]]]]:
        for number, stretch in enumerate(equations.stretches):
            yield stretch.times, _drift_and_noise(equations, number, path, rules, randomisation)

    C, interrupted = covariance_in_stretches(stretches(), len(equations.start), solution.times, start)
    return np.where(np.abs(C) > 1e-12 * np.nanmax(np.abs(C)), C, 0.0 * C), interrupted  # smaller ones are rounding


def _drift_and_noise(
    equations: Equations, number: int, path: Path, rules: Rules, randomisation: int | None
) -> Callable[[float], tuple[FloatArray, FloatArray]]:
    """J and S in a stretch, as series in time."""
    stretch = equations.stretches[number]
    rate, draws, chosen = equations.velocity(number, rules), stretch.system.draws, rules.draws[number]
    finer = [_finer(rule, len(draw.update.reads), randomisation) for rule, draw in zip(chosen, draws, strict=True)]

    def jacobian(times: FloatArray) -> FloatArray:
        return np.array([jacobian_at(partial(rate, t), path(t), stretch.system) for t in times.tolist()])

    def step(times: FloatArray) -> FloatArray:
        places = [equations.place(number, t, path(t), rules.means[number]) for t in times.tolist()]
        return np.array([covariance_of_step(system, G, constants, finer) for system, G, _, constants in places])

    ends = stretch.times[0], stretch.times[-1]
    J = interpolant(jacobian, *ends, "the Jacobian of the order parameters", SMOOTH)
    S = interpolant(step, *ends, "the covariance of a step", SMOOTH)
    return lambda t: (J(t), S(t))


def _parts(equations: Equations, solution: Solution, rules: Rules, C: FloatArray) -> dict[str, FloatArray]:
    """Covariances of all order parameters, of each, and of observables, from that of packed ones."""
    found = {"overlap": C}
    places = equations.state(np.arange(C.shape[1], dtype=float))
    for name, place in places._asdict().items():
        index = place.astype(int).ravel()
        found[name] = C[:, index][:, :, index].reshape(len(C), *place.shape, *place.shape)
    system = equations.stretches[0].system
    slopes = np.full((len(C), len(system.observables), C.shape[1]), np.nan)
    if system.observables:
        for row in np.flatnonzero(np.isfinite(C).all(axis=(1, 2))):
            measured = partial(equations.measured, rules, solution.times[row])
            slopes[row] = jacobian_at(measured, solution.values[row], system)
    found["observables"] = slopes @ C @ slopes.swapaxes(1, 2)
    return {f"{name}_covariance": values for name, values in found.items() if values.size}
