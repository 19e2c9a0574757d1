"""One second-order solution for the density of two vectors, advanced from output time to output time.

A step freezes all coefficients at its midpoint, where q, M and the work of the prior are extrapolated from the steps
before. The generator is a sum over at most three directions of the lattice
(`meanfield.numerics.finite_volumes.plane_kernel`), and the step a symmetric product of implicit midpoint steps along
each, which conserve mass and leave a standard normal law at rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.numerics.compiled.vectors import lanes_for
from meanfield.numerics.finite_volumes.plane_kernel import SUMS, fill_function, selling, sum_up, sweep
from meanfield.several_vectors.frame import Drift, Frame, first_factor
from meanfield.several_vectors.limit import LONGEST, JointLimit
from meanfield.typing import FloatArray

ONE_DIRECTION = "noise acts along one direction of the plane only"


class DegenerateError(ArithmeticError):
    """Error of vectors of which one is a function of the other, or without noise: they have no density in the plane.

    Parameters
    ----------
    time : float
    reason : str
    """

    def __init__(self, time: float, reason: str) -> None:
        self.reason = f"at t = {time:.6g}: {reason}"
        super().__init__(f"{self.reason}; {REMEDY}")


@dataclass(frozen=True)
class Averages:
    """Averages over a density.

    Parameters
    ----------
    q : ndarray, shape (d1, 2)
    M : ndarray, shape (2, 2)
    work : ndarray, shape (2, 2)
        E[w_k phi(w_l)].
    force : ndarray, shape (nodes, 2)
        E[phi | u].
    slope : ndarray, shape (2, 2)
        G; see `frame`.
    """

    q: FloatArray
    M: FloatArray
    work: FloatArray
    mass: float
    force: FloatArray
    slope: FloatArray

    @property
    def vector(self) -> FloatArray:
        """All of them in one vector, so that steps can combine them."""
        parts = (self.q, self.M, self.work, [self.mass], self.force, self.slope)
        return np.concatenate([np.ravel(part) for part in parts])

    def like(self, vector: FloatArray) -> Averages:
        """Averages of the same shapes out of a vector."""
        sizes = np.cumsum([self.q.size, 4, 4, 1, self.force.size])
        q, *squares, mass, force, slope = np.split(vector, sizes)
        M, work, slope = (each.reshape(2, 2) for each in (*squares, slope))
        return Averages(q.reshape(self.q.shape), M, work, float(mass[0]), force.reshape(-1, 2), slope)


class Evolution:
    """Density of two vectors at the nodes, on square cells in the moving frame.

    Parameters
    ----------
    limit : JointLimit
        Of two vectors.
    u, u_weight : ndarray, shapes (nodes, d1) and (nodes,)
    cells : int
        Cells n of each axis.
    half_width : float
        The axes cover [-half_width, half_width], in standard deviations.
    spread : float
        Factor on the frame at the start. By any but 1 it is not that of the law, which then moves in it.

    Raises
    ------
    DegenerateError
        If the vectors have no density in the plane at the start.
    """

    def __init__(
        self,
        limit: JointLimit,
        u: FloatArray,
        u_weight: FloatArray,
        cells: int,
        half_width: float,
        spread: float = 1.0,
    ) -> None:
        self.u, self.u_weight = u, u_weight
        self._limit, self._later = limit, list(limit.stretches)
        self.edges = np.linspace(-half_width, half_width, cells + 1)
        self.axis = 0.5 * (self.edges[1:] + self.edges[:-1])
        self.h = float(self.edges[1] - self.edges[0])
        self._lanes = lanes_for(len(u))
        self._blocks = -(-len(u) // self._lanes)
        q, M = limit.initial_q, limit.initial_M
        self.time, noise = 0.0, check_plane(limit)
        self.frame = Frame(u @ q, spread * first_factor(M - q.T @ q, noise))
        law = np.exp(-0.5 * (spread * self.axis) ** 2)
        P = np.outer(law, law) / (law.sum() * self.h) ** 2
        self._P: FloatArray = np.tile(np.repeat(P.ravel(), self._lanes), self._blocks)
        self._first, self._second = np.empty_like(self._P), np.empty_like(self._P)
        self._scratch = np.empty(2 * cells * self._lanes)
        self._history: list[tuple[float, FloatArray]] = []
        self._enter()

    @property
    def density(self) -> FloatArray:
        """Density of x given u, shape (nodes, n, n)."""
        n = len(self.axis)
        P = self._P.reshape(self._blocks, n, n, self._lanes).transpose(0, 3, 1, 2)
        return np.ascontiguousarray(P.reshape(-1, n, n)[: len(self.u)])

    def step(self, time: float) -> None:
        """Advance to a time, not beyond a corner.

        Raises
        ------
        BlowUpError
            If the solution is no longer finite, or its vectors have no density in the plane.
        """
        dt = time - self.time
        if len(self._history) == 1:
            self._predict(dt)
        middle = self._extrapolated(self.time + 0.5 * dt)
        self._advance(middle, time)
        # Coefficients are extrapolated from three steps to the midpoint of the next.
        self._history = [*self._history[-2:], (time, self.averages.vector)]
        self._check()
        while self._later and time >= self._later[0].start:
            self._enter()

    def _enter(self) -> None:
        """Begin the next stretch of time: nothing is extrapolated across a corner."""
        self._stretch, *self._later = self._later
        self._prior = self._stretch.prior
        self._potential = compile_loop(potential_of(self._prior.functions))
        self.averages = self._averages()
        self._history = [(self.time, self.averages.vector)]

    def _predict(self, dt: float) -> None:
        """Extrapolate over the first step by taking it twice: from the coefficients at its start, then for good."""
        kept = self.time, self.frame, self.averages, self._P.copy()
        self._advance(self.averages, self.time + dt)
        change = self.averages.vector - kept[2].vector
        self.time, self.frame, self.averages, self._P = kept
        self._history.insert(0, (self.time - dt, self.averages.vector - change))

    def _extrapolated(self, time: float) -> Averages:
        """Averages at a time by the polynomial through those of the last steps."""
        times = np.array([known for known, _ in self._history])
        total = np.zeros_like(self._history[0][1])
        for place, (known, vector) in enumerate(self._history):
            others = np.delete(times, place)
            total += np.prod((time - others) / (known - others)) * vector
        return self.averages.like(total)

    def _advance(self, middle: Averages, time: float) -> None:
        """Take a step with the coefficients at its midpoint."""
        dt = time - self.time
        drift = self._drift(middle, self.time + 0.5 * dt)
        frame = self.frame.advanced(drift, 0.5 * dt)
        self._fill_potentials(frame)
        if drift.moves:
            self._diffuse(frame, drift, dt)
        self.time, self.frame = time, self.frame.advanced(drift, dt)
        self.averages = self._averages()

    def _drift(self, now: Averages, time: float) -> Drift:
        """Coefficients of the motion of the weights."""
        q, M, pull, words = now.q, now.M, self._stretch.pull_at(time), self._limit.words
        check_regular(self.time, M - q.T @ q, words.given_u, words.vector)
        of_features, L, noise = self._stretch.motion(time, q, M, now.work)
        parts = pull * now.force, pull * now.slope, pull * self._prior.strength
        drift = Drift(self.u @ of_features.T, L, noise, *parts)
        if drift.moves:
            check_regular(self.time, noise, "Lambda", words.vector)
        return drift

    def _fill_potentials(self, frame: Frame) -> None:
        """Potentials Phi of unit strength at all cells, in a frame."""
        for k, out in enumerate((self._first, self._second)):
            mean = self._padded(frame.mean[:, k])
            fill_function(self._potential, mean, frame.S[k], self.axis, out, self._blocks, self._lanes)

    def _padded(self, values: FloatArray) -> FloatArray:
        """Numbers of all lanes, of which the last repeat the last node."""
        return np.concatenate([values, np.repeat(values[-1:], self._blocks * self._lanes - len(values))])

    def _diffuse(self, frame: Frame, drift: Drift, dt: float) -> None:
        """Symmetric product of steps along the directions."""
        inverse = np.linalg.inv(frame.S)
        try:
            rho, directions = selling(0.5 * inverse @ drift.Lambda @ inverse.T)
        except ValueError as error:
            raise DegenerateError(self.time, ONE_DIRECTION) from error
        if np.abs(directions).max() > max(2, 0.25 * len(self.axis)):  # beyond it neighbours are too far from each other
            raise DegenerateError(self.time, ONE_DIRECTION)
        used = [s for s in range(3) if rho[s] > 0]
        for s in used[:-1]:
            self._sweep(frame, drift, rho[s], directions[s], 0.5 * dt)
        self._sweep(frame, drift, rho[used[-1]], directions[used[-1]], dt)
        for s in used[-2::-1]:
            self._sweep(frame, drift, rho[s], directions[s], 0.5 * dt)

    def _sweep(self, frame: Frame, drift: Drift, rho: float, e: FloatArray, dt: float) -> None:
        """Step along one direction."""
        v = 2.0 * self.h * np.linalg.solve(drift.Lambda, frame.S @ e)
        alpha = -self.h * e + drift.slope.T @ v
        beta = self._padded(drift.force @ v)
        changes, steepest = self.h * (frame.S @ e), self.h * np.abs(frame.S).max(axis=1)
        signs = np.full(2, -1.0)
        c = np.empty(2)
        values = [self._first, self._second]
        for k in range(2):
            # Along a direction that hardly changes a coordinate, the force at the cells takes the place of differences
            # of the potential.
            if abs(changes[k]) >= 0.1 * steepest[k]:
                c[k] = -drift.pull * v[k] / changes[k]
            else:
                values[k], signs[k] = self._forces(frame, k), 1.0
                c[k] = -0.5 * drift.pull * v[k]
        k_step = rho * dt / (2.0 * self.h**2)
        sweep(
            self._P, *values, signs, beta, alpha, c, k_step, e, self.axis, self._scratch, self._blocks, self._lanes
        )  # fmt: skip

    def _forces(self, frame: Frame, k: int) -> FloatArray:
        """Mean of phi_k of unit strength over the extent of a cell, by differences of the potential."""
        reach = 0.5 * self.h * float(np.abs(frame.S[k]).max())
        ends = []
        for shift in (reach, -reach):
            out, mean = np.empty_like(self._P), self._padded(frame.mean[:, k] + shift)
            fill_function(self._potential, mean, frame.S[k], self.axis, out, self._blocks, self._lanes)
            ends.append(out)
        return np.asarray((ends[0] - ends[1]) / (2.0 * reach))

    def _averages(self) -> Averages:
        """Averages over the current density."""
        frame, n = self.frame, len(self.axis)
        self._fill_potentials(frame)
        steeper = np.abs(frame.S).argmax(axis=1)
        inverse = 1.0 / (2.0 * self.h * frame.S[[0, 1], steeper])
        sums = np.empty(self._blocks * SUMS * self._lanes)
        strides = np.where(steeper == 0, n, 1)
        sum_up(
            self._P, self._first, self._second, strides, inverse, self.axis, sums, self._blocks, self._lanes
        )  # fmt: skip
        rows = sums.reshape(self._blocks, SUMS, self._lanes).transpose(1, 0, 2).reshape(SUMS, -1)[:, : len(self.u)]
        rows = rows * self.h**2
        mass = rows[0]
        x = rows[1:3].T
        weight = self.u_weight
        S = frame.S
        xx = rows[[3, 4, 4, 5]].T.reshape(-1, 2, 2)
        force = self._prior.strength * rows[6:8].T
        force_x = self._prior.strength * rows[8:12].T.reshape(-1, 2, 2)
        w = mass[:, None] * frame.mean + x @ S.T
        mixed = np.einsum("n,nk,nl", weight, frame.mean, x @ S.T)
        ww = np.einsum("n,nk,nl", weight * mass, frame.mean, frame.mean) + mixed + mixed.T
        ww += S @ np.einsum("n,nij", weight, xx) @ S.T
        work = np.einsum("n,nl,nk->kl", weight, force, frame.mean) + np.einsum("n,nlj,kj->kl", weight, force_x, S)
        slope = np.einsum("n,nkj->kj", weight, force_x - force[:, :, None] * x[:, None, :])
        return Averages((self.u * weight[:, None]).T @ w, ww, work, float(weight @ mass), force, slope)

    def _check(self) -> None:
        norms, kept = np.diag(self.averages.M), self._limit.kept
        free = np.isnan(kept)
        far = np.where(free, norms > LONGEST**2, np.abs(norms - kept) > 0.5 * kept)
        if far.any() or not np.all(np.isfinite(self.averages.vector)):
            conserved = " and ".join(dict.fromkeys(f"{norm:.4g}" for norm in kept))
            where = "infinite in finite time" if free.any() else f"where the dynamics conserves {conserved}"
            raise BlowUpError(
                self.time,
                f"E[w^2] = {norms[0]:.4g} and {norms[1]:.4g} in the density, {where}",
                f"{self._limit.words.slower} (or raise model.batch_size), or raise density.steps and density.cells",
            )


REMEDY = 'set density.scheme = "particles"'


def check_plane(limit: JointLimit) -> FloatArray:
    """Lambda at the start, of vectors that have a density in the plane.

    Raises
    ------
    DegenerateError
        If they have none.
    """
    q, M, words = limit.initial_q, limit.initial_M, limit.words
    check_regular(0.0, M - q.T @ q, words.given_u, words.vector)
    noise = limit.stretches[0].noise_at(q, M)
    check_regular(0.0, noise, "Lambda", words.vector)
    return noise


def check_regular(time: float, matrix: FloatArray, what: str, vector: str) -> None:
    """Refuse vectors without a density in the plane, as a matrix of theirs is singular.

    Raises
    ------
    DegenerateError
    """
    values = np.linalg.eigvalsh(matrix) if np.isfinite(matrix).all() else np.full(2, np.nan)
    if not values[0] > 1e-10 * values[1]:
        raise DegenerateError(
            time,
            f"{what} has the eigenvalues {values[0]:.3g} and {values[1]:.3g}: one {vector} is a function of the "
            "other, and the two have no density in the plane",
        )
