"""Mean outputs <sigma(Theta1)> and <sigma(Theta2)>, which SGD with population centring asks for at every step.

They have a closed form for polynomial activations. With one feature they are functions of q alone, and smooth in
arcsin q up to |q| = 1: that of `overlap_table` ends before. Of several features, or in time, they are averaged at each
step. Noise of variance v needs no average of its own, as Theta/s with s^2 = 1 + v has the law of B at the overlaps q/s.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.averages import averages
from meanfield.families.contrastive.closures.expectation import OUTPUTS, Expectation
from meanfield.families.contrastive.closures.mixture import LEAST_VARIANCE, Mixture, reach_of
from meanfield.families.contrastive.closures.one_feature import averages_at_many
from meanfield.families.contrastive.closures.polynomial_means import PolynomialMeans, mean_of_polynomial, no_polynomial
from meanfield.families.contrastive.closures.views import averages_over_noise, exponents
from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import Table, interpolate, panel_of, some_rows, tabulate
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

MOST_PANELS = 600
"""Largest number of panels of a table of mean outputs."""


class Outputs(NamedTuple):
    """Outputs and the law that they are averaged over.

    Parameters
    ----------
    tables : tuple of Table
        sigma(s x) as a function of x, for both views.
    mixture : Mixture
        The law of the hidden variables.
    widths : ndarray, shape (2,)
        The factors s.
    """

    tables: tuple[Table, Table]
    mixture: Mixture
    widths: FloatArray


class MeanOutputs(NamedTuple):
    """Mean outputs for compiled code, in one of three ways.

    Parameters
    ----------
    polynomial : PolynomialMeans
        Terms, where sigma is a polynomial.
    table : Table
        The two means as functions of arcsin q, for one feature.
    averaged : Outputs or None
        What is averaged where there is neither of the others.
    """

    polynomial: PolynomialMeans
    table: Table
    averaged: Outputs | None


def no_mean_outputs() -> MeanOutputs:
    """Placeholder for compiled code that takes mean outputs and does not use them."""
    return MeanOutputs(no_polynomial(0), _no_table(), None)


def mean_outputs_of(
    activation: Activation, noise: tuple[float, ...], expectation: Expectation, polynomial: PolynomialMeans
) -> MeanOutputs:
    """Mean outputs of a centred problem.

    Parameters
    ----------
    noise : tuple of float
        v11, v12, v22.
    expectation : Expectation
        Of the problem.
    polynomial : PolynomialMeans
        Their terms, if sigma is a polynomial.
    """
    if polynomial.coefficient.size:
        return MeanOutputs(polynomial, _no_table(), None)
    law = expectation.mixture
    if len(law.half_width) == 1:
        try:
            return MeanOutputs(polynomial, _tabulated(expectation), None)
        except InputError:
            pass
    sigma = output_table(activation, reach_of(law) * math.sqrt(1.0 + max(noise[0], noise[2])))
    return averaged_outputs(sigma, law, noise[0], noise[2])


def output_table(activation: Activation, reach: float) -> Table:
    """Table of sigma up to a largest pre-activation."""
    rows, kinks, layers = averages_over_noise(activation, (0.0, 0.0, 0.0), reach, exponents("s1"))
    return tabulate(rows, kinks, reach, "model.activation", layers=layers)


def averaged_outputs(sigma: Table, law: Mixture, *noise: float) -> MeanOutputs:
    """Mean outputs that are averaged at each step, of the law of the hidden variables and the noise of both views."""
    widths = np.sqrt(1.0 + np.array(noise))
    first, second = (
        sigma._replace(edges=sigma.edges / s, nodes=sigma.nodes / s, weights=sigma.weights / s, breaks=sigma.breaks / s)
        for s in widths
    )
    return no_mean_outputs()._replace(averaged=Outputs((first, second), law, widths))


def _tabulated(expectation: Expectation) -> Table:
    """Means of both outputs of one feature on all |q| < 1.

    Raises
    ------
    InputError
        If they are not resolved.
    """
    outputs = some_rows(expectation.table, OUTPUTS)

    def rows(angles: FloatArray) -> FloatArray:
        s1, s2, s1s1, s2s2 = averages_at_many(outputs, expectation.mixture, np.sin(angles), np.cos(angles))[:, 0]
        return np.array([s1, s2, np.sqrt(s1s1 + s2s2)])  # the last one tells the size of outputs

    reach = math.acos(math.sqrt(LEAST_VARIANCE))
    table = tabulate(rows, (), reach, "the mean output", groups=(0, 0, 0), most_panels=MOST_PANELS)
    return some_rows(table, (0, 1))


def _no_table() -> Table:
    none, empty = np.empty(0), np.empty((0, 0))
    return Table(none, none, none, empty, np.empty((0, 0, 0)), none, empty)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mean_outputs(means, q):  # type: ignore[no-untyped-def]
    """<sigma(Theta1)> and <sigma(Theta2)>; the problem must be centred. NaN where an overlap is NaN."""
    terms = means.polynomial
    if terms.coefficient.size > 0:
        return mean_of_polynomial(terms, q, terms.noise[0]), mean_of_polynomial(terms, q, terms.noise[1])
    return _averaged(means.averaged, means.table, q)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _averaged(outputs, table, q):  # type: ignore[no-untyped-def]
    """Mean outputs from the table, or by quadrature; an argument that is None decides while numba compiles."""
    if outputs is None:
        result = np.empty(2)
        angle = math.asin(min(max(q[0], -1.0), 1.0))
        interpolate(table, panel_of(table, angle), angle, result)
        return result[0], result[1]
    (first, second), (s1, s2) = outputs.tables, outputs.widths
    mean = call(averages, first, outputs.mixture, q / s1, np.empty((1, 1)))[0, 0]
    if s1 == s2:
        return mean, mean
    return mean, call(averages, second, outputs.mixture, q / s2, np.empty((1, 1)))[0, 0]
