"""Spectral elements on an interval: continuous piecewise polynomials, and implicit steps of a drift-diffusion in them.

P is given by its values at the Gauss-Lobatto points of each element, the end points being shared. In the weak form,
with zero flux at both ends,

    int v dP/dt dw = int v' (b(w) - s) P dw - D int v' P' dw        for all continuous piecewise polynomials v,

so that the polynomials 1 and w^2 as v give conservation of mass and the exact rate of change of E[w^2]. Used by
`spectral_elements.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numba
import numpy as np
from numpy.polynomial import legendre
from scipy.interpolate import BarycentricInterpolator

Array = np.ndarray

MORE_POINTS = 8
"""Number of points of the Gauss rules beyond degree + 1: they integrate functions that are no polynomials."""

LANES = 16
"""Number of densities that are advanced together, one per lane of the innermost loops."""


def lobatto_points(degree: int) -> Array:
    """End points of [-1, 1] and extrema of the Legendre polynomial of that degree, shape (degree + 1,)."""
    inner = legendre.Legendre.basis(degree).deriv().roots()
    return np.concatenate([[-1.0], np.sort(inner.real), [1.0]])


@dataclass(frozen=True)
class Mesh:
    """Elements, and polynomials on them.

    Parameters
    ----------
    edges : ndarray, shape (elements + 1,)
        Increasing; where the coefficients of the equation or their derivatives jump, there must be an edge.
    degree : int
        Of the polynomials.
    """

    edges: Array
    degree: int

    @property
    def size(self) -> int:
        """Number of values that make up a function."""
        return self.degree * (len(self.edges) - 1) + 1

    @cached_property
    def half_widths(self) -> Array:
        """Of the elements, shape (elements, 1)."""
        return 0.5 * np.diff(self.edges)[:, None]

    @cached_property
    def nodal_polynomials(self) -> BarycentricInterpolator:
        """The polynomials on [-1, 1] that are 1 at one Gauss-Lobatto point and 0 at the others."""
        # the barycentric weights take a random order by default
        return BarycentricInterpolator(
            lobatto_points(self.degree), np.eye(self.degree + 1), rng=np.random.default_rng(0)
        )

    @cached_property
    def gauss(self) -> tuple[Array, Array, Array, Array]:
        """Points on [-1, 1], weights, and the nodal polynomials and their slopes there, shape (points, degree + 1)."""
        x, weight = legendre.leggauss(self.degree + 1 + MORE_POINTS)
        lobatto = lobatto_points(self.degree)
        to_coefficients = np.linalg.inv(legendre.legvander(lobatto, self.degree))
        slopes = legendre.legval(x, legendre.legder(np.eye(self.degree + 1))).T @ to_coefficients
        return x, weight, legendre.legvander(x, self.degree) @ to_coefficients, slopes

    @cached_property
    def points(self) -> Array:
        """Gauss points of all elements, shape (elements, points)."""
        return 0.5 * (self.edges[:-1] + self.edges[1:])[:, None] + self.half_widths * self.gauss[0]

    def mass_matrix(self) -> Array:
        """Integrals of v_i v_k, shape (elements, degree + 1, degree + 1)."""
        _, weight, values, _ = self.gauss
        return self.half_widths[:, :, None] * (values.T * weight @ values)

    def drift_matrix(self, drift: Array) -> Array:
        """Integrals of v_i' b v_k for b given at `points`, shape (elements, degree + 1, degree + 1)."""
        _, weight, values, slopes = self.gauss
        return np.einsum("xi,ex,xk->eik", slopes, drift * weight, values)

    def diffusion_matrix(self) -> Array:
        """Integrals of v_i' v_k', shape (elements, degree + 1, degree + 1)."""
        _, weight, _, slopes = self.gauss
        return (slopes.T * weight @ slopes) / self.half_widths[:, :, None]

    def integrals(self, f: Array) -> Array:
        """Integrals of v_i f for f given at `points`, shape (..., elements, points) -> (..., size)."""
        _, weight, values, _ = self.gauss
        local = (f * (weight * self.half_widths)) @ values
        total = np.zeros((*f.shape[:-2], self.size))
        total[..., :-1] = local[..., :-1].reshape(*f.shape[:-2], -1)
        total[..., self.degree :: self.degree] += local[..., -1]
        return total

    def project(self, f: Array) -> Array:
        """The function that has the integrals of f against all polynomials; shapes as for `integrals`, transposed."""
        loads = np.ascontiguousarray(self.integrals(f).T)
        none = np.zeros(loads.shape[1])
        return solve_elements(self.mass_matrix(), np.zeros((self.degree + 1, self.degree + 1)), none, loads)

    def evaluate(self, values: Array, w: Array) -> Array:
        """The functions with nodal values of shape (size, columns) at points in the interval: (points, columns)."""
        element = np.clip(np.searchsorted(self.edges, w, side="right") - 1, 0, len(self.edges) - 2)
        x = (w - self.edges[element]) / self.half_widths[element, 0] - 1.0
        index = element[:, None] * self.degree + np.arange(self.degree + 1)
        return np.einsum("wi,wij->wj", self.nodal_polynomials(x), values[index])


