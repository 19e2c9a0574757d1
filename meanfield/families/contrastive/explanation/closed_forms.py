"""Closed forms where sigma is a polynomial, hidden variables are independent, and channels have no penalty.

g = -tau grad_q <s1 s2> at fixed ybar (theory.md, section 2). All averages are polynomials in the overlaps of a channel
or of two, and in the moments of c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, product
from math import comb, prod
from typing import Any, NamedTuple

import sympy as sp

from meanfield.errors import InputError
from meanfield.explanation.formulas import Table, real, rounded
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.formulas import ACTIVATIONS
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.problems.base import schedules_of

MOST_FEATURES = 3
"""Largest number of features of which closed forms are shown."""

ROUNDING = 1e-13
"""Largest moment, relative to that of |c|, that is one of a law without it."""

DIGITS = 13
"""Number of digits of moments, of which quadratures over tails have no more."""

Average = Callable[[Any], Any]
"""Function of a polynomial in pre-activations to its average."""


class ClosedForms(NamedTuple):
    """Averages of a problem as polynomials.

    Parameters
    ----------
    overlaps : list
        Symbols of q, and of M of two channels.
    average : callable
    gains : list
        Derivative of <s1 s2> at fixed ybar by the overlap of the first channel with each feature.
    theta, outputs, slopes : list
        Pre-activations, centred outputs and slopes of both views, of one channel or two.
    """

    overlaps: list[Any]
    average: Average
    gains: list[Any]
    theta: list[Any]
    outputs: list[Any]
    slopes: list[Any]


def closed_forms(problem: Problem, noise: Sequence[Any], table: Table) -> ClosedForms | None:
    """Closed forms; None where there are none.

    Parameters
    ----------
    noise : sequence
        v11, v22 and v12.
    """
    laws = problem.hidden_laws
    moving = any(".hidden" in key for key in schedules_of(problem))
    known = problem.model.activation in ACTIVATIONS or problem.trusted
    polynomial = known and problem.model.activation_functions.polynomial
    if not polynomial or moving or problem.hidden is not None or len(laws) > MOST_FEATURES:
        return None
    order = max(4 * len(polynomial) - 6, 2)  # that of s^2 sigma'^2
    channels = "kl" if problem.model.channels > 1 else ("",)
    features = [str(f + 1) if len(laws) > 1 else "" for f in range(len(laws))]
    q = [[real(f"q_{{{f}{k}}}" if k else f"q_{f}" if f else "q") for k in channels] for f in features]
    moments = [_moments(law, order, f if len(laws) > 1 else None, table) for f, law in enumerate(laws)]
    if None in moments:
        return None
    M = sp.Matrix(len(channels), len(channels), lambda k, j: 1 if k == j else real("M_{kl}"))
    views = (1, 2) if noise[0] + noise[1] != 0 else (1,)
    names = [[real(f"Theta_{view}{k}") for k in channels] for view in views]
    average = _average(names, moments, q, M, noise)
    theta = [[names[0][k], names[-1][k]] for k in range(len(channels))]
    sigma = [[sum(rounded(a) * each**n for n, a in enumerate(polynomial)) for each in views] for views in theta]
    slopes = [[sp.diff(*each) for each in zip(*both, strict=True)] for both in zip(sigma, theta, strict=True)]
    centred = problem.model.centering != "none"
    means = [[average(each) if centred else 0 for each in views] for views in sigma]
    outputs = [[s - mean for s, mean in zip(*both, strict=True)] for both in zip(sigma, means, strict=True)]
    fixed = real("f_1 f_2")
    agreement = average((sigma[0][0] - fixed[0]) * (sigma[0][1] - fixed[1]))
    gains = [sp.diff(agreement, each[0]).subs(dict(zip(fixed, means[0], strict=True))) for each in q]
    return ClosedForms([*chain(*q), *M.free_symbols], average, gains, theta, outputs, slopes)


def kept_by(problem: Problem, m: Any) -> Any:
    """Share of an output that is left when the mean of its batch is subtracted."""
    return 1 - 1 / sp.sympify(m) if problem.model.centering == "batch" else sp.S.One


def diffusion(scale: Any, keep: Any, noise: Sequence[Any], average: Any, own: Any, outputs: Any, slopes: Any) -> Any:
    """Lambda of two channels without penalty, or of one with itself; theory.md, section 2.

    Parameters
    ----------
    scale, keep
        tau^2/m, and what `kept_by` returns.
    noise : sequence
        v11, v22 and v12.
    average : callable
    own : dict
        Average of the product of two gains, by the views of their slopes.
    outputs, slopes : sequence
        Centred outputs and slopes of both views, of each channel.
    """
    found = sp.S.Zero
    for (i, j), v in zip(((0, 0), (1, 1), (0, 1), (1, 0)), (*noise, noise[2]), strict=True):
        found += (1 + v) * keep**2 * own[i, j]
        if keep != 1:
            others = average(outputs[0][1 - i] * outputs[1][1 - j]) * average(slopes[0][i] * slopes[1][j])
            found += (1 + v) * keep * (1 - keep) * others
    return scale * found


def closed_diffusion(closed: ClosedForms, scale: Any, keep: Any, noise: Sequence[Any]) -> Any:
    """Lambda in closed form."""
    outputs, slopes = ([each[0], each[-1]] for each in (closed.outputs, closed.slopes))
    gains = [[o[1 - i] * s[i] for i in (0, 1)] for o, s in zip(outputs, slopes, strict=True)]
    own = {(i, j): closed.average(gains[0][i] * gains[1][j]) for i in (0, 1) for j in (0, 1)}
    return diffusion(scale, keep, noise, closed.average, own, outputs, slopes)


def _average(theta: Any, moments: Sequence[Any], q: Sequence[Any], M: Any, noise: Sequence[Any]) -> Average:
    """Averages of polynomials in Theta_vk = c.q_k + e_k + zeta_vk, whose symbols are those of `theta`."""
    V = sp.Matrix([[noise[0], noise[2]], [noise[2], noise[1]]])
    K = sp.Matrix(*M.shape, lambda k, j: M[k, j] - sum(each[k] * each[j] for each in q))
    residual, views = _gaussian(K), _gaussian(sp.kronecker_product(V, M))

    @cache
    def shared(powers: tuple[int, ...], features: int) -> Any:
        if not features:
            return residual(powers)
        found, overlaps, of = sp.S.Zero, q[features - 1], moments[features - 1]
        for taken in product(*(range(n + 1) for n in powers)):
            factor = of[sum(taken)] * prod(
                comb(n, i) * each**i for n, i, each in zip(powers, taken, overlaps, strict=True)
            )
            found += factor * shared(tuple(n - i for n, i in zip(powers, taken, strict=True)), features - 1)
        return sp.expand(found)

    def average(expression: Any) -> Any:
        found = sp.S.Zero
        for powers, factor in sp.Poly(expression, *chain(*theta)).terms():
            for taken in product(*(range(n + 1) if len(theta) > 1 else (n,) for n in powers)):
                of_noise = views(tuple(n - i for n, i in zip(powers, taken, strict=True)))
                together = tuple(sum(taken[k :: M.rows]) for k in range(M.rows))
                if of_noise != 0:
                    factors = prod(map(comb, powers, taken))
                    found += factor * factors * shared(together, len(q)) * of_noise
        return sp.expand(found)

    return average


def _gaussian(covariance: Any) -> Callable[[tuple[int, ...]], Any]:
    """Moments of Gaussian variables of mean 0 as a function of their powers, by Isserlis' theorem."""

    @cache
    def moment(powers: tuple[int, ...]) -> Any:
        first = next((i for i, n in enumerate(powers) if n), None)
        if first is None:
            return sp.S.One
        left = [n - (i == first) for i, n in enumerate(powers)]
        less = [(j, tuple(n - (i == j) for i, n in enumerate(left))) for j, n in enumerate(left) if n]
        return sp.expand(sum(left[j] * covariance[first, j] * moment(each) for j, each in less))

    return moment


def _moments(law: HiddenPart, order: int, feature: int | None, table: Table) -> list[Any] | None:
    """Moments of a hidden variable up to an order; None where one does not exist."""
    try:
        probability, mean, variance = law.components(float(order))
    except InputError:
        return None
    found: list[Any] = [sp.S.One]
    for n in range(1, order + 1):
        each = sum(
            comb(n, j) * mean[:, 0] ** (n - j) * variance[:, 0] ** (j // 2) * float(sp.factorial2(j - 1))
            for j in range(0, n + 1, 2)
        )
        size = probability @ (abs(mean[:, 0]) + variance[:, 0] ** 0.5) ** n
        value = float(f"{probability @ each:.{DIGITS}g}")
        symbol = f"m_{n}" if feature is None else f"m_{{{n}}}^{{({feature + 1})}}"
        key = f"features[{feature or 0}].hidden"
        found.append(
            0 if abs(value) <= ROUNDING * size else table.known(symbol, f"E[c^{n}] of {key}", value, positive=False)
        )
    return found
