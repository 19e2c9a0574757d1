"""Mean outputs <sigma(Theta1)> and <sigma(Theta2)>, which SGD with population centring asks for at every step.

They have a closed form for polynomial activations. With one feature they are functions of q alone, and smooth in
arcsin q up to |q| = 1: that of `overlap_table` ends before. For several features they are averaged at each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.averages import averages
from meanfield.families.contrastive.closures.expectation import OUTPUTS, Expectation
from meanfield.families.contrastive.closures.mixture import LEAST_VARIANCE
from meanfield.families.contrastive.closures.one_feature import averages_at_many
from meanfield.families.contrastive.closures.polynomial_means import PolynomialMeans, mean_of_polynomial, no_polynomial
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import Table, interpolate, panel_of, some_rows, tabulate
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

MOST_PANELS = 600
"""Largest number of panels of a table of mean outputs."""


class MeanOutputs(NamedTuple):
    """Mean outputs for compiled code, in one of three ways.

    Parameters
    ----------
    polynomial : PolynomialMeans
        Terms, where sigma is a polynomial.
    table : Table
        The two means as functions of arcsin q, for one feature.
    several : Expectation or None
        Outputs as functions of B with the law of the hidden variables, where there is neither of the others.
    """

    polynomial: PolynomialMeans
    table: Table
    several: Expectation | None


def no_mean_outputs() -> MeanOutputs:
    """Placeholder for compiled code that takes mean outputs and does not use them."""
    return MeanOutputs(no_polynomial(0), _no_table(), None)


def mean_outputs_of(expectation: Expectation, polynomial: PolynomialMeans) -> MeanOutputs:
    """Mean outputs of a centred problem.

    Parameters
    ----------
    expectation : Expectation
        Of the problem.
    polynomial : PolynomialMeans
        Their terms, if sigma is a polynomial.
    """
    if polynomial.coefficient.size:
        return MeanOutputs(polynomial, _no_table(), None)
    if len(expectation.mixture.half_width) == 1:
        try:
            return MeanOutputs(polynomial, tabulated_means([expectation]), None)
        except InputError:
            pass
    outputs = expectation._replace(table=some_rows(expectation.table, OUTPUTS))
    return MeanOutputs(polynomial, _no_table(), outputs._replace(table=some_rows(outputs.table, (0, 1))))


def means_at_angles(expectation: Expectation, angles: FloatArray) -> FloatArray:
    """Means of both outputs of one feature, and below them the size of outputs, at values of arcsin q."""
    table = some_rows(expectation.table, OUTPUTS)
    s1, s2, s1s1, s2s2 = averages_at_many(table, expectation.mixture, np.sin(angles), np.cos(angles))[:, 0]
    return np.array([s1, s2, np.sqrt(s1s1 + s2s2)])


def tabulated_means(expectations: Sequence[Expectation]) -> Table:
    """Means of both outputs on all |q| < 1, those of one expectation behind those of the one before.

    Raises
    ------
    InputError
        If they are not resolved.
    """
    count = len(expectations)
    reach = math.acos(math.sqrt(LEAST_VARIANCE))
    table = tabulate(
        lambda angles: np.concatenate([means_at_angles(each, angles) for each in expectations]),
        (), reach, "the mean output", groups=(0,) * 3 * count, most_panels=MOST_PANELS,
    )  # fmt: skip
    return some_rows(table, [3 * each + output for each in range(count) for output in range(2)])


def _no_table() -> Table:
    none, empty = np.empty(0), np.empty((0, 0))
    return Table(none, none, none, empty, np.empty((0, 0, 0)), none, empty)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mean_outputs(means, q):  # type: ignore[no-untyped-def]
    """<sigma(Theta1)> and <sigma(Theta2)>; the problem must be centred. NaN where an overlap is NaN."""
    terms = means.polynomial
    if terms.coefficient.size > 0:
        return mean_of_polynomial(terms, q, terms.noise[0]), mean_of_polynomial(terms, q, terms.noise[1])
    return _averaged(means.several, means.table, q)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _averaged(several, table, q):  # type: ignore[no-untyped-def]
    """Mean outputs from the table, or by quadrature; an argument that is None decides while numba compiles."""
    if several is None:
        result = np.empty(2)
        angle = math.asin(min(max(q[0], -1.0), 1.0))
        interpolate(table, panel_of(table, angle), angle, result)
        return result[0], result[1]
    rows = call(averages, several.table, several.mixture, q, np.empty((2, 1)))
    return rows[0, 0], rows[1, 0]