def graded_edges(half_width: float, width: float, kinks: tuple[float, ...], layers: int, ratio: float) -> Array:
    """Edges at +-half_width, at 0 and at the kinks, between them elements no wider than `width`.

    Towards kinks there are `layers` more on each side, each ending at `ratio` times the distance of the next: a
    solution that is smooth at t = 0 gets boundary layers there.
    """
    fixed = np.unique([-half_width, 0.0, half_width, *(k for k in kinks if abs(k) < half_width)])
    graded = (-half_width, half_width, *kinks)
    edges = [fixed]
    for low, high in pairwise(fixed):
        inner = np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)
        first = (inner[1] - inner[0]) * ratio ** np.arange(1, layers + 1)
        edges.append(inner)
        edges.extend(end for target, end in ((low, low + first), (high, high - first)) if target in graded)
    return np.unique(np.concatenate(edges))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def solve_elements(common, tilt, tilts, loads):  # type: ignore[no-untyped-def]
    """Solve (common + tilts[j] tilt) x_j = loads_j for all columns j.

    Each element eliminates all its unknowns but the last, which it hands on to the next.

    Parameters
    ----------
    common : ndarray, shape (elements, degree + 1, degree + 1)
        Element matrices that all columns share.
    tilt : ndarray, shape (degree + 1, degree + 1)
        Element matrix that all elements share.
    tilts : ndarray, shape (columns,)
    loads : ndarray, shape (size, columns)

    Returns
    -------
    ndarray, shape (size, columns)
    """
    elements, points = common.shape[:2]
    degree, columns = points - 1, loads.shape[1]
    x = np.empty_like(loads)
    K = np.empty((elements, points, points, LANES))
    rest = np.empty((elements, points, LANES))
    factor = np.empty(LANES)
    scale = np.zeros(LANES)
    for first in range(0, columns, LANES):
        here = min(LANES, columns - first)
        scale[:here] = tilts[first : first + here]
        for e in range(elements):
            rest[e] = 0.0
            rest[e, 1:, :here] = loads[e * degree + 1 : (e + 1) * degree + 1, first : first + here]
            if e == 0:
                rest[e, 0, :here] = loads[0, first : first + here]
            for i in range(points):
                for k in range(points):
                    a, b, row = common[e, i, k], tilt[i, k], K[e, i, k]
                    for j in range(LANES):
                        row[j] = a + b * scale[j]
            if e > 0:
                K[e, 0, 0] += K[e - 1, degree, degree]
                rest[e, 0] = rest[e - 1, degree]
            eliminate(K[e], rest[e], factor, degree if e < elements - 1 else points)
        for e in range(elements - 1, -1, -1):
            if e < elements - 1:
                rest[e, degree] = rest[e + 1, 0]
            substitute(K[e], rest[e], degree if e < elements - 1 else points)
            x[e * degree : e * degree + points, first : first + here] = rest[e, :, :here]
    return x


@numba.njit(cache=True, nogil=True, error_model="numpy")
def eliminate(K, rest, factor, pivots):  # type: ignore[no-untyped-def]
    """Gaussian elimination of the first unknowns; the diagonal then holds the inverse pivots.

    It needs no pivoting: the mass matrix dominates, and diffusion is positive.
    """
    points = K.shape[0]
    for k in range(pivots):
        pivot, load = K[k, k], rest[k]
        for j in range(LANES):
            pivot[j] = 1.0 / pivot[j]
        for i in range(k + 1, points):
            under, below = K[i, k], rest[i]
            for j in range(LANES):
                factor[j] = under[j] * pivot[j]
                below[j] -= factor[j] * load[j]
            for column in range(k + 1, points):
                target, source = K[i, column], K[k, column]
                for j in range(LANES):
                    target[j] -= factor[j] * source[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def substitute(K, rest, pivots):  # type: ignore[no-untyped-def]
    """Back substitution; unknowns that are no pivots are known already."""
    points = K.shape[0]
    for k in range(pivots - 1, -1, -1):
        value, pivot = rest[k], K[k, k]
        for column in range(k + 1, points):
            row, known = K[k, column], rest[column]
            for j in range(LANES):
                value[j] -= row[j] * known[j]
        for j in range(LANES):
            value[j] *= pivot[j]


@dataclass(frozen=True)
class DriftDiffusion:
    """dP/dt = -d/dw[(b(w) - s) P] + D P'' with b a combination of given drifts.

    Parameters
    ----------
    mesh : Mesh
    drifts : sequence of callables
        Functions of w.
    """

    mesh: Mesh
    drifts: tuple[Callable[[Array], Array], ...]

    @cached_property
    def _matrices(self) -> tuple[Array, Array, Array, Array]:
        mesh = self.mesh
        drifts = np.array([mesh.drift_matrix(b(mesh.points.ravel()).reshape(mesh.points.shape)) for b in self.drifts])
        shift = mesh.drift_matrix(np.ones_like(mesh.points))[0]  # the same in all elements
        return mesh.mass_matrix(), drifts, shift, mesh.diffusion_matrix()

    def euler_increment(self, P: Array, factors: Array, shifts: Array, diffusion: float, dt: float) -> Array:
        """Change of P in one implicit Euler step.

        Parameters
        ----------
        P : ndarray, shape (size, columns)
        factors : ndarray, shape (drifts,)
            Of the drifts in b.
        shifts : ndarray, shape (columns,)
            s of each column.
        diffusion : float
            D.
        dt : float
        """
        mass, drifts, shift, stiffness = self._matrices
        rate = np.tensordot(factors, drifts, axes=1) - diffusion * stiffness
        load = dt * (self._apply(rate, P) - shifts * self._apply(np.broadcast_to(shift, rate.shape), P))
        return solve_elements(mass - dt * rate, shift, dt * shifts, load)

    def _apply(self, matrices: Array, P: Array) -> Array:
        """Sum over elements of matrix times values, shape of P."""
        degree = self.mesh.degree
        index = np.arange(len(matrices))[:, None] * degree + np.arange(degree + 1)
        local = matrices @ P[index]
        result = np.zeros_like(P)
        result[:-1] = local[:, :-1].reshape(-1, P.shape[1])
        result[degree::degree] += local[:, -1]
        return result
