"""Equations of the stationary states of two channels, for any prior.

Unknowns are q, M_12 and the multipliers n of the norms. They fix the motion of the weights, and with it their law P at
each u; what has to hold is E[u w] = q, E[w_1 w_2] = M_12 and E[w_k^2] = 1. By the latter n is what the closure demands.
Source: several_channels.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import BatchAverages, ChannelClosure
from meanfield.families.contrastive.channels.stationary.cells import Cells, LawGivenU
from meanfield.families.contrastive.channels.stationary.motion import Motion
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.numerics.continuation import newton
from meanfield.several_vectors.frame import Frame
from meanfield.typing import FloatArray

LEAST_ROOM = 1e-6
"""Least eigenvalue of K of channels that do not coincide."""

APART = 1e-4
"""1 - M_12 of channels in the place of those that coincide, whose law is of two weights; q changes in proportion."""

ROOT = 1e-9
"""Largest component of the equations at a root: their Jacobian leaves out the motion of the frame."""


class PlaneState(NamedTuple):
    """Laws of the weights at given unknowns.

    Parameters
    ----------
    unknowns : ndarray, shape (2 d1 + 3,)
    averages : BatchAverages
    motion : Motion
    frame : Frame
    laws : list of LawGivenU
        At the nodes that are solved.
    u, u_weight : ndarray
        These nodes.
    """

    unknowns: FloatArray
    averages: BatchAverages
    motion: Motion
    frame: Frame
    laws: list[LawGivenU]
    u: FloatArray
    u_weight: FloatArray

    @property
    def cells(self) -> Cells:
        """Cells of all laws."""
        return self.laws[0].cells

    @property
    def moments(self) -> FloatArray:
        """E[w_1], E[w_2], E[w_1 w_2], E[w_1^2], E[w_2^2] at each node, shape (nodes, 5)."""
        return np.array([functions_of(law.w) @ law.P for law in self.laws])

    @property
    def values(self) -> FloatArray:
        """What has to vanish."""
        moments = self.moments
        total = self.u_weight @ moments
        q = (self.u * self.u_weight[:, None]).T @ moments[:, :2]
        d = len(self.unknowns) - 3
        return np.concatenate([q.ravel() - self.unknowns[:d], [total[2] - self.unknowns[d]], total[3:] - 1.0])

    @property
    def rim(self) -> float:
        """Probability in the outermost cells."""
        return float(self.u_weight @ [law.P[law.cells.rim].sum() for law in self.laws])

    def work(self, force: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """r_k = E[w_k phi(w_k)] with a force phi, shape (2,)."""
        return np.asarray(self.u_weight @ np.array([law.P @ (law.w * force(law.w)) for law in self.laws]))


class PlaneEquations:
    """Equations F(unknowns) = 0 on given cells.

    Parameters
    ----------
    closure : ChannelClosure
        Of a problem of two channels.
    nodes : Nodes
    cells : Cells
    """

    def __init__(self, closure: ChannelClosure, nodes: Nodes, cells: Cells) -> None:
        self.closure, self.nodes, self.cells = closure, nodes, cells
        self.problem = closure.problem
        self.features = len(self.problem.features)
        self._tau = self.problem.model.rate
        # The unit of the multipliers, which makes unknowns of one size.
        self._scale = float(np.trace(closure(np.zeros((self.features, 2)), np.eye(2)).Lambda))

    def on(self, cells: Cells) -> PlaneEquations:
        """The equations on other cells."""
        return PlaneEquations(self.closure, self.nodes, cells)

    def unpacked(self, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """q, M and n."""
        d = 2 * self.features
        return y[:d].reshape(-1, 2), np.array([[1.0, y[d]], [y[d], 1.0]]), self._scale * y[d + 1 :]

    def start(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Unknowns of Gaussian weights."""
        averages = self.closure(q, M)
        w = np.linspace(-5.0, 5.0, 201)
        chance = np.exp(-0.5 * w * w)
        r = float(chance @ (w * self.problem.prior.force(w)) / chance.sum())
        n = self._tau * np.diag(averages.D) + 0.5 * np.diag(averages.Lambda) - self._tau * r
        return np.concatenate([q.ravel(), [M[0, 1]], n / self._scale])

    def state(self, y: FloatArray) -> PlaneState | None:
        """Laws at given unknowns; None where there are none."""
        q, M, n = self.unpacked(y)
        K = M - q.T @ q
        if not (np.isfinite(y).all() and np.linalg.eigvalsh(K)[0] > LEAST_ROOM):
            return None
        averages = self.closure(q, M)
        if not np.linalg.eigvalsh(averages.Lambda)[0] > LEAST_ROOM * np.trace(averages.Lambda):
            return None
        motion = Motion.of(averages, q, M, self._tau, n)
        u, u_weight = self.nodes.solved
        # The symmetric root is a smooth function of K and treats both channels alike.
        values, vectors = np.linalg.eigh(K)
        frame = Frame(u @ q, vectors * np.sqrt(values) @ vectors.T)
        prior = self.problem.prior
        places = zip(u @ motion.gain, frame.mean, strict=True)
        try:
            laws = [
                LawGivenU(self.cells, motion, self._tau, prior, drift, Frame(mean, frame.S)) for drift, mean in places
            ]
        except RuntimeError:  # of a singular matrix, where a drift leads all weights out of the cells
            return None
        found = PlaneState(y, averages, motion, frame, laws, u, u_weight)
        return found if found.rim < 1e-3 else None  # largest probability in the outermost cells

    def __call__(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F and its Jacobian; NaN where there is no law."""
        state = self.state(y)
        if state is None:
            return np.full(len(y), np.nan), np.full((len(y), len(y)), np.nan)
        return state.values, self.jacobian(state)

    def root(self, y: FloatArray) -> FloatArray | None:
        """Root near y; of channels that nearly coincide at this M_12, where equal channels stay equal."""
        if not self.coincide(y):
            return newton(self, y, tolerance=ROOT)
        found = newton(self.merged, self.restricted(y), tolerance=ROOT)
        return None if found is None else self.embedded(found)

    def coincide(self, y: FloatArray) -> bool:
        """Whether unknowns are those of channels that coincide."""
        return bool(y[2 * self.features] >= 1.0 - 2.0 * APART)

    @cached_property
    def _pair(self) -> FloatArray:
        """Matrix from the unknowns of one channel to those of two equal ones, but for M_12."""
        return np.insert(np.repeat(np.eye(self.features + 1), 2, axis=0), -2, 0.0, axis=0)

    def embedded(self, z: FloatArray) -> FloatArray:
        """Unknowns of two channels that coincide, from those of one: q and its multiplier, shape (d1 + 1,)."""
        y = self._pair @ z
        y[-3] = 1.0 - APART
        return np.asarray(y)

    def restricted(self, y: FloatArray) -> FloatArray:
        """Means of the unknowns of both channels, shape (d1 + 1,)."""
        return np.asarray(0.5 * self._pair.T @ y)

    def merged(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Equations of channels that coincide, and their Jacobian."""
        values, slope = self(self.embedded(z))
        return 0.5 * self._pair.T @ values, 0.5 * self._pair.T @ slope @ self._pair

    def values_alone(self, y: FloatArray) -> FloatArray:
        """F."""
        state = self.state(y)
        return np.full(len(y), np.nan) if state is None else state.values

    def jacobian(self, state: PlaneState) -> FloatArray:
        """Derivatives of F at a fixed frame."""
        d = 2 * self.features
        slopes = self.coefficient_slopes(state)
        found = np.zeros((d + 3, d + 3))
        for law, u, weight, slope in zip(state.laws, state.u, state.u_weight, slopes, strict=True):
            each = law.sensitivities(functions_of(law.w)) @ slope
            found[:d] += weight * np.einsum("f,ky->fky", u, each[:2]).reshape(d, -1)
            found[d:] += weight * each[2:]
        found[: d + 1, : d + 1] -= np.eye(d + 1)
        return found

    def coefficient_slopes(self, state: PlaneState) -> FloatArray:
        """Derivatives of the coefficients of each node by the unknowns, shape (nodes, COEFFICIENTS, unknowns)."""
        y = state.unknowns
        columns = []
        q, M, _ = self.unpacked(y)
        # Central differences then err by 1e-10, and rounding by as much; H grows like the inverse of K.
        length = min(1e-5, 0.02 * float(np.linalg.eigvalsh(M - q.T @ q)[0]))
        for unit in np.eye(len(y)):
            up, down = (self._coefficients(self._motion(y + sign * length * unit), state.u) for sign in (1.0, -1.0))
            columns.append((up - down) / (2.0 * length))
        return np.stack(columns, axis=-1)

    def _motion(self, y: FloatArray) -> Motion:
        q, M, n = self.unpacked(y)
        return Motion.of(self.closure(q, M), q, M, self._tau, n)

    @staticmethod
    def _coefficients(motion: Motion, u: FloatArray) -> FloatArray:
        common = np.concatenate([motion.L.ravel(), motion.Lambda[[0, 0, 1], [0, 1, 1]]])
        return np.hstack([u @ motion.gain, np.tile(common, (len(u), 1))])


def functions_of(w: FloatArray) -> FloatArray:
    """w_1, w_2, w_1 w_2, w_1^2 and w_2^2, shape (5, cells)."""
    first, second = w.T
    return np.array([first, second, first * second, first * first, second * second])
