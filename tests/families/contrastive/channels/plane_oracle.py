"""The density of two channels on cells that stay where they are: sparse matrices, one generator for each node.

The scheme of several_channels.md, section 5, in w itself and not in a moving frame: an independent oracle that is only
as good as its cells are many.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import splu

from meanfield.numerics.finite_volumes.plane_kernel import selling


class PlaneOracle:
    """Density P(w_1, w_2 | u) on [-reach, reach]^2.

    Parameters
    ----------
    closure : ChannelClosure
    u, u_weight : ndarray, shapes (nodes, d1) and (nodes,)
    cells : int
        Cells of an axis.
    reach : float
    """

    def __init__(self, closure, u, u_weight, cells, reach=5.0):
        problem = closure.problem
        self.closure, self.u, self.u_weight = closure, u, u_weight
        self.h = 2 * reach / cells
        axis = self.h * (np.arange(cells) + 0.5) - reach
        self.w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        self.phi, self.tau, self.cells = problem.prior.force, problem.model.learning_rate, cells
        q = problem.initial_overlap
        inverse = np.linalg.inv(problem.initial_channel_overlap - q.T @ q)
        gap = self.w[None] - (u @ q)[:, None]
        P = np.exp(-0.5 * np.einsum("ncx,xy,ncy->nc", gap, inverse, gap))
        self.P = P / P.sum(axis=1, keepdims=True)

    def averages(self, P):
        """q, M and r of probabilities of cells, shape (nodes, cells)."""
        force = self.phi(self.w)
        q = (self.u * self.u_weight[:, None]).T @ (P @ self.w)
        total = self.u_weight @ P
        return q, (self.w * total[:, None]).T @ self.w, total @ (self.w * force)

    def run(self, stop, steps):
        """Averages after backward Euler half steps from the middle of each step, extrapolated: the midpoint rule."""
        before = now = self.averages(self.P)
        for _ in range(steps):
            middle = [1.5 * a - 0.5 * b for a, b in zip(now, before, strict=True)]
            self.P = self._step(self.P, middle, stop / steps)
            before, now = now, self.averages(self.P)
        return now

    def _step(self, P, averages, dt):
        q, M, r = averages
        gain, D, noise = self.closure(q, M)
        K = M - q.T @ q
        H = (D - gain.T @ q) @ np.linalg.inv(K)
        a = self.tau * (gain - q @ H.T)
        n = self.tau * np.diag(D) + 0.5 * np.diag(noise) - self.tau * r
        result = np.empty_like(P)
        for node, u in enumerate(self.u):
            A = self._generator(lambda w, u=u: u @ a + self.tau * (w @ H.T - self.phi(w)) - n * w, noise)
            half = splu(csc_matrix(identity(len(self.w)) - 0.5 * dt * A)).solve(P[node])
            result[node] = 2 * half - P[node]
        return result

    def _generator(self, drift, noise):
        size, inverse = len(self.w), np.linalg.inv(0.5 * noise)
        A = csc_matrix((size, size))
        i, j = np.divmod(np.arange(size), self.cells)
        for rho, e in zip(*selling(0.5 * noise), strict=True):
            a, b = i + e[0], j + e[1]
            inside = (a >= 0) & (a < self.cells) & (b >= 0) & (b < self.cells)
            here, there = np.flatnonzero(inside), (a * self.cells + b)[inside]
            z = self.h * drift(0.5 * (self.w[here] + self.w[there])) @ inverse @ e
            out, back = (rho / self.h**2 * y / np.expm1(y) for y in (-z + 1e-12, z + 1e-12))
            A += csc_matrix((out, (there, here)), (size, size)) - csc_matrix((out, (here, here)), (size, size))
            A += csc_matrix((back, (here, there)), (size, size)) - csc_matrix((back, (there, there)), (size, size))
        return A
