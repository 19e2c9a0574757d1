"""Stability of a stationary state: the spectrum of the linearised Fokker-Planck equation.

Write dP = P h. At fixed coefficients h obeys dh/dt = L h with L h = (D/P) d(P dh/dw)/dw, D = Lambda/2, for each u: it
is self-adjoint for the average over P, not positive, and keeps the mass of each u. A small change of q and G moves the
density that is stationary for them by P k, with k = (w^2 dG - 2 w u.dg)/Lambda - E dLambda/Lambda and E as in
`meanfield.mckean_vlasov.stationary.equations`. Since L pulls towards that density,

    dh/dt = L (h - k),    dq = E[u w h],    and dG such that E[w^2 h] = 0.

A norm that is kept is conserved, so that only perturbations that keep it count. For them this dG is that of the formula
G E[w^2] = q.g + tau r - Lambda/2, and r needs no attention. Where it is free E[w^2 h] is its change, and dG that of the
closure. At rate 0 the equations are those of Newton's method for F(q):
where its Jacobian is singular, a branch of states turns or splits. Where variances rho of the noise differ, each has
such an equation of its own, and all meet in the averages.

The spectrum is Rayleigh's and Ritz's on the functions w, w^2, E and what the inverse of L makes of them again and
again, multiplied by 1 and u: exact for linear priors, where w and w^2 are eigenfunctions, exact at rate 0, where h = k,
and converging fast to every eigenvalue above the continuum -(spectral gap of L at u), which is negative. Where the
leading eigenvalue lambda is positive, (lambda - L)^-1 L of the functions joins them, and its error is squared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.line import Functions, Line
from meanfield.mckean_vlasov.stationary.state import State
from meanfield.numerics.growth_rates import sorted_rates, verdict_of
from meanfield.typing import FloatArray


class Stability(NamedTuple):
    """Growth rates and modes of small perturbations of a state.

    Parameters
    ----------
    eigenvalues : ndarray of complex, shape (d1 + 2,)
        Leading rates of perturbations that q and the norm take part in, the one of the largest real part first; NaN
        where there are fewer.
    gap : float
        The slowest rate at which a conditional density relaxes on its own, at any u.
    verdict : int
        1 stable, 0 marginal to the accuracy of the rates, -1 unstable.
    resolution : float
        Growth rates below it count as zero.
    """

    eigenvalues: np.ndarray[tuple[int], np.dtype[np.complex128]]
    gap: float
    verdict: int
    resolution: float

    @property
    def growth_rate(self) -> float:
        """Largest growth rate."""
        return max(float(self.eigenvalues[0].real), -self.gap)

    def agrees_with(self, rough: Stability) -> bool:
        """Whether these rates are those of rougher ones, which exist for certain."""
        size = np.nanmax(np.abs(rough.eigenvalues), initial=0.0)
        # Rates from weights of both signs are right if those from positive ones, of lower order, differ by a percent.
        return bool(np.allclose(self.eigenvalues, rough.eigenvalues, rtol=0.0, atol=0.01 * size, equal_nan=True))


def stability(equations: StationaryEquations, state: State) -> Stability:
    """Stability of a stationary state under perturbations that keep the law of u and, unless it is free, E[w^2].

    Parameters
    ----------
    equations : StationaryEquations
    state : State
        Stationary state, F(q) = 0, with any nodes in u.

    Notes
    -----
    Source: theory.md, section 6, and the module's text.
    """
    d1, lines = len(state.q), [Line(equations, each.state) for each in state.members]
    spaces = [(line.functions([line.w]), line.functions([line.square, line.energy])) for line in lines]
    parts = [_Ritz(line, each.state, *own) for line, each, own in zip(lines, state.members, spaces, strict=True)]
    gap, values = min(part.gap() for part in parts), eigenvalues(parts, state)
    before = 0.0
    for _ in range(4):  # extensions of the space of functions
        largest = values[np.argmax(values.real)]
        if largest.real <= 0 or abs(largest.real - before) <= 1e-3 * largest.real:  # the error left is about the square
            break
        before = largest.real
        parts = []
        for line, each, (odd, even) in zip(lines, state.members, spaces, strict=True):
            images = line.resolvents([line.w, line.square, line.energy], abs(largest))
            parts.append(_Ritz(line, each.state, line.extended(odd, images[:1]), line.extended(even, images[1:])))
        values = eigenvalues(parts, state)
    leading = np.full(d1 + 2, np.nan + 0j)
    leading[: len(values)] = sorted_rates(values)[: d1 + 2]
    c = state.by_averages
    size = 0.5 * c.diffusion / state.norm + float(np.linalg.norm(c.g_slope))
    resolution = 1e-7 * size  # of differences of the closure
    return Stability(leading, gap, verdict_of(max(float(leading[0].real), -gap), resolution), resolution)


def eigenvalues(parts: Sequence[_Ritz], state: State) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    """Eigenvalues of the linearised equation, on functions that keep E[w^2] unless it is free."""
    c, d1, projected = state.by_averages, len(state.q), [part.projected() for part in parts]
    root = np.repeat([math.sqrt(each.share) for each in state.members], [len(each.square) for each in projected])
    rho = np.repeat([each.rho for each in state.members], [len(each.square) for each in projected])
    stiffness = block_diag(*(each.stiffness for each in projected))
    uw = root[:, None] * np.concatenate([each.uw for each in projected])
    square, energy = (root * np.concatenate([each[k] for each in projected]) for k in (2, 3))
    pushed, averages = 2.0 * uw / rho[:, None], [uw]  # E[u w], and what a change of g does
    by_averages = -pushed @ c.g_slope[:d1] - np.outer(energy, c.diffusion_slope)
    if len(c.g) > d1:
        by_averages -= 2.0 * uw @ c.g_slope[d1:-1] + np.outer(square, c.g_slope[-1])
        averages += [rho[:, None] * uw, (rho * square)[:, None]]
    if c.growth_slope is not None:
        by_averages += np.outer(square / rho, c.growth_slope)
        averages.append(square[:, None])
    by_averages /= c.diffusion
    rest = np.eye(len(stiffness)) - by_averages @ np.hstack(averages).T
    if c.growth_slope is not None:
        return np.linalg.eigvals(-stiffness @ rest).astype(complex)
    held, by_G = square @ stiffness, square / rho
    rest -= np.outer(by_G, held @ rest) / (held @ by_G)
    keeping = np.linalg.svd(square[None, :])[2][1:]
    return np.linalg.eigvals(-keeping @ stiffness @ rest @ keeping.T).astype(complex)


class Projected(NamedTuple):
    """The generator with its sign changed, u w, w^2 and the energy in a basis that is orthonormal at a variance."""

    stiffness: FloatArray
    uw: FloatArray
    square: FloatArray
    energy: FloatArray


class _Ritz:
    """Rayleigh-Ritz approximation of the linearised equation: functions that are multiplied by u, and others."""

    def __init__(self, line: Line, state: State, with_u: Functions, without: Functions) -> None:
        self._state = state
        self._with_u, self._without = with_u, without
        # inner products, then those of derivatives
        self._odd, self._even = line.products(self._with_u), line.products(self._without)
        self._mixed = line.products(self._with_u, self._without)

    def gap(self) -> float:
        """Smallest eigenvalue but 0 of -L over all tilts."""
        inner, stiffness = (
            np.concatenate(
                [np.concatenate([odd, mixed], axis=2), np.concatenate([mixed.transpose(0, 2, 1), even], axis=2)], axis=1
            )
            for odd, mixed, even in zip(self._odd, self._mixed, self._even, strict=True)
        )
        scale = 1.0 / np.sqrt(np.einsum("cii->ci", stiffness))
        both = scale[:, :, None] * scale[:, None, :]
        # A ridge, because the functions may be dependent at some u.
        factor = np.linalg.inv(np.linalg.cholesky(both * stiffness + 1e-12 * np.eye(stiffness.shape[1])))
        slowest = np.linalg.eigvalsh(factor @ (both * inner) @ factor.transpose(0, 2, 1))[:, -1]
        return 0.5 * self._state.coefficients.diffusion / float(slowest.max())

    def projected(self) -> Projected:
        """What the spectrum needs of this variance."""
        d1, size, inner = len(self._state.q), len(self._with_u.values), self._coupled(0)
        basis = _orthonormal(inner)
        stiffness = 0.5 * self._state.coefficients.diffusion * basis.T @ self._coupled(1) @ basis
        project = basis.T @ inner
        uw = project[:, : d1 * size : size] * self._with_u.starts[0, 0]
        return Projected(stiffness, uw, *(project[:, d1 * size :] @ self._without.starts).T)

    def _coupled(self, k: int) -> FloatArray:
        """Products, k = 0, or those of derivatives, k = 1, of all u_k f(w) and f(w), averaged over u."""
        t, rows = self._state.tilts, len(self._state.q) * len(self._with_u.values)
        corner = np.einsum("ckl,cij->kilj", t.second, self._odd[k]).reshape(rows, rows)
        side = np.einsum("ck,cij->kij", t.mean, self._mixed[k]).reshape(rows, -1)
        return np.block([[corner, side], [side.T, np.einsum("c,cij->ij", t.weight, self._even[k])]])


def _orthonormal(inner: FloatArray) -> FloatArray:
    """Combinations of functions that are orthonormal, as columns.

    Raises
    ------
    LinAlgError
        If some function has no length.
    """
    squares = np.diag(inner)
    if not np.all(squares > 0.0):
        raise np.linalg.LinAlgError(f"inner products of a function with itself: {squares.min():.2g} among them")
    scale = 1.0 / np.sqrt(squares)
    size, directions = np.linalg.eigh(inner * np.outer(scale, scale))
    kept = size > 1e-11 * size[-1]  # smaller eigenvalues are rounding
    return np.asarray(scale[:, None] * directions[:, kept] / np.sqrt(size[kept]))
