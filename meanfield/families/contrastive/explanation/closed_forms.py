"""Closed forms of g and Lambda of one channel, where sigma is a polynomial and hidden variables are independent.

g = -tau grad_q <s1 s2> at fixed ybar (theory.md, section 2). All averages are polynomials in q and the moments of c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import comb
from typing import Any

import sympy as sp

from meanfield.errors import InputError
from meanfield.explanation.formulas import Table, real
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
"""Function of a polynomial in Theta_1 and Theta_2 to its average."""


def closed_forms(problem: Problem, noise: Sequence[Any], table: Table) -> tuple[Any, Average, Any] | None:
    """Coefficients of sigma, averages of polynomials, and overlaps q; None where there are no closed forms.

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
    q = [real(f"q_{k + 1}" if len(laws) > 1 else "q") for k in range(len(laws))]
    shared = _normal(order, 1 - sum(each**2 for each in q))
    for k, (law, overlap) in enumerate(zip(laws, q, strict=True)):
        moments = _moments(law, order, k if len(laws) > 1 else None, table)
        if moments is None:
            return None
        terms = [[comb(n, i) * moments[i] * overlap**i * shared[n - i] for i in range(n + 1)] for n in range(order + 1)]
        shared = [sp.expand(sum(each)) for each in terms]
    first, second = real("Theta_1 Theta_2")
    views = _views(order, *noise)

    def average(expression: Any) -> Any:
        found = sp.S.Zero
        for (a, b), factor in sp.Poly(expression, first, second).terms():
            for i, j in product(range(a + 1), range(b + 1)):
                found += factor * comb(a, i) * comb(b, j) * shared[i + j] * views[a - i][b - j]
        return sp.expand(found)

    return polynomial, average, q


def _normal(order: int, variance: Any) -> list[Any]:
    """Moments of a Gaussian variable of mean 0."""
    return [0 if n % 2 else sp.factorial2(n - 1) * variance ** (n // 2) for n in range(order + 1)]


def _views(order: int, v11: Any, v22: Any, v12: Any) -> list[list[Any]]:
    """Mixed moments of the noise of the two views, by Isserlis' theorem."""
    found = [[sp.S.Zero] * (order + 1) for _ in range(order + 1)]
    found[0][0] = sp.S.One
    for a in range(order + 1):
        for b in range(order + 1 - a):
            if a > 0:
                found[a][b] = (a - 1) * v11 * found[a - 2][b] if a > 1 else 0
                found[a][b] += b * v12 * found[a - 1][b - 1] if b > 0 else 0
            elif b > 1:
                found[0][b] = (b - 1) * v22 * found[0][b - 2]
    return found


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
