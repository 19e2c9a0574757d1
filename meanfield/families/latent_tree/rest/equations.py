"""Equations of networks at rest, with activations that are held at their kinks, and growth rates of deviations.

Without output normalisation and biases the losses `simple` and `beta` are homogeneous: weights grow without bound, and
at rest are their directions, where the gradient is along the weights (latent_tree.md, section 3.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.initial import IMAGINARY_STEP
from meanfield.families.latent_tree.pieces import Surface
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Gates, Tables
from meanfield.families.latent_tree.weights import Array, Motion, Weights
from meanfield.numerics.continuation.roots import newton
from meanfield.typing import FloatArray


def has_directions(problem: Problem) -> bool:
    """Whether the loss is homogeneous in the weights, so that only their direction comes to rest."""
    return problem.loss.kind in ("simple", "beta") and not problem.normalisation.active


class Direction(Motion):
    """The flow of the direction of all weights, at their length 1: down the gradient, and back to the sphere."""

    def velocity(self, weights: Weights, gradient: Weights) -> FloatArray:
        """See `Motion.velocity`."""
        y, g = weights.vector, gradient.vector
        return np.asarray((g * y).sum() / (y * y).sum() * y - g)


class State(NamedTuple):
    """Network at rest.

    Parameters
    ----------
    y : ndarray, shape (weights,)
    gates : Gates
        With slopes between 0 and 1 where activations are held at their kinks.
    held : list of Surface
    rates : ndarray
        Growth rates of small deviations along the kinks, the largest first.
    orbit : int
        Dimension of what rotations of outputs and weights that change no output make of it.
    dead : int
        Number of nodes that no configuration activates, or whose weights are 0.
    outputs : ndarray, shape (configurations, configurations)
        Products of outputs, which are the same for all states of an orbit.
    """

    y: FloatArray
    loss: float
    gates: Gates
    held: list[Surface]
    rates: FloatArray
    orbit: int
    dead: int
    outputs: FloatArray

    @property
    def resolution(self) -> float:
        """Size of growth rates that are 0."""
        return 1e-6 * max(float(np.abs(self.rates).max(initial=0.0)), 1e-12)  # accuracy of differences

    @property
    def growing(self) -> int:
        """Number of directions in which deviations grow."""
        return int((self.rates > self.resolution).sum())

    @property
    def flat(self) -> int:
        """Number of directions in which they neither grow nor decay."""
        return int((np.abs(self.rates) <= self.resolution).sum())

    def is_like(self, other: State) -> bool:
        """Whether it is of the same orbit as another, as far as outputs and numbers tell."""
        counts = (self.growing, self.dead, len(self.held)) == (other.growing, other.dead, len(other.held))
        # Roots are far more accurate, and outputs of different states far more different.
        return counts and bool(np.abs(self.outputs - other.outputs).max() < 1e-5)


@dataclass(frozen=True)
class Equations:
    """Equations of one problem, for weights like some."""

    tables: Tables
    like: Weights

    @cached_property
    def directions(self) -> bool:
        """See `has_directions`."""
        return has_directions(self.tables.problem)

    @property
    def motion(self) -> Motion:
        """Flow whose states at rest are wanted; a metric that is another, of many nodes, has the same ones."""
        return Direction() if self.directions else Motion()

    def scaled(self, y: FloatArray) -> FloatArray:
        """Weights, of length 1 where their direction is wanted."""
        return y / np.linalg.norm(y) if self.directions else y

    def field(self, y: FloatArray, gates: Gates | None = None) -> FloatArray:
        """Velocity of the flow."""
        weights = self.like.like(self.scaled(y))
        return np.asarray(self.motion.velocity(weights, self.tables.loss_and_gradient(weights, gates)[1]))

    def slope(self, y: FloatArray, gates: Gates | None = None) -> FloatArray:
        """Jacobian of the velocity with fixed gates, which is symmetric at rest: the gradient itself is exact."""
        y = self.scaled(y)
        gates = self.tables.forward(self.like.like(y)).gates if gates is None else gates
        step = 1e-6 * float(np.abs(y).max())
        rows = [(self.field(y + e, gates) - self.field(y - e, gates)) / (2.0 * step) for e in step * np.eye(len(y))]
        return np.stack(rows, axis=1)

    def heights(self, y: FloatArray, gates: Gates, held: list[Surface]) -> tuple[FloatArray, FloatArray]:
        """Pre-activations that are to be 0, and their derivatives, shape (surfaces, weights)."""
        values = [self._height(y, gates, surface).real for surface in held]
        moved = y + 1j * IMAGINARY_STEP * np.eye(len(y))
        slopes = [[self._height(row, gates, surface).imag / IMAGINARY_STEP for row in moved] for surface in held]
        return np.array(values).reshape(len(held)), np.array(slopes).reshape(len(held), len(y))

    def _height(self, y: Array, gates: Gates, surface: Surface) -> complex:
        before = self.tables.forward(self.like.like(y), gates).before[surface.level]
        return complex(before[surface.latent, surface.where, surface.node][0])

    def polished(self, y: FloatArray, gates: Gates, held: list[Surface], scale: float) -> State | None:
        """State near a network, by Newton's method with fixed patterns; None if there is none with these patterns.

        Parameters
        ----------
        scale : float
            Size of velocities that is not small.
        """
        gates = [gate.copy() for gate in gates]
        count = len(y)

        def opened(x: FloatArray) -> Gates:
            for surface, slope in zip(held, x[count:], strict=True):
                gates[surface.level][surface.latent, surface.where, surface.node] = slope
            return gates

        def equations(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            now, y = opened(x), x[:count]
            height, normal = self.heights(y, now, held)
            F = self.field(y, now) / scale
            by_slope = []
            for k in range(len(held)):
                sides = [self.field(y, opened(x + step * np.eye(len(x))[count + k])) for step in (1e-3, -1e-3)]
                by_slope.append((sides[0] - sides[1]) / 2e-3 / scale)  # linear in slopes, or nearly
            opened(x)
            left = np.concatenate([self.slope(y, now) / scale, normal])
            right = np.concatenate([np.reshape(by_slope, (len(held), count)).T, np.zeros((len(held),) * 2)])
            return np.concatenate([F, height]), _without_flat(np.concatenate([left, right], axis=1))

        slopes = [gates[s.level][s.latent, s.where, s.node][0] for s in held]
        x = newton(equations, np.concatenate([self.scaled(y), slopes]), tolerance=1e-11)
        if x is None:
            return None
        return self.state(self.scaled(x[:count]), opened(x), held) if self._fits(x[:count], opened(x), held) else None

    def _fits(self, y: FloatArray, gates: Gates, held: list[Surface]) -> bool:
        """Whether nodes are active where the gates say so, but for those that are held."""
        own = self.tables.forward(self.like.like(y), gates)
        for level, (u, gate) in enumerate(zip(own.before, gates, strict=False)):
            rounding = 1e-9 * max(float(np.abs(u).max()), 1e-300)  # of pre-activations that are 0
            wrong = np.where(gate > 0.5, u < -rounding, u > rounding)
            for s in held:
                if s.level == level:
                    wrong[s.latent, s.where, s.node] = not 0.0 <= gate[s.latent, s.where, s.node][0] <= 1.0
            if wrong.any():
                return False
        return True

    def state(self, y: FloatArray, gates: Gates, held: list[Surface]) -> State:
        """State at rest with its rates."""
        weights = self.like.like(y)
        alive = [gate.max(axis=1) > 0.0 for gate in gates[: self.like.shape.depth - 1]]
        if self.directions:  # weights of nodes that others outgrow are 0 there
            inside = [np.sqrt((W**2).sum(axis=(-2, -1))) for W in weights.W[:-1]]
            # all weights together have the length 1
            alive = [some & (length > 1e-6) for some, length in zip(alive, inside, strict=True)]
            gates = [gate * some[:, None, :] for gate, some in zip(gates, alive, strict=False)]
        held = [s for s in held if alive[s.level][s.latent, s.node]]
        _, normal = self.heights(y, gates, held)
        along = np.linalg.svd(normal)[2][np.linalg.matrix_rank(normal) if len(held) else 0 :]
        if self.directions:
            along = along - np.outer(along @ y, y)
            along = np.linalg.svd(along)[2][: len(along) - 1]
        J = self.slope(y, gates)
        rates = np.linalg.eigvalsh(along @ (0.5 * (J + J.T)) @ along.T)[::-1]
        return State(
            y,
            self.tables.loss_and_gradient(weights, gates)[0],
            gates,
            held,
            rates,
            self._orbit(y, gates, normal),
            int(sum((~level).sum() for level in alive)),
            self._outputs(weights),
        )

    def _orbit(self, y: FloatArray, gates: Gates, normal: FloatArray) -> int:
        """Dimension of the networks that compute the same up to what the loss does not see, and rest as well.

        Outputs may be rotated, and have any length where they are normalised. Where weights themselves come to rest,
        those that change no output are free: scales of nodes, and weights that only inactive nodes see.
        """
        weights, number = self.like.like(y), self.like.like(np.arange(len(y)))
        parts = [(weights.W[-1][0], number.W[-1][0])]
        if weights.b:
            parts.append((weights.b[-1][0], number.b[-1][0]))
        rows = [np.zeros(len(y))]
        for i, j in combinations(range(len(weights.W[-1][0])), 2):
            turned = np.zeros(len(y))
            for value, place in parts:
                turned[place[i].ravel()], turned[place[j].ravel()] = value[j].ravel(), -value[i].ravel()
            rows.append(turned)
        if not self.directions:
            output = self.tables.problem.normalisation
            if output.active and output.epsilon == 0.0:
                longer = np.zeros(len(y))
                for value, place in parts:
                    longer[place.ravel()] = value.ravel()
                rows.append(longer)
            J = np.array([self._last(row, gates).imag.ravel() for row in y + 1j * IMAGINARY_STEP * np.eye(len(y))])
            left, size, _ = np.linalg.svd(np.column_stack([J / IMAGINARY_STEP, normal.T]))  # along kinks
            rows += list(left[:, int((size > 1e-9 * size.max(initial=1e-300)).sum()) :].T)  # rounding
        return int(np.linalg.matrix_rank(np.array(rows), tol=1e-9))

    def _last(self, y: Array, gates: Gates) -> Array:
        """Last layer for all configurations, or what children add to it."""
        found = self.tables.forward(self.like.like(y), gates)
        return found.before[-1] if self.tables.whole else found.parts[-1]

    def _outputs(self, weights: Weights) -> FloatArray:
        """Products of outputs for some configurations, or of their directions where outputs are normalised."""
        inputs = self.tables.inputs
        some = np.unique(np.linspace(0, len(inputs) - 1, 256).astype(int))  # enough to tell states apart
        y = self.tables.problem.normalisation.value(network.forward(weights, inputs[some]).last)
        return np.asarray(y @ y.T)


def _without_flat(slope: FloatArray) -> FloatArray:
    """Jacobian without directions whose slope is rounding of differences, along which Newton's method need not go."""
    left, size, right = np.linalg.svd(slope, full_matrices=False)
    kept = np.where(size > 1e-7 * size.max(initial=0.0), size, 0.0)
    return np.asarray((left * kept) @ right)
