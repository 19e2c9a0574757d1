"""Averages of products of the sensitivities of a sample's loss, from which the moments of an SGD step are made.

The sensitivities to the two pre-activations are

    alpha = (sigma(Theta_2) - ybar_2) sigma'(Theta_1),   beta = (sigma(Theta_1) - ybar_1) sigma'(Theta_2)

and alpha^i beta^j is a polynomial in ybar, which depends on q. Its coefficients are products of sigma and sigma' alone,
whose averages over the augmentation noise are tabulated once as functions of B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import comb

from meanfield.families.contrastive.closures.closure import Closure, hidden_mixture, noise_of
from meanfield.families.contrastive.closures.hidden_moments import averages_with_hidden
from meanfield.families.contrastive.closures.mixture import reach_of
from meanfield.families.contrastive.closures.one_feature import averages_with_hidden_variable
from meanfield.families.contrastive.closures.views import STRONGER, averages_over_noise
from meanfield.ingredients.activations import Activation
from meanfield.numerics.piecewise import NAME_THE_KINK, Table, tabulate
from meanfield.numerics.remembering import remembered
from meanfield.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from meanfield.families.contrastive.problem import Problem

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
