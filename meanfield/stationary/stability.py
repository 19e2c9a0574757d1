"""Stability of a stationary state: the spectrum of the linearised Fokker-Planck equation.

Write dP = P h. At fixed coefficients h obeys dh/dt = L h with L h = (D/P) d(P dh/dw)/dw, D = Lambda/2, for each u: it
is self-adjoint for the average over P, not positive, and keeps the mass of each u. A small change of q and G moves the
density that is stationary for them by P k, with k = (w^2 dG - 2 w u.dg)/Lambda - E dLambda/Lambda and E as in
`meanfield.stationary.equations`. Since L pulls towards that density,

    dh/dt = L (h - k),    dq = E[u w h],    and dG such that E[w^2 h] = 0.

E[w^2] = 1 is conserved, so that only perturbations that keep it count. For them this dG is that of the formula
G = q.g + tau r - Lambda/2, and r needs no attention. At rate 0 the equations are those of Newton's method for F(q):
where its Jacobian is singular, a branch of states turns or splits.

The spectrum is Rayleigh's and Ritz's on the functions w, w^2, E and what the inverse of L makes of them again and
again, multiplied by 1 and u: exact for linear priors, where w and w^2 are eigenfunctions, exact at rate 0, where h = k,
and converging fast to every eigenvalue above the continuum -(spectral gap of L at u), which is negative. Where the
leading eigenvalue lambda is positive, (lambda - L)^-1 L of the functions joins them, and its error is squared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.stationary.equations import State
from meanfield.stationary.line import Line
from meanfield.typing import FloatArray

DEPENDENT = 1e-11
"""Directions of the space of functions that weigh less than that are rounding."""

MOST_REFINEMENTS = 4
RESOLVED = 1e-6
"""A positive growth rate is refined until it changes by less than that part of it."""

MARGINAL = 1e-7
"""Growth rates below that part of Lambda/2 + |dg/dq| are zero for all we know."""

STABLE, MARGINALLY_STABLE, UNSTABLE = 1, 0, -1


class Stability(NamedTuple):
    """Leading eigenvalues, the one of the largest real part first, and the verdict.

    Parameters
    ----------
    eigenvalues : ndarray of complex, shape (d1 + 2,)
    verdict : int
        1 stable, 0 marginal to the accuracy of the eigenvalues, -1 unstable.
    """

    eigenvalues: np.ndarray[tuple[int], np.dtype[np.complex128]]
    verdict: int

    @property
    def growth_rate(self) -> float:
        """The largest real part."""
        return float(self.eigenvalues[0].real)


def stability(line: Line, state: State) -> Stability:
    """Stability of a stationary state under perturbations that keep E[w^2] = 1 and the law of u.

    Parameters
    ----------
    line : Line
        Averages over its density.
    state : State
        Where F(q) = 0.

    Notes
    -----
    Source: theory.md, section 6, and the module's text.
    """
    d1 = len(state.q)
    values = np.linalg.eigvals(_generator(line, state))
    before = 0.0
    for _ in range(MOST_REFINEMENTS):
        largest = values[np.argmax(values.real)]
        if largest.real <= 0 or abs(largest.real - before) <= RESOLVED * largest.real:
            break
        before = largest.real
        values = np.linalg.eigvals(_generator(line, state, abs(largest)))
    order = np.lexsort((values.imag, -np.round(values.real, 12)))
    leading = np.full(d1 + 2, np.nan + 0j)
    leading[: len(order)] = values[order[: d1 + 2]]
    c = state.coefficients
    resolution = MARGINAL * (0.5 * c.diffusion + float(np.linalg.norm(c.g_slope)))
    growth = leading[0].real
    verdict = MARGINALLY_STABLE if abs(growth) <= resolution else STABLE if growth < 0 else UNSTABLE
    return Stability(leading, verdict)


def _generator(line: Line, state: State, rate: float | None = None) -> FloatArray:
    """The linearised equation as a matrix, on functions that keep E[w^2]; `rate` is where its error is squared."""
    c, t, d1 = state.coefficients, state.tilts, len(state.q)
    with_u = line.functions([line.w], rate)
    without = line.functions([line.square, line.energy], rate)
    odd, even = line.products(with_u), line.products(without)
    mixed = line.products(with_u, without)
    grams = []
    for k in range(2):  # inner products, then those of derivatives
        corner = np.einsum("ckl,cij->kilj", t.second, odd[k]).reshape((d1 * len(with_u.values),) * 2)
        side = np.einsum("ck,cij->kij", t.mean, mixed[k]).reshape(d1 * len(with_u.values), -1)
        grams.append(np.block([[corner, side], [side.T, np.einsum("c,cij->ij", t.weight, even[k])]]))
    inner, stiffness = grams[0], 0.5 * c.diffusion * grams[1]
    to_basis = _orthonormal(inner)
    stiffness = to_basis.T @ stiffness @ to_basis
    project = to_basis.T @ inner
    w = [project[:, k * len(with_u.values)] * with_u.starts[0, 0] for k in range(d1)]
    square, energy = (project[:, d1 * len(with_u.values) :] @ without.starts).T
    by_q = -(2.0 * np.array(w).T @ c.g_slope + np.outer(energy, c.diffusion_slope)) / c.diffusion
    by_G = square / c.diffusion
    rest = np.eye(len(stiffness)) - by_q @ np.array(w)
    held = square @ stiffness
    rest -= np.outer(by_G, held @ rest) / (held @ by_G)
    keeping = np.linalg.svd(square[None, :])[2][1:]
    return np.asarray(-keeping @ stiffness @ rest @ keeping.T)


def _orthonormal(inner: FloatArray) -> FloatArray:
    """Combinations of functions that are orthonormal, as columns."""
    scale = 1.0 / np.sqrt(np.diag(inner))
    size, directions = np.linalg.eigh(inner * np.outer(scale, scale))
    kept = size > DEPENDENT * size[-1]
    return np.asarray(scale[:, None] * directions[:, kept] / np.sqrt(size[kept]))
