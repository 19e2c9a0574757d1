"""Averages of products of the sensitivities of a sample's loss, from which the moments of an SGD step are made.

The sensitivities to the two pre-activations are

    alpha = (sigma(Theta_2) - ybar_2) sigma'(Theta_1),   beta = (sigma(Theta_1) - ybar_1) sigma'(Theta_2)

and alpha^i beta^j is a polynomial in ybar, which depends on q. Its coefficients are products of sigma and sigma' alone,
whose averages over the augmentation noise are tabulated once as functions of B.

They are averaged alone and with first and second moments of X = c - q B, the part of c that changes q. In a component
of the `Mixture` c_k has mean m_k and a Gaussian part of variance v_k, so that (c, B) is Gaussian. With M = m.q,
D^2 = 1 - q.q + sum_k q_k^2 v_k and y = (B - M)/D,

    E[X_f | B] = (m_f - q_f M) + y (q_f v_f/D - q_f D)
    Cov[X_f, X_g | B] = v_f delta_fg - q_f q_g v_f v_g/D^2

which makes density times moment a Gaussian times a polynomial in y. Its coefficients are linear in the second moments
of z = (1, m, v), so that components which lie close together can share nodes, as they do in `mixture`. Nothing is
divided by 1 - q.q, and X is small where |q| -> 1 without cancellation between averages.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import comb

from meanfield.families.contrastive.closures.averages import refined
from meanfield.families.contrastive.closures.closure import Closure, hidden_mixture, noise_of
from meanfield.families.contrastive.closures.densities import PIECE, TAIL
from meanfield.families.contrastive.closures.mixture import components_of_b, reach_of
from meanfield.families.contrastive.closures.one_feature import averages_with_hidden_variable
from meanfield.families.contrastive.closures.views import STRONGER, averages_over_noise
from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.array_operations import copy
from meanfield.numerics.compiled.exponential import LAST_EXPONENT, exp_minus
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import NAME_THE_KINK, NODES, ORDER, WEIGHTS, Table, interpolate, panel_of, tabulate
from meanfield.numerics.remembering import remembered
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from meanfield.families.contrastive.problem import Problem

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages_with_hidden(table, mixture, q):  # type: ignore[no-untyped-def]
    """Averages of the rows f of a table, alone and with moments of X.

    Parameters
    ----------
    table : Table
    mixture : Mixture
    q : ndarray, shape (d1,)
        Overlaps, inside the unit ball or on its boundary.

    Returns
    -------
    ndarray, shape (rows, 1 + d1 + d1^2)
        <f>, then <X_f f>, then <X_f X_g f>.
    """
    parts = call(components_of_b, mixture, q, np.int64(2))
    table = call(refined, table, parts.centre, parts.deviation, np.zeros(1))
    columns = 1 + q.size + q.size * q.size
    at_nodes = np.zeros((columns, table.nodes.size))
    direct = np.zeros((table.values.shape[0], columns))
    for a in range(parts.centre.size):
        _add_part(table, parts.centre[a], parts.deviation[a], _polynomials(parts, a, q), at_nodes, direct)
    return direct + table.values @ at_nodes.T


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _polynomials(parts, a, q):  # type: ignore[no-untyped-def]
    """Coefficients of 1, y and y^2 in probability times 1, E[X_f | B] and E[X_f X_g | B], shape (columns, 3)."""
    d1, D = q.size, parts.deviation[a]
    n = 1 + 2 * d1
    W = parts.weight[a].copy().reshape(n, n)
    # X_f = (constant + y slope).z, but for what is left of c at given B
    constant, slope = np.zeros((d1, n)), np.zeros((d1, n))
    for f in range(d1):
        constant[f, 0], constant[f, 1 + f] = -q[f] * parts.centre[a], 1.0
        slope[f, 0], slope[f, 1 + d1 + f] = -q[f] * D, q[f] / D
    result = np.zeros((1 + d1 + d1 * d1, 3))
    result[0, 0] = W[0, 0]
    copy(constant @ W[0], result[1 : 1 + d1, 0])
    copy(slope @ W[0], result[1 : 1 + d1, 1])
    mixed = constant @ W @ slope.T
    for power, square in ((0, constant @ W @ constant.T), (1, mixed + mixed.T), (2, slope @ W @ slope.T)):
        copy(square.ravel(), result[1 + d1 :, power])
    for f in range(d1):
        for g in range(d1):
            left = -q[f] * q[g] * W[1 + d1 + f, 1 + d1 + g] / (D * D)
            if f == g:
                left += W[0, 1 + d1 + f]
            result[1 + d1 + f * d1 + g, 0] += left
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_part(table, centre, deviation, polynomials, at_nodes, direct):  # type: ignore[no-untyped-def]
    """Add a part to the weights of the nodes, or directly where panels are wide. Whole panels may overshoot."""
    low, high, widest = centre - TAIL * deviation, centre + TAIL * deviation, PIECE * deviation
    row, share = np.empty(direct.shape[0]), np.empty((direct.shape[1], ORDER))
    for panel in range(panel_of(table, low), panel_of(table, high) + 1):
        left, right = table.edges[panel], table.edges[panel + 1]
        if right - left <= widest:
            i, j = panel * ORDER, (panel + 1) * ORDER
            _add_weights(table.nodes[i:j], table.weights[i:j], centre, deviation, polynomials, at_nodes[:, i:j])
            continue
        left, right = max(left, low), min(right, high)
        pieces = max(1, math.ceil((right - left) / widest))
        half = 0.5 * (right - left) / pieces
        for piece in range(pieces):
            x = left + (2 * piece + 1 + NODES) * half
            share[:] = 0.0
            _add_weights(x, half * WEIGHTS, centre, deviation, polynomials, share)
            for i in range(ORDER):
                interpolate(table, panel, x[i], row)
                for r in range(row.size):
                    for column in range(share.shape[0]):
                        direct[r, column] += row[r] * share[column, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_weights(x, weight, centre, deviation, polynomials, columns):  # type: ignore[no-untyped-def]
    """Add weight times density times polynomials at the points x to `columns`, shape (columns, points)."""
    for i in range(x.size):
        y = (x[i] - centre) / deviation
        exponent = 0.5 * y * y
        if exponent >= LAST_EXPONENT:
            continue
        density = weight[i] * exp_minus(exponent) / (_ROOT_TWO_PI * deviation)
        for k in range(columns.shape[0]):
            columns[k, i] += density * (polynomials[k, 0] + y * (polynomials[k, 1] + y * polynomials[k, 2]))


ORDERS = (1, 2, 3, 4)
"""Total powers i + j of the products alpha^i beta^j; the square of a step needs the fourth."""


class Sensitivities:
    """Averages of alpha^i beta^j, alone and with first and second moments of X = c - q B.

    Parameters
    ----------
    closure : Closure
        Of the same problem; gives the mean outputs.
    problem : Problem
        With centring none or population.

    Raises
    ------
    InputError
        If a hidden law lacks the moments that the activation needs, or the products are not smooth between kinks.
    """

    def __init__(self, closure: Closure, problem: Problem) -> None:
        activation = problem.model.activation_functions
        self._closure = closure
        self._centred = closure.centering > 0
        self._mixture = hidden_mixture(problem, highest_power(activation))
        i, j, self._k, self._l = terms = _terms(self._centred).T
        order = i + j
        place = order * (order + 1) // 2 - 1 + j  # alpha, beta, alpha^2, alpha beta, ...
        binomials = comb(i, self._k) * comb(j, self._l) * (-1) ** (self._k + self._l)
        self._collect = np.zeros((int(place.max()) + 1, terms.shape[1]))
        self._collect[place, np.arange(terms.shape[1])] = binomials
        self._table = product_table(activation, noise_of(problem), self._centred, reach_of(self._mixture))

    def __call__(self, points: FloatArray) -> list[FloatArray]:
        """All averages at many overlaps; of one feature they are made together.

        Parameters
        ----------
        points : ndarray, shape (points, d1)
            In the unit ball.

        Returns
        -------
        list of ndarray, shape (points, n + 1, 1 + d1 + d1^2)
            For n = 1, 2, 3, 4 the averages of alpha^(n - j) beta^j, first for j = 0, times 1, X_f and X_f X_g.
        """
        if points.shape[1] == 1:
            averages = averages_with_hidden_variable(self._table, self._mixture, points[:, 0]).transpose(2, 0, 1)
        else:
            averages = np.array([averages_with_hidden(self._table, self._mixture, q) for q in points])
        if self._centred:
            first, second = self._closure.means(points)
            averages = (second[:, None] ** self._k * first[:, None] ** self._l)[:, :, None] * averages
        return np.split(self._collect @ averages, np.cumsum([n + 1 for n in ORDERS])[:-1], axis=1)


def highest_power(activation: Activation) -> float:
    """Power of c in the fastest growing average: of c^2, (sigma sigma')^2 c^2 and (sigma sigma')^4."""
    gamma = activation.growth
    return max(2.0, 8 * gamma - 4, 4 * gamma)


def _terms(centred: bool) -> IntArray:
    """Powers i, j of alpha and beta and k, l of ybar_2 and ybar_1 in all terms, shape (rows, 4)."""
    powers = [(n - j, j) for n in ORDERS for j in range(n + 1)]
    return np.array(
        [
            (i, j, k, l)
            for i, j in powers
            for k in range(i + 1 if centred else 1)
            for l in range(j + 1 if centred else 1)  # noqa: E741
        ]
    )


@remembered(64)
def product_table(activation: Activation, noise: tuple[float, float, float], centred: bool, reach: float) -> Table:
    """Coefficients of powers of ybar in alpha^i beta^j, averaged over the noise, as functions of B.

    Parameters
    ----------
    activation, noise, centred, reach
        See `bracket_table`.

    Returns
    -------
    Table
        A row s1^(j - l) p1^i s2^(i - k) p2^j for each row of `_terms`.
    """
    i, j, k, l = _terms(centred).T  # noqa: E741
    rows, breaks, layers = averages_over_noise(activation, noise, reach, np.stack([j - l, i, i - k, j], axis=1))
    found = tabulate(rows, breaks, reach, "model.activation", STRONGER if any(noise) else NAME_THE_KINK, layers)
    # Averages take jumps for point masses of derivatives, of which there are none here.
    return found._replace(jumps=np.zeros_like(found.jumps))
