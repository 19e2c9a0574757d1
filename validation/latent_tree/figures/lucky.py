"""Chance that a random node is lucky: lemma 8 of the paper, its bounds, and the chance itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import norm

from meanfield.typing import FloatArray

Mills = Callable[[FloatArray], FloatArray]


def chance(c: float, gamma: float) -> float:
    """P(y_+ >= sqrt c, y_- >= 0) of standard normal numbers with the correlation -gamma, by quadrature."""
    if gamma >= 1.0:
        return 0.0
    slope = gamma / np.sqrt(1.0 - gamma**2)
    value, _ = quad(lambda y: norm.pdf(y) * norm.cdf(-slope * y), np.sqrt(c), np.inf, epsabs=0.0, epsrel=1e-10)
    return float(value)


def mills(y: FloatArray) -> FloatArray:
    """Mills ratio r(y), (116)."""
    return np.asarray(np.sqrt(np.pi / 2) * erfcx(np.asarray(y) / np.sqrt(2.0)))


def mills_below(y: FloatArray) -> FloatArray:
    """Lower limit of r, (124)."""
    return 2.0 / (np.sqrt(y**2 + 4.0) + y)


def mills_above(y: FloatArray) -> FloatArray:
    """Upper limit of r, (124)."""
    return 4.0 / (np.sqrt(y**2 + 8.0) + 3.0 * y)


def residue(c: FloatArray, gamma: float, r: Mills = mills) -> FloatArray:
    """R^(c, gamma), (121), which grows with r."""
    one = np.sqrt(c / (1.0 - gamma**2))
    two = gamma * one

    def excess(y: FloatArray) -> FloatArray:
        return 1.0 / r(y) - y

    return np.maximum(r(one) * r(two + gamma * excess(one)), r(two) * r(one + gamma * excess(two)))


def printed_bound(c: FloatArray, gamma: float) -> FloatArray:
    """Right-hand side of (112)."""
    return np.exp(-c / 2.0) * np.sqrt(1.0 - gamma**2) * residue(c, gamma) / (2.0 * np.pi)


def corrected_bound(c: FloatArray, gamma: float) -> FloatArray:
    """Bound with y_0^T M y_0 = c/(1 - gamma^2) in the exponent, which (114) and (115) give."""
    return np.exp(-c * gamma**2 / (2.0 * (1.0 - gamma**2))) * printed_bound(c, gamma)


def nodes(chance_of_one: FloatArray | float, eta: float) -> FloatArray:
    """Number of nodes of which one is lucky with the chance 1 - eta."""
    return np.asarray(np.log(eta) / np.log1p(-np.asarray(chance_of_one)))
