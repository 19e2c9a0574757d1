"""Threshold of condensation: the norm that a prior can hold against the noise.

A stationary density exp(E) with E = (2/Lambda) [G w^2/2 - tau strength Phi(w)] has the larger E[w^2] the larger G is,
and can be normalised as long as G0 = G - tau strength kappa <= 0. So n0 = E[w^2] at G0 = 0 is the largest norm of a
stationary density without a tilt u.g. Where n0 < 1 there is none of unit norm: the rest of the norm goes to weights
that run away. n0 depends on b = 2 tau strength/Lambda and on the prior alone.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from meanfield.ingredients.priors import Prior, PriorSettings
from meanfield.mckean_vlasov.condensation.pull import is_held, stiffness
from meanfield.typing import FloatArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)

MOST_HALVINGS = 60
"""Largest number of times that panels are halved, which a peak of width 1e-16 needs."""

LARGEST_B = 2.0**40
"""Largest b that is told from no noise."""

LARGEST, STRIDE = math.log(LARGEST_B), math.log(8.0)
"""Largest |log b| at which the critical b is looked for, and the step with which it is bracketed."""

INFINITE_NORM = 1e300
"""n0 that stands for infinity where a root is looked for."""


def held_norm(prior: PriorSettings, learning_rate: float, diffusion: float) -> float:
    """Largest E[w^2] of a stationary density without tilt, n0; infinite where there is no bound.

    Parameters
    ----------
    learning_rate : float
        tau.
    diffusion : float
        Lambda.

    Returns
    -------
    float
        Below 1 the norm condenses: no stationary density without tilt has E[w^2] = 1.

    Notes
    -----
    Source: theory.md, section 6.
    """
    pull = learning_rate * prior.strength
    if pull == 0.0:
        return math.inf
    return norm_at(prior.functions, 2.0 * pull / diffusion if diffusion > 0.0 else LARGEST_B)


def critical_diffusion(prior: PriorSettings, learning_rate: float, norm: float = 1.0) -> float:
    """Diffusion Lambda_c below which the norm condenses at q = 0; 0 for priors under which it never does.

    Parameters
    ----------
    learning_rate : float
        tau.
    norm : float
        E[w^2] that is kept.

    Notes
    -----
    For l1 it is sqrt(2) tau strength, for cauchy tau strength/2 at unit norm. Source: theory.md, section 6.
    """
    return 2.0 * learning_rate * prior.strength / critical_stiffness(prior.functions, norm)


def why_none(prior: PriorSettings, learning_rate: float, diffusion: float, remedy: str, norm: float = 1.0) -> str:
    """Clause that says why no density without tilt has a norm, and what to change.

    Parameters
    ----------
    learning_rate : float
        tau.
    diffusion : float
        Lambda at q = 0.
    remedy : str
        How a problem gets more noise.
    norm : float
        E[w^2] that is kept.
    """
    critical = critical_diffusion(prior, learning_rate, norm)
    if diffusion >= critical:
        return "the noise would hold the norm; look where a long run of the density or of SGD goes"
    if diffusion == 0.0:
        return f"there is no noise, Lambda = 0; {remedy}"
    return (
        f"the prior outweighs the noise: Lambda = {diffusion:.3g}, below Lambda_c = {critical:.3g}, holds "
        f"{held_norm(prior, learning_rate, diffusion):.2g} of the norm E[w^2] = {norm:g}, and the "
        "rest escapes to ever fewer and larger weights; lower prior.strength below "
        f"{diffusion / critical * prior.strength:.3g}, or {remedy}"
    )


@lru_cache(maxsize=256)
def critical_stiffness(prior: Prior, norm: float) -> float:
    """The b at which n0 is the norm; infinite if there is none."""

    def excess(x: float) -> float:
        return math.log(min(max(norm_at(prior, math.exp(x)) / norm, 1.0 / INFINITE_NORM), INFINITE_NORM))

    low = high = 0.0
    while excess(high) >= 0.0:
        if high > LARGEST:
            return math.inf
        low, high = high, high + STRIDE
    while excess(low) < 0.0:
        if low < -LARGEST:
            return math.inf
        low, high = low - STRIDE, low
    return math.exp(brentq(excess, low, high, xtol=1e-12))


def norm_at(prior: Prior, b: float) -> float:
    """n0 = E[w^2] under exp(-b (Phi(w) - kappa w^2/2))."""
    if is_held(prior):
        return math.inf
    b = min(b, LARGEST_B)
    edges = _start(prior)
    for halvings in range(MOST_HALVINGS + 1):
        w, energy = _energies(prior, b, edges)
        if energy[0, 0] > energy[0, -1] or energy[-1, -1] > energy[-1, 0]:
            return math.inf  # Phi0 falls far out
        top = energy.max()
        middle = 0.5 * (edges[1:] + edges[:-1])
        # The rule has a relative error of 1e-14 on flatter panels.
        uneven = (np.ptp(energy, axis=1) > 4.0) & (energy.max(axis=1) > top - 45.0)  # deeper densities are negligible
        uneven &= (edges[:-1] < middle) & (middle < edges[1:])
        if (uneven & _holds_far(edges, middle, energy.max(axis=1) - top)).any():
            return math.inf
        if not uneven.any() or halvings == MOST_HALVINGS:
            break
        edges = np.sort(np.concatenate([edges, middle[uneven]]))
    mass = 0.5 * np.diff(edges)[:, None] * WEIGHTS * np.exp(energy[:, 1:-1] - top)
    second = _with_tails(edges, mass * w[:, 1:-1] ** 2)
    return second / _with_tails(edges, mass) if math.isfinite(second) else math.inf


def _holds_far(edges: FloatArray, middle: FloatArray, energy: FloatArray) -> FloatArray:
    """Narrow panels far out on which the density, e^E of its maximum, holds a norm above 1.

    Where E varies there Phi0 has waves or wells beyond all bounds, of which more is found with each halving.
    """
    distance = np.abs(middle)
    narrow = (distance > 2.0**10) & (np.diff(edges) < 2.0**-6 * distance)  # a tail that falls is even there
    return np.asarray(narrow & (energy + 2.0 * np.log(distance) > 0.0))


def _start(prior: Prior) -> FloatArray:
    """Ends of the panels to begin with: powers of two, 0 and kinks."""
    positive = 2.0 ** np.arange(-60.0, 21.0)  # beyond tails are powers of w
    kinks = [kink for kink in prior.kinks if abs(kink) < positive[-1]]
    return np.unique([*-positive, 0.0, *positive, *kinks])


def _energies(prior: Prior, b: float, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and ends of all panels, and E at them, each of shape (panels, nodes + 2); E = 0 at w = 0."""
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    w = middle[:, None] + half[:, None] * np.concatenate([[-1.0], NODES, [1.0]])
    w[:, 0], w[:, -1] = edges[:-1], edges[1:]
    flat = w.ravel()
    # Differences of phi's own integral: formulas of Phi may overflow far out, where phi does not.
    steps = Prior(prior.unit_force, kinks=prior.kinks).potential_steps(flat) - 0.5 * stiffness(prior) * np.diff(flat**2)
    origin = int(np.searchsorted(flat, 0.0))
    # From 0 outwards: sums from the far end would carry its rounding.
    right, left = np.cumsum(steps[origin:]), np.cumsum(-steps[:origin][::-1])[::-1]
    return w, -b * np.concatenate([left, [0.0], right]).reshape(w.shape)


def _with_tails(edges: FloatArray, integrand: FloatArray) -> float:
    """Integral with the tails beyond the last octave, which fall like a power of w; infinite if they do not fall."""
    far, parts = edges[-1], integrand.sum(axis=1)
    total = float(parts.sum())
    for inner, outer in ((edges[:-1], edges[1:]), (-edges[1:], -edges[:-1])):
        last = float(parts[inner >= 0.5 * far].sum())
        before = float(parts[(inner >= 0.25 * far) & (outer <= 0.5 * far)].sum())
        if last > 0.0:
            ratio = last / before if before > 0.0 else math.inf
            total += last * ratio / (1.0 - ratio) if ratio < 1.0 else math.inf
    return total
