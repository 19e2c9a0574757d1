"""Calculus in w for the densities of all tilts at once: averages, and the inverse of the generator.

The generator of the motion at fixed coefficients is L h = (D/P) d(P dh/dw)/dw. Its inverse is a double integral; that
of rate - L takes polynomials on each panel.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre

from meanfield.ingredients.priors import potential_of
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.panels import FLOOR, NODES, ORDER, WEIGHTS, all_panels
from meanfield.mckean_vlasov.stationary.state import State
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

RESOLVENT_DEGREE = 9
"""Degree of the polynomials that stand for (rate - L)^-1 on a panel: good to 1e-6, which the spectrum has squared."""


class Functions(NamedTuple):
    """Functions of w at the points of all tilts, with their derivatives.

    Parameters
    ----------
    values, slopes : ndarray, shape (functions, tilts, panels, ORDER)
    starts : ndarray, shape (functions, starts)
        The functions that the space was started from, as combinations.
    """

    values: FloatArray
    slopes: FloatArray
    starts: FloatArray


Pair = tuple[FloatArray, FloatArray]
"""A function at the points of all tilts and its derivative."""


class Line:
    """Calculus on the panels of all tilts: averages over P, and the inverse of L by integration.

    Parameters
    ----------
    tilts : ndarray, shape (tilts,), optional
        In the place of those of the nodes in u, for `means` alone.
    """

    def __init__(self, equations: StationaryEquations, state: State, tilts: FloatArray | None = None) -> None:
        scale = 2.0 / state.coefficients.diffusion
        a, b = scale * state.G, scale * equations.pull
        tilt = scale * (state.tilts.tilt if tilts is None else tilts)
        edges, tops = all_panels(equations.potential, a, b, tilt, equations.kinks)
        self._half = 0.5 * np.diff(edges)[:, :, None]
        points = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None] + self._half * NODES
        prior = equations.limit.prior.functions
        bare = (0.5 * a * points - tilt[:, None, None]) * points
        exponent = bare - b * evaluate(potential_of(prior), points)
        density = np.exp(np.maximum(exponent - tops[:, None, None], -FLOOR))
        total = (density * self._half * WEIGHTS).sum(axis=(1, 2), keepdims=True)
        self._density = density / total
        self._mass = self._density * self._half * WEIGHTS
        self._weight = state.tilts.weight
        self._diffusion = 0.5 * state.coefficients.diffusion
        slope = a * points - tilt[:, None, None] - b * prior.forces(points)
        self.points = points
        self.w = self._centred(points), np.ones_like(points)
        self.square = self._centred(points**2), 2.0 * points
        self.energy = self._centred(exponent), slope

    @cached_property
    def _whole_mass(self) -> FloatArray:
        """Probability of each point, that of the node in u included."""
        return np.asarray(self._weight[:, None, None] * self._mass)

    def means(self, f: FloatArray) -> FloatArray:
        """E[f] at each tilt of a function at all points, shape (tilts,)."""
        return np.asarray((self._mass * f).sum(axis=(1, 2)))

    def average(self, f: FloatArray) -> float:
        """E[f] of a function at all points."""
        return float(self._whole_mass.ravel() @ f.ravel())

    def _centred(self, f: FloatArray) -> FloatArray:
        return np.asarray(f - self.means(f)[:, None, None])

    def _integrals(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Integrals of f from the left end, and those from the right end."""
        inside = self._half * (f @ _INTEGRATION.T)
        panels = (self._half * f) @ WEIGHTS
        before = np.cumsum(panels, axis=1) - panels
        after = np.cumsum(panels[:, ::-1], axis=1)[:, ::-1]
        return before[:, :, None] + inside, after[:, :, None] - inside

    @cached_property
    def _left_half(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether less than half of the probability lies to the left of a point."""
        return np.asarray(self._integrals(self._density)[0] < 0.5)

    def _inverse(self, f: FloatArray) -> Pair:
        """Solution h of mean 0 of L h = f, and its derivative."""
        from_left, from_right = self._integrals(self._density * f)
        slope = np.where(self._left_half, from_left, -from_right) / (self._diffusion * self._density)
        h, _ = self._integrals(slope)
        return self._centred(h), slope

    def functions(self, starts: list[Pair]) -> Functions:
        """Space of functions: `starts`, and the results of applying the inverse of L to them repeatedly.

        They are orthonormal in the average over P and u.
        """
        most = len(starts) * 5  # they, and the inverse of L applied to them four times
        values, slopes = np.empty((2, most, *self._mass.shape))
        count = 0
        for i in range(most):
            if i >= len(starts) + count:
                break  # all have been inverted
            pair = starts[i] if i < len(starts) else self._inverse(values[i - len(starts)])
            count += self._append(values, slopes, count, pair)
        combined = [[self.average(value * start) for start, _ in starts] for value in values[:count]]
        return Functions(values[:count], slopes[:count], np.array(combined))

    def extended(self, functions: Functions, others: list[Pair]) -> Functions:
        """Space of functions extended by others."""
        count, more = len(functions.values), len(others)
        values, slopes = (np.concatenate([old, np.empty((more, *old.shape[1:]))]) for old in functions[:2])
        for pair in others:
            count += self._append(values, slopes, count, pair)
        starts = np.zeros((count, functions.starts.shape[1]))
        starts[: len(functions.starts)] = functions.starts
        return Functions(values[:count], slopes[:count], starts)

    def _append(self, values: FloatArray, slopes: FloatArray, count: int, pair: Pair) -> bool:
        """Append the part of a function that is not in the span of the first `count`; false if there is none."""
        value, slope = pair
        before = self._length(value)
        for _ in range(2):  # the second time for what rounding left
            shares = values[:count].reshape(count, value.size) @ (self._whole_mass * value).ravel()
            value = value - np.tensordot(shares, values[:count], 1)
            slope = slope - np.tensordot(shares, slopes[:count], 1)
        value = self._centred(value)  # a constant left by rounding would not relax
        length = self._length(value)
        if not length > 1e-7 * before > 0.0:  # for linear priors w and w^2 span all
            return False
        values[count], slopes[count] = value / length, slope / length
        return True

    def _length(self, value: FloatArray) -> float:
        """Length of a function, sqrt E[f^2]; 0 where it lies at weights of gathered laws that are below 0."""
        return math.sqrt(max(self.average(value**2), 0.0))

    def resolvents(self, starts: list[Pair], rate: float) -> list[Pair]:
        """Images (rate - L)^-1 L k of functions k, by polynomials on each panel that meet at the ends.

        In weak form rate E[h v] + D E[h' v'] = -D E[k' v'] for all v; unknowns inside a panel are eliminated first.
        """
        inside = self._half[:, :, 0] > 0  # others only fill up the arrays
        half = np.where(inside, self._half[:, :, 0], 1.0)[:, :, None]
        mass, slope_mass = self._mass, self._diffusion * self._mass / half**2
        matrix = rate * (_BASIS * mass[:, :, None, :]) @ _BASIS.T
        matrix += (_BASIS_SLOPE * slope_mass[:, :, None, :]) @ _BASIS_SLOPE.T
        matrix[~inside] = np.eye(RESOLVENT_DEGREE + 1)
        loads = np.stack([-(self._diffusion * mass / half * slope) @ _BASIS_SLOPE.T for _, slope in starts], axis=-1)
        solved = np.linalg.solve(matrix[:, :, 2:, 2:], np.concatenate([matrix[:, :, 2:, :2], loads[:, :, 2:]], axis=-1))
        coupling, bubbles = solved[..., :2], solved[..., 2:]
        ends = matrix[:, :, :2, :2] - matrix[:, :, :2, 2:] @ coupling
        end_loads = loads[:, :, :2] - matrix[:, :, :2, 2:] @ bubbles
        at_ends = _solve_chain(ends, end_loads)
        both = np.stack([at_ends[:, :-1], at_ends[:, 1:]], axis=2)
        coefficients = np.concatenate([both, bubbles - coupling @ both], axis=2)
        values = np.einsum("tpbk,bn->ktpn", coefficients, _BASIS)
        slopes = np.einsum("tpbk,bn->ktpn", coefficients, _BASIS_SLOPE) / half
        return [(self._centred(value), slope) for value, slope in zip(values, slopes, strict=True)]

    def products(self, left: Functions, right: Functions | None = None) -> tuple[FloatArray, FloatArray]:
        """Averages over P of products of functions and of their derivatives, shape (tilts, left, right)."""
        right = left if right is None else right
        return self._products(left.values, right.values), self._products(left.slopes, right.slopes)

    def _products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        tilts = len(self._mass)
        f = (left * self._mass).transpose(1, 0, 2, 3).reshape(tilts, len(left), -1)
        return np.asarray(f @ right.transpose(1, 2, 3, 0).reshape(tilts, -1, len(right)))


def _integration_matrix() -> FloatArray:
    """Integrals from -1 to each node of the polynomials that are 1 at one node and 0 at the others."""
    coefficients = np.linalg.inv(legendre.legvander(NODES, ORDER - 1))
    return np.asarray(legendre.legval(NODES, legendre.legint(coefficients, lbnd=-1)).T)


_INTEGRATION = _integration_matrix()


def _basis() -> tuple[FloatArray, FloatArray]:
    """Two hats, then polynomials that vanish at both ends: values and derivatives at the nodes, (functions, ORDER)."""
    polynomials = np.zeros((RESOLVENT_DEGREE + 1, RESOLVENT_DEGREE + 1))
    polynomials[0, :2], polynomials[1, :2] = (0.5, -0.5), (0.5, 0.5)
    for j in range(1, RESOLVENT_DEGREE):
        polynomials[j + 1, j + 1], polynomials[j + 1, j - 1] = 1.0, -1.0
    slopes = legendre.legder(polynomials.T)
    return np.asarray(legendre.legval(NODES, polynomials.T)), np.asarray(legendre.legval(NODES, slopes))


_BASIS, _BASIS_SLOPE = _basis()


def _solve_chain(ends: FloatArray, loads: FloatArray) -> FloatArray:
    """Values at all ends of panels, shape (tilts, panels + 1, k), from 2 x 2 matrices that neighbours share."""
    tilts, panels = ends.shape[:2]
    diagonal = np.zeros((tilts, panels + 1, 1))
    right = np.zeros((tilts, panels + 1, loads.shape[-1]))
    diagonal[:, :-1, 0] += ends[:, :, 0, 0]
    diagonal[:, 1:, 0] += ends[:, :, 1, 1]
    right[:, :-1] += loads[:, :, 0]
    right[:, 1:] += loads[:, :, 1]
    off = ends[:, :, 0, 1, None]
    for i in range(panels):
        factor = off[:, i] / diagonal[:, i]
        diagonal[:, i + 1] -= factor * off[:, i]
        right[:, i + 1] -= factor * right[:, i]
    result = np.empty_like(right)
    result[:, -1] = right[:, -1] / diagonal[:, -1]
    for i in range(panels - 1, -1, -1):
        result[:, i] = (right[:, i] - off[:, i] * result[:, i + 1]) / diagonal[:, i]
    return result
