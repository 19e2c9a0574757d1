"""Stationary law of two weights given u at fixed coefficients: a sparse system on square cells.

With correlated noise the motion is no gradient flow in general, not even under separable priors, so that its law has no
explicit form: phi is a gradient in the metric of Lambda only where Lambda is diagonal or phi linear. Cells, directions
and fluxes are those of the density in time (several_channels.md, section 5), in a frame w = mean + S x that is at rest:

    J = rho/h^2 [B(-z) P(x) - B(z) P(x + h e)],    z = 2 (h S e) . Lambda^-1 (drift, averaged from x to x + h e).

The law is the null vector of a generator whose columns add up to 0. Averages need no derivative of the law: with
G^T psi = <f> - f a change dG of the generator changes <f> by psi . dG P.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import SuperLU, splu

from meanfield.families.contrastive.channels.stationary.motion import Motion
from meanfield.ingredients.priors import PriorSettings, potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.finite_volumes.plane_kernel import selling
from meanfield.several_vectors.frame import Frame
from meanfield.typing import FloatArray, IntArray

COEFFICIENTS = 9
"""Numbers that a law given u depends on: the drift at w = 0 (2), L (4), and Lambda_11, Lambda_12, Lambda_22."""


class Cells:
    """Square cells of [-half_width, half_width]^2 in units of the frame.

    Parameters
    ----------
    count : int
        Cells of an axis.
    half_width : float
    """

    def __init__(self, count: int, half_width: float) -> None:
        self.count, self.half_width = count, half_width
        self.h = 2.0 * half_width / count
        self.axis = np.asarray(self.h * (np.arange(count) + 0.5) - half_width, dtype=float)
        self.x = np.stack(np.meshgrid(self.axis, self.axis, indexing="ij"), axis=-1).reshape(-1, 2)
        rim = np.zeros((count, count), dtype=bool)
        rim[[0, -1], :] = rim[:, [0, -1]] = True
        self.rim = rim.ravel()
        self.middle = int(np.argmin((self.x**2).sum(axis=1)))

    def pairs(self, e: IntArray) -> tuple[IntArray, IntArray]:
        """Numbers of the cells x and x + h e."""
        n = self.count
        i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        inside = (i + e[0] >= 0) & (i + e[0] < n) & (j + e[1] >= 0) & (j + e[1] < n)
        first = (i * n + j)[inside]
        return first, first + int(e[0] * n + e[1])


class LawGivenU:
    """Stationary law at one u.

    Parameters
    ----------
    cells : Cells
    motion : Motion
    pull : float
        Learning rate times the strength of the prior.
    prior : PriorSettings
    drift : ndarray, shape (2,)
        Drift a.u at w = 0, without the prior.
    frame : Frame
        With the mean of this node, shape (2,).

    Attributes
    ----------
    generator : csc_matrix
        G with dP/dt = G P.
    P : ndarray, shape (cells,)
        Probabilities of the cells.
    w : ndarray, shape (cells, 2)
        Weights at their centres.
    """

    def __init__(
        self, cells: Cells, motion: Motion, tau: float, prior: PriorSettings, drift: FloatArray, frame: Frame
    ) -> None:
        self.cells, self._motion = cells, motion
        self.w = frame.mean + cells.x @ frame.S.T
        inverse = np.linalg.inv(motion.Lambda)
        into = np.linalg.inv(frame.S)
        rho, directions = selling(0.5 * into @ motion.Lambda @ into.T)
        # the linear map from Lambda to the weights of these directions
        basis = np.array([[e[0] ** 2, e[0] * e[1], e[1] ** 2] for e in directions]).T
        changes = [0.5 * into @ each @ into.T for each in SYMMETRIC]
        rho_slopes = np.linalg.solve(basis, np.array([[c[0, 0], c[0, 1], c[1, 1]] for c in changes]).T)
        self._edges: list[tuple[IntArray, IntArray]] = []
        rates: list[tuple[FloatArray, FloatArray]] = []
        slopes: list[tuple[FloatArray, FloatArray]] = []
        for s in range(3):
            first, second = cells.pairs(directions[s])
            step = cells.h * frame.S @ directions[s]
            middle = self.w[first] + 0.5 * step
            mean = drift + middle @ motion.L.T - tau * prior.strength * self._force(prior, frame, middle, step)
            v = 2.0 * inverse @ step
            z = mean @ v
            dz = np.empty((COEFFICIENTS, len(z)))
            dz[:2] = v[:, None]
            dz[2:6] = np.einsum("k,nl->kln", v, middle).reshape(4, -1)
            dz[6:] = [-(mean @ (inverse @ (each @ v))) for each in SYMMETRIC]
            drho = np.zeros(COEFFICIENTS)
            drho[6:] = rho_slopes[s]
            forward, backward = bernoulli(-z), bernoulli(z)
            scale = 1.0 / cells.h**2
            self._edges.append((first, second))
            rates.append((scale * rho[s] * forward, scale * rho[s] * backward))
            slopes.append(
                (
                    scale * (drho[:, None] * forward - rho[s] * bernoulli_slope(-z) * dz),
                    scale * (drho[:, None] * backward + rho[s] * bernoulli_slope(z) * dz),
                )
            )
        self._rates, self._slopes = rates, slopes
        self.generator = self._generator()
        self.P = self._null_vector()

    def _force(self, prior: PriorSettings, frame: Frame, middle: FloatArray, step: FloatArray) -> FloatArray:
        """Mean of phi of unit strength over each step, by differences of the potential."""
        potential = potential_of(prior.functions)
        least = 0.1 * self.cells.h * np.abs(frame.S).max(axis=1)
        # along a direction that hardly changes a coordinate the mean is taken over the extent of a cell
        reach = np.where(np.abs(step) >= least, 0.5 * np.abs(step), 5.0 * least)
        return np.column_stack(
            [
                (evaluate(potential, middle[:, k] + reach[k]) - evaluate(potential, middle[:, k] - reach[k]))
                / (2.0 * reach[k])
                for k in range(2)
            ]
        )

    def _generator(self) -> csc_matrix:
        rows, columns, values = [], [], []
        for (first, second), (forward, backward) in zip(self._edges, self._rates, strict=True):
            rows += [second, first, first, second]
            columns += [first, first, second, second]
            values += [forward, -forward, backward, -backward]
        size = len(self.w)
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return csc_matrix(entries, shape=(size, size))

    def _null_vector(self) -> FloatArray:
        G, m = self.generator, self.cells.middle
        self._others = np.delete(np.arange(G.shape[0]), m)
        self._solver = splu(G[self._others][:, self._others].tocsc(), permc_spec="MMD_AT_PLUS_A")
        P = np.ones(G.shape[0])
        P[self._others] = self._solver.solve(-G[self._others, m].toarray().ravel())
        return np.asarray(P / P.sum())

    def shifted(self, shift: float) -> SuperLU:
        """Factors of G - shift."""
        return splu((self.generator - shift * identity(len(self.P))).tocsc(), permc_spec="MMD_AT_PLUS_A")

    def changes(self) -> FloatArray:
        """Derivatives of G P by the coefficients at fixed P, shape (COEFFICIENTS, cells)."""
        found = np.zeros((COEFFICIENTS, len(self.P)))
        for (first, second), (forward, backward) in zip(self._edges, self._slopes, strict=True):
            flux = forward * self.P[first] - backward * self.P[second]
            for row, each in zip(found, flux, strict=True):
                row[second] += each  # a cell is the second one of one step at most
                row[first] -= each
        return found

    def sensitivities(self, f: FloatArray) -> FloatArray:
        """Derivatives of the averages of f, shape (functions, cells), by the coefficients."""
        psi = np.zeros_like(f)
        gap = (f @ self.P)[:, None] - f
        psi[:, self._others] = self._solver.solve(gap[:, self._others].T, "T").T  # type: ignore[call-overload]
        return np.asarray(psi @ self.changes().T)


SYMMETRIC = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
"""Changes of a symmetric matrix by its three numbers."""


def bernoulli(z: FloatArray) -> FloatArray:
    """B(z) = z/(e^z - 1)."""
    z = np.clip(z, -700.0, 700.0)
    small = np.abs(z) < 1e-4  # where the series to second order is exact to rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, 1.0 - 0.5 * z + z * z / 12.0, z / np.expm1(z))


def bernoulli_slope(z: FloatArray) -> FloatArray:
    """dB/dz = (B(z) - B(z)^2 e^z)/z, with B(z) e^z = B(-z)."""
    small = np.abs(z) < 1e-3  # where the series is better than the difference
    B = bernoulli(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, -0.5 + z / 6.0, (B - B * bernoulli(-z)) / z)
