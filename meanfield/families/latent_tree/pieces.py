"""Pieces of a gradient flow on which the same nodes are active, and what happens where one ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import BlowUpError
from meanfield.families.latent_tree.initial import IMAGINARY_STEP
from meanfield.families.latent_tree.tables import Gates, Tables
from meanfield.families.latent_tree.weights import Motion, Weights
from meanfield.numerics.moving_averages import average_along
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray

WRONG_SIDE = 1e-11
"""Size of a pre-activation of the wrong sign, relative to the largest, at which its node changes; rounding is less."""

MOST_SLIDING = 12
"""Largest number of nodes that slide at the same time."""

SHORT_PIECE, MOST_SHORT_PIECES = 1e-9, 100
"""Length of a short piece, relative to the time that has passed, and largest number of short pieces in a row."""


@dataclass(frozen=True)
class Surface:
    """Configurations for which a node has the same pre-activation, which is 0 while it slides.

    Parameters
    ----------
    level, latent, node : int
        Place of the node, the level from 0 for the lowest.
    where : ndarray of bool, shape (configurations,)
    """

    level: int
    latent: int
    node: int
    where: NDArray[np.bool_]


class Pieces:
    """Gradient flow under way.

    Parameters
    ----------
    times : ndarray, shape (times,)
        Output times.
    tolerance : float
        Error of a step relative to the weights.
    motion : Motion, optional
        How weights move down a gradient, in place of the motion of the problem.
    average_rate : float, optional
        Rate of a moving average of the weights that is followed, too.
    momentum_rate : float, optional
        Rate at which velocities are forgotten, along which weights move then. Velocities do not jump where a node
        opens or closes, so that each that reaches 0 crosses it.
    """

    def __init__(
        self,
        tables: Tables,
        start: Weights,
        times: FloatArray,
        tolerance: float,
        motion: Motion | None = None,
        average_rate: float | None = None,
        momentum_rate: float | None = None,
    ) -> None:
        self.tables = tables
        self.like = start
        self._stretches = InTime(tables.problem).stretches(float(times[-1]))
        self._look(float(times[0]))
        self._motion = tables.problem.motion if motion is None else motion
        self.time = float(times[0])
        self.changes = 0
        self.slides = 0
        self._times, self._number, self._b = times, len(start.vector), momentum_rate
        self._y = np.append(start.vector, np.zeros(self._number if momentum_rate is not None else 0))
        """Weights, and behind them velocities that last."""
        self._size = max(float(np.abs(self._y).max()), 1e-300)
        self._tolerance = Tolerance(tolerance, 1e-3 * tolerance * self._size)
        self.states = np.full((len(times), self._number), np.nan)
        """Weights at the output times, NaN where they were not reached, shape (times, weights)."""
        self.states[0] = start.vector
        self._average_rate, self._average = average_rate, start.vector
        self.averages = self.states.copy() if average_rate is not None else None
        """Averages at the output times in the same way, where they are followed."""
        self._gates: Gates = tables.forward(start).gates
        self._short = 0
        self._sliding: list[Surface] = []
        self._slopes = np.zeros(0)

    @property
    def pattern(self) -> tuple[FloatArray, Gates, list[Surface]]:
        """Weights, slopes of activations, and the surfaces on which nodes slide, at the time that was reached."""
        return self._y, self._gates, self._sliding

    def follow(self, until: float = np.inf) -> None:
        """Follow the flow until a node changes, or to the last output time, or that which is not later than another.

        Raises
        ------
        BlowUpError
            If weights become infinite, too many nodes slide, or nodes change without end.
        """
        behind = int(np.sum(self._times <= self.time))
        while self._stretches[0].stop <= self.time:
            self._enter()
        stretch = self._stretches[0]
        until = min(until, stretch.stop)
        ahead = self._times[behind:][self._times[behind:] <= until]
        ends = ahead if stretch.stop > until or stretch.stop in ahead else np.append(ahead, stretch.stop)
        self._start = [np.minimum(value, 0.0) for value in self._inside(self._y)]
        stops = [self._margin, self._growth] + ([self._held] if self._sliding else [])
        found = solve_ode(
            self._rate,
            self._y,
            np.concatenate([[self.time], ends]),
            self._tolerance,
            integrator="DOP853",
            stops=stops,
            dense=self.averages is not None,
        )
        self.states[behind : behind + len(ahead)] = found.values[1 : 1 + len(ahead), : self._number]
        if found.path is not None:
            self._follow_average(found.path, found.end_time, behind)
        self._short = self._short + 1 if found.end_time - self.time < SHORT_PIECE * found.end_time else 0
        self.time, self._y = found.end_time, found.end
        self._look(self.time)
        if self._short > MOST_SHORT_PIECES:
            # Just before weights become infinite they cross 0 between two times that are next to each other.
            if np.abs(self._velocity(self._y)).max() * SHORT_PIECE * self.time > np.abs(self._y).max():
                self._blow_up()
            raise BlowUpError(
                self.time,
                "nodes change from active to inactive and back without end",
                "use the method 'particles' with a small learning rate, or set time.stop to less",
            )
        if found.status != "complete" or found.stopped_by == 1:
            self._blow_up()
        if found.stopped_by == 0:
            self._change()
        elif found.stopped_by == 2:
            self._leave()

    def _follow_average(self, path: Path, end: float, behind: int) -> None:
        """Follow the average along a piece of the path from the time that was reached."""
        assert self.averages is not None
        assert self._average_rate is not None
        ahead = self._times[behind:][self._times[behind:] <= end]
        times = np.unique([self.time, *ahead, end])
        if len(times) > 1:
            weights: Path = lambda t: path(t)[: self._number]  # noqa: E731
            found = average_along(weights, self._average, times, (), self._average_rate, self._tolerance)
            self.averages[behind : behind + len(ahead)] = found[1 : 1 + len(ahead)]
            self._average = found[-1]

    def _look(self, t: float) -> None:
        """Take the loss and the momentum of a time."""
        problem = self._stretches[0].at(t)
        self._contrast, self._speed = problem.contrast, 1.0 / (1.0 - problem.training.momentum)

    def _enter(self) -> None:
        """Go on behind a corner, where nodes may slide no more."""
        del self._stretches[0]
        self._look(self.time)
        self._leave()

    def _blow_up(self) -> None:
        raise BlowUpError(
            self.time,
            f"the largest weight is {np.abs(self._y[: self._number]).max():.3g} and becomes infinite at this time",
            "set network.output_normalisation to true, or time.stop to less",
        )

    def _growth(self, t: float, y: FloatArray) -> float:
        # What is left of the time, until weights become infinite, is below its 1e-8th.
        return 1e5 - float(np.abs(y[: self._number]).max()) / self._size

    def _margin(self, t: float, y: FloatArray) -> float:
        """Negative once a node is on the other side of 0 than its gate says, for some configuration."""
        moved = (value - start for value, start in zip(self._inside(y), self._start, strict=True))
        return min((float(value.min()) for value in moved), default=1.0) + WRONG_SIDE

    def _held(self, t: float, y: FloatArray) -> float:
        """Negative once a sliding node would need a slope beyond 0 and 1."""
        self._look(t)
        slopes = self._solved(y)
        return float(np.minimum(slopes, 1.0 - slopes).min()) + WRONG_SIDE

    def _inside(self, y: FloatArray) -> list[FloatArray]:
        """Pre-activations times the sign that they should have, relative to the largest of the level."""
        before = self.tables.forward(self._weights(y), self._gates).before
        found = []
        for u, gate in zip(before, self._gates, strict=False):
            value = np.where(gate > 0.5, u, -u) / max(float(np.abs(u).max()), 1e-300)
            found.append(value)
        for surface in self._sliding:
            found[surface.level][surface.latent, surface.where, surface.node] = 1.0
        return found

    def _rate(self, t: float, y: FloatArray) -> FloatArray:
        """Velocity of the weights with the gates of this piece."""
        self._look(t)
        if self._sliding:
            self._solved(y)
        return self._velocity(y)

    def _velocity(self, y: FloatArray) -> FloatArray:
        weights = self._weights(y)
        _, gradient = self.tables.loss_and_gradient(weights, self._gates, self._contrast)
        force = self._motion.velocity(weights, gradient)
        if self._b is None:
            return self._speed * force
        velocity = y[self._number :]
        return np.append(self._motion.along(weights, self.like.like(velocity)), self._b * (force - velocity))

    def _weights(self, y: FloatArray) -> Weights:
        return self.like.like(y[: self._number])

    def _speeds(self, y: FloatArray, surfaces: list[Surface]) -> FloatArray:
        """Velocities of pre-activations on surfaces, with the gates as they are."""
        moving = self._weights(y + 1j * IMAGINARY_STEP * self._velocity(y))
        before = self.tables.forward(moving, self._gates).before
        found = [before[s.level][s.latent, s.where, s.node].imag[0] / IMAGINARY_STEP for s in surfaces]
        return np.array(found)

    def _set(self, surfaces: list[Surface], slopes: FloatArray) -> None:
        for surface, slope in zip(surfaces, slopes, strict=True):
            self._gates[surface.level][surface.latent, surface.where, surface.node] = slope

    def _change(self) -> None:
        """Change the gates of the nodes that have reached 0, or let them slide."""
        reached = self._reached()
        self.changes += len(reached)
        old = np.array([self._gates[s.level][s.latent, s.where, s.node][0] for s in reached])
        self._set(reached, 1.0 - old)
        if self._sliding:
            self._solved(self._y)
        through = np.sign(0.5 - old) * self._speeds(self._y, reached) > 0.0
        back = [s for s, crosses in zip(reached, through, strict=True) if not crosses]
        if back:
            self._slide(back)
        self._leave()

    def _reached(self) -> list[Surface]:
        """Surfaces that have been reached: configurations with the same pre-activation of the node are one."""
        found = []
        for level, (value, start) in enumerate(zip(self._inside(self._y), self._start, strict=True)):
            for latent, node in product(range(value.shape[0]), range(value.shape[2])):
                where = (value - start)[latent, :, node] < -0.5 * WRONG_SIDE
                if where.any():
                    found.append(Surface(level, latent, node, where))
        return found

    def _slide(self, surfaces: list[Surface]) -> None:
        """Let nodes slide along the surfaces that the flow from both sides leads to."""
        self.slides += len(surfaces)
        self._sliding = [*self._sliding, *surfaces]
        self._slopes = np.concatenate([self._slopes, np.full(len(surfaces), 0.5)])
        if len(self._sliding) > MOST_SLIDING:
            raise BlowUpError(
                self.time,
                f"{len(self._sliding)} pre-activations stay at 0, to which the flow leads from both sides, and at most "
                f"{MOST_SLIDING} are followed",
                "use the method 'particles' with a small learning rate, or set time.stop to less",
            )

    def _solved(self, y: FloatArray) -> FloatArray:
        """Set gates of sliding nodes to the slopes with which they stay, by Newton's method, and return these."""
        slopes = self._slopes.copy()
        for _ in range(30):  # steps of Newton's method
            self._set(self._sliding, slopes)
            speeds = self._speeds(y, self._sliding)
            jacobian = np.empty((len(slopes), len(slopes)))
            for k in range(len(slopes)):
                moved = slopes.copy()
                moved[k] += 1e-4  # speeds are polynomials in slopes, of the second degree where nodes are above others
                self._set(self._sliding, moved)
                jacobian[:, k] = (self._speeds(y, self._sliding) - speeds) / 1e-4
            if not np.isfinite(jacobian).all():  # which ends the integration
                return np.full(len(slopes), np.nan)
            step = np.linalg.lstsq(jacobian, -speeds, rcond=1e-12)[0]
            slopes = slopes + step
            if np.abs(step).max() < 1e-9:  # change of the slopes in the last step
                break
        self._slopes = slopes
        self._set(self._sliding, slopes)
        return slopes

    def _leave(self) -> None:
        """Let nodes go whose slope is beyond 0 or 1, which become inactive or active, and solve for the others anew."""
        while self._sliding:
            slopes = self._solved(self._y)
            gone = (slopes <= WRONG_SIDE) | (slopes >= 1.0 - WRONG_SIDE)
            if not gone.any():
                return
            leaving = [s for s, left in zip(self._sliding, gone, strict=True) if left]
            self._set(leaving, np.where(slopes[gone] > 0.5, 1.0, 0.0))
            self._sliding = [s for s, left in zip(self._sliding, gone, strict=True) if not left]
            self._slopes = slopes[~gone]
            self.changes += len(leaving)
