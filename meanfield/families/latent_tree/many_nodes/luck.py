"""Lucky nodes: those that a random start makes see their latent (latent_tree.md, section 3.5).

A node is lucky if its mean pre-activation is positive for one value of its latent, by sqrt(c) standard deviations, and
negative for the other. With many inputs both means are Gaussian over nodes, with the correlation -gamma.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr

from meanfield.errors import InputError


def lucky_chance(c: float, gamma: float) -> float:
    """Probability that a random node is lucky, exactly in place of the paper's bound.

    Parameters
    ----------
    c : float
        Square of the standard deviations, not negative.
    gamma : float
        Minus the correlation of both means, (|h|^2 - |a|^2)/(|h + a||h - a|), between -1 and 1; h are the half sums
        and a the half differences of the means of the inputs for both values of the latent.

    Returns
    -------
    float
        P(y+ >= sqrt(c), y- >= 0) for standard Gaussian y+ and y- with the correlation -gamma.

    Raises
    ------
    InputError
        If c is negative, or gamma not between -1 and 1.

    Examples
    --------
    >>> from meanfield.families.latent_tree.many_nodes.luck import lucky_chance
    >>> round(lucky_chance(9.0, 0.2), 10)
    0.0003397672
    """
    if not 0.0 <= c < inf:
        raise InputError(f"c = {c}: give the square of a number of standard deviations, 0 or more")
    if not -1.0 < gamma < 1.0:
        raise InputError(f"gamma = {gamma}: give minus a correlation, between -1 and 1 and neither of them")
    steep = gamma / np.sqrt(1.0 - gamma * gamma)

    def density(y: float) -> float:
        return float(np.exp(-0.5 * y * y - 0.5 * np.log(2.0 * np.pi) + log_ndtr(-steep * y)))

    low = np.sqrt(c)
    width = 1.0 / (1.0 + low)  # the density falls by this length, or by 1 from 0 on
    pieces = [low, low + width, low + 4.0 * width, low + 12.0 * width, low + 40.0]
    return float(sum(quad(density, a, b, epsabs=0.0, epsrel=1e-12)[0] for a, b in pairwise(pieces)))


def nodes_for_luck(c: float, gamma: float, miss: float) -> float:
    """Number of random nodes of which one is lucky at least, but for a probability `miss`.

    Raises
    ------
    InputError
        If `miss` is not between 0 and 1, or c and gamma are refused by `lucky_chance`.

    Examples
    --------
    >>> from meanfield.families.latent_tree.many_nodes.luck import nodes_for_luck
    >>> round(nodes_for_luck(9.0, 0.2, 0.05), 1)
    8815.5
    """
    if not 0.0 < miss < 1.0:
        raise InputError(f"miss = {miss}: give a probability between 0 and 1")
    return float(np.log(miss) / np.log1p(-lucky_chance(c, gamma)))
