"""Steps of a density in plain numpy, as the equations say them: shares the grid and the start with the library."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from meanfield.mckean_vlasov.density.start import initial_density


def bernoulli(z):
    """z/(e^z - 1)."""
    small = np.abs(z) < 1e-8
    return np.where(small, 1.0 - 0.5 * z, z / np.expm1(np.where(small, 1.0, z)))


class MidpointEvolution:
    """P_t of a limit on a grid by implicit midpoint steps; attributes `times`, `history` of moments, and `P`."""

    def __init__(self, limit, grid):
        self.limit, self.grid, self.P = limit, grid, initial_density(limit, grid)
        self.times, self.history = [0.0], [self.moments(self.P)]

    def moments(self, P):
        """q, r, E[w^2], mass."""
        w, h, weight = self.grid.centres, self.grid.h, self.grid.u_weight
        mean = P @ w * h
        rows = np.array([w * self.limit.prior.force(w), w**2, np.ones_like(w)]) * h
        return np.concatenate([(weight * mean) @ self.grid.u, rows @ P.T @ weight])

    def advance(self, times):
        """Take the steps."""
        for end in times:
            known = len(self.times)
            few = slice(-4, None) if known >= 4 else slice(-2, None)
            guess = self._polynomial(self.times[few], self.history[few], end)
            for _ in range(1 if known >= 4 else 4):
                after = self._solved(0.5 * (self.history[-1] + guess), end - self.times[-1])
                guess = self.moments(after)
            self.P = after
            self.times.append(end)
            self.history.append(guess)

    def _polynomial(self, times, values, end):
        """Neville's scheme."""
        table = list(values)
        for order in range(1, len(table)):
            for i in range(len(table) - order):
                left, right = end - times[i], end - times[i + order]
                table[i] = (left * table[i + 1] - right * table[i]) / (times[i + order] - times[i])
        return table[0]

    def _solved(self, half, dt):
        q, r, norm = half[:-3], half[-3], half[-2]
        limit, w, h = self.limit, self.grid.centres, self.grid.h
        g, diffusion = limit.closure(q)
        D = 0.5 * diffusion
        G = q @ g + limit.learning_rate * r - D
        G -= 2.0 * max(G, 0.0) * (norm - 1.0)
        fall = G * 0.5 * np.diff(w**2) - limit.learning_rate * limit.prior.potential_steps(w)
        return np.array(
            [
                self._node(P, (fall - u @ g * h) / D, D * dt / (2 * h * h))
                for u, P in zip(self.grid.u, self.P, strict=True)
            ]
        )

    @staticmethod
    def _node(P, z, k):
        out, back = k * bernoulli(-z), k * bernoulli(z)
        bands = np.zeros((3, P.size))
        bands[0, 1:], bands[2, :-1], bands[1] = -back, -out, 1.0
        bands[1, :-1] += out
        bands[1, 1:] += back
        return 2.0 * solve_banded((1, 1), bands, P) - P
