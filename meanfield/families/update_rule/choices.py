"""Choice of quadrature for averages over a draw: rules for Gaussian directions, and nodes of hidden variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.averages import components_of, moments_of
from meanfield.families.update_rule.draws import Draw, Hidden, Program
from meanfield.numerics.gaussian_moments.choosing import LARGEST_ERROR, Choice, choose_rule
from meanfield.numerics.gaussian_moments.kernel import Moments
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.typing import FloatArray

COUNTS = (8, 10, 12, 14, 17, 20, 24, 28, 32, 38, 46, 56, 68, 82, 100, 128, 160, 200, 256)
"""Numbers of nodes of a law of hidden variables that are tried."""

FAR = 1e5, 1e6
"""Standard deviations of a hidden variable between which powers are told with which functions grow."""


def choose(
    draw: Draw,
    program: Program,
    G: FloatArray,
    constants: FloatArray,
    tolerance: float,
    weighted: FloatArray | None = None,
    least: Rule | None = None,
) -> Choice:
    """The coarsest rule of quadrature that is accurate for a program; see `choose_rule`.

    Raises
    ------
    InputError
        If averages do not exist, or no rule resolves them.
    """
    hidden = draw.hidden
    components = components_of(draw.laws(G, program.reads, weighted), program.reads)
    weights = None if hidden.exact else np.array([given.probability for given in components])
    laws = [given.law for given in components]
    gains = draw.inputs * draw.students if program is draw.update else 0  # whose products are averaged
    call = program.call  # whose errors name the function
    check_tails(draw, program, G, constants)
    try:
        return choose_rule(
            call,
            constants,
            laws,
            program.kinks,
            tolerance,
            names=draw.columns,
            weights=weights,
            counted=gains,
            least=least,
        )
    except InputError as error:
        raise InputError(f"{program.what}: {error}") from error


def check_tails(draw: Draw, program: Program, G: FloatArray, constants: FloatArray, products: int = 2) -> None:
    """Refuse functions that grow faster with a hidden variable than its law has moments.

    Parameters
    ----------
    products : int, optional
        Number of values of the functions that are averaged together: 4 for covariances.

    Raises
    ------
    InputError
    """
    limits = draw.hidden.powers
    for variable in np.flatnonzero(np.isfinite(limits)).tolist():
        power = 0.5 * products * _growth(draw, program, G, constants, variable)
        if not power <= limits[variable] + 1e-6:  # rounding of a logarithm
            of_noise = variable in draw.scales_noise
            key = "data.scale" if of_noise else f"the hidden variable {draw.columns[variable]}"
            grows = f"to the power {power:.3g}" if math.isfinite(power) else "beyond any power"
            raise InputError(
                f"{program.what}: its {'square' if products == 2 else 'fourth power'} and its products with fields "
                f"grow with {key} {grows}, and averages over its law exist and are resolved up to "
                f"{limits[variable]:.3g}; clip the function, or let {'data.scale' if of_noise else 'hidden'} be a law "
                "with lighter tails (of student_t raise degrees_of_freedom)"
            )


def _growth(draw: Draw, program: Program, G: FloatArray, constants: FloatArray, variable: int) -> float:
    """Power with which C F^2, F^2 and F times a field grow with a hidden variable; NaN or infinite beyond any.

    Of observables it is that of squares alone.
    """
    hidden, scales = draw.hidden, variable in draw.scales_noise
    mean, second = hidden.probability @ hidden.mean, np.tensordot(hidden.probability, hidden.covariance, 1)
    second[variable] = second[:, variable] = 0.0
    squares = []
    for deviation in FAR:
        mean[variable], second[variable, variable] = (deviation, 0.0) if scales else (0.0, deviation**2)
        alone = replace(draw, hidden=Hidden(np.ones(1), mean[None], second[None], hidden.powers))
        # the same at both ends, which tells powers exactly
        parts = moments_of(alone, program, G, constants, Rule("random", 2**10, program.kinks))
        squares.append(sum(given.probability * np.diagonal(found.products) for given, found in parts))
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.log(squares[1] / squares[0]) / math.log(FAR[1] / FAR[0])
    power = float(np.max(np.where(squares[0] > 0.0, growth, 0.0), initial=0.0))
    if program is not draw.update:
        return power
    return power + 2.0 if scales else max(power, 1.0 + 0.5 * power)


def enough_nodes(averages: Callable[[int], Sequence[Moments]], tolerance: float) -> int:
    """Least of `COUNTS`, but for the first, whose averages the next one does not change by more than the tolerance.

    Parameters
    ----------
    averages : callable
        Averages of programs with a number of nodes, from `means_of`.
    tolerance : float
        Relative to the sizes of functions and columns.

    Raises
    ------
    InputError
        If the last two differ by more than that, and by more than `LARGEST_ERROR`.
    """
    before = averages(COUNTS[0])
    for count, finer in pairwise(COUNTS):
        after = averages(finer)
        error = max(_change(*each) for each in zip(before, after, strict=True))
        if error <= tolerance:
            return max(count, COUNTS[1])  # so that there is a smaller one
        before = after
    if error > max(tolerance, LARGEST_ERROR):
        raise InputError(
            f"model.rule: averages over the hidden variables change by {error:.1g} of their size up to {COUNTS[-1]} "
            "nodes of a law, the most that are tried; make places where the rule jumps or bends in them kinks and "
            "declare these, or take a law of a few values"
        )
    return count


def _change(before: Moments, after: Moments) -> float:
    size = np.sqrt(after.products) + 1e-14  # rounding of what is 0
    return float(
        np.max(
            [
                np.abs((after.first - before.first) / size).max(),
                np.abs((after.products - before.products) / size**2).max(),
                np.abs((after.along - before.along) / size).max(),
            ]
        )
    )


def means_of(
    draw: Draw,
    program: Program,
    G: FloatArray,
    constants: FloatArray,
    rule: Rule,
    weighted: FloatArray | None = None,
) -> Moments:
    """Averages of a program: <f>, <x f> of all columns x in units of their sizes, and <(1 + C) f^2>.

    C is the factor of the noise, which does not count for observables.
    """
    first = squares = rows = second = np.zeros(())
    for given, found in moments_of(draw, program, G, constants, rule, weighted):
        p = given.probability
        first = first + p * found.first
        squares = squares + p * (1.0 + given.noise * (program is draw.update)) * np.diagonal(found.products)
        rows = rows + p * (np.outer(given.law.mean, found.first) + given.regression @ found.along)
        second = second + p * (given.law.mean**2 + np.diagonal(given.covariance))
    return Moments(first, rows / np.sqrt(np.maximum(second, 1e-300))[:, None], squares)
