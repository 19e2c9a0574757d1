"""Search for the states of an update rule at rest, by Newton's method from many starts, and for what attracts.

No search can prove that it is complete. There is a witness where a constraint bounds what is free, R of one student on
the sphere or of orthonormal ones: noise points inwards at the border of the overlaps that vectors can have, so that by
Poincare and Hopf the indices sign det(-J) of all states add up to 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.families.update_rule.fixed_points.symmetries import SAME_STATE, Symmetries
from meanfield.families.update_rule.fixed_points.velocity import LEAST_ROOM, Velocity
from meanfield.families.update_rule.rates import State, packed
from meanfield.numerics.continuation import newton, slowed
from meanfield.numerics.growth_rates import FixedPoint, sorted_rates
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

TOLERANCE = 1e-11
"""Largest component of the velocity at rest, relative to its size."""

QUIET_STARTS = 24
"""Starts of Newton's method in succession that bring nothing new and end the search."""

MOST_STARTS = 12 * QUIET_STARTS
"""Largest number of starts."""

STAGES = (3e-2, 1e-4, 1e-6, 1e-8)
"""Speeds, relative to the size of the velocity, at which the end of a path is looked for by Newton's method."""

ARRIVAL = 0.2
"""Largest distance between the end of a path and the state at which it has arrived, in units of 1 plus its size."""


class RestingStates:
    """States at rest that a search finds, one of each set of images under symmetries.

    Parameters
    ----------
    velocity : Velocity
    symmetries : Symmetries

    Attributes
    ----------
    x : list of ndarray
        Free order parameters of each state.
    """

    def __init__(self, velocity: Velocity, symmetries: Symmetries) -> None:
        self.velocity, self.symmetries = velocity, symmetries
        self.x: list[FloatArray] = []
        self._images: list[FloatArray] = []
        self._points: list[FixedPoint] = []

    def add(self, x: FloatArray) -> int | None:
        """Number of a state, which is added if it is new; None if the velocity is not smooth there."""
        x = self.velocity.inside(x)
        point = fixed_point_at(self.velocity, x, len(self.x))
        if point is None:
            return None
        for number, known in enumerate(self._points):
            if self._same(x, point, number, known):
                return number
        self.x.append(x)
        self._points.append(point)
        self._images.append(self.symmetries.images(x))
        return len(self.x) - 1

    def _same(self, x: FloatArray, point: FixedPoint, number: int, known: FixedPoint) -> bool:
        """Whether a state is an image of a known one, or of one continuum with it."""
        scale = 1.0 + np.abs(x).max()
        marginal = "marginal" in (point.kind, known.kind)
        # Newton's method is less exact where the velocity is flat.
        if np.abs(self._images[number] - x).max(axis=1).min() <= (1e2 if marginal else 1.0) * SAME_STATE * scale:
            return True
        if point.kind != "marginal" or known.kind != "marginal":
            return False
        if self.symmetries.copies(x) == np.inf == self.symmetries.copies(self.x[number]):
            # Along a symmetry neither rates nor invariants change.
            one, other = (
                np.concatenate([self.symmetries.invariants(y), p.eigenvalues.real])
                for y, p in ((x, point), (self.x[number], known))
            )
            return bool(np.abs(one - other).max() <= 1e2 * SAME_STATE * scale)
        alike = point.unstable_directions == known.unstable_directions
        return alike and self.in_continuum(x, point) and self.in_continuum(self.x[number], known)

    def in_continuum(self, x: FloatArray, point: FixedPoint) -> bool:
        """Whether another state is close by, in a direction in which the velocity does not change."""
        slope = self.velocity.jacobian(x)
        _, flat, along = np.linalg.svd(slope)
        if flat[-1] > point.resolution:
            return False
        step = 0.05 * (1.0 + np.abs(x).max())
        for sign in (1.0, -1.0):
            beside = newton(self.velocity.equations, x + sign * step * along[-1], tolerance=TOLERANCE)
            if beside is not None and 0.5 * step < np.linalg.norm(self.velocity.inside(beside) - x) < 2.0 * step:
                return True
        return False

    def is_continuum(self, number: int) -> bool:
        """Whether a state is one of a continuum, by a symmetry or otherwise."""
        point = self._points[number]
        return point.kind == "marginal" and (
            self.symmetries.copies(point.q) == np.inf or self.in_continuum(point.q, point)
        )

    def search(self) -> None:
        """Add the states to which Newton's method leads, until many starts in succession bring nothing new."""
        quiet = 0
        with progress_bar(MOST_STARTS, "fixed points", "start") as bar:
            for number, start in enumerate(self._starts()):
                known = len(self.x)
                root = rest_from(self.velocity, start)
                if root is not None:
                    self.add(root)
                quiet = quiet + 1 if len(self.x) == known else 0
                bar.update()
                if number + 1 >= MOST_STARTS or (quiet >= QUIET_STARTS and self.index_sum in (1.0, None)):
                    break

    def _starts(self) -> Iterator[FloatArray]:
        """The start of the problem, arrangements of students along features, and random states, each made symmetric."""
        velocity, rng = self.velocity, np.random.default_rng(0)
        for start in (velocity.start[velocity.free], *velocity.arrangements()):
            yield start
            yield from self._symmetric(start, rng)
        while True:
            start = velocity.random(rng, 0.7)  # of logarithms of lengths: norms within a factor of 16
            yield start
            yield from self._symmetric(start, rng)

    def _symmetric(self, start: FloatArray, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Means of a start and an image, and of all its images; then with some students that are equal."""
        velocity = self.velocity
        y = velocity.embedded(start)
        alike = [0.5 * (y + self.symmetries.image(how, y))[velocity.free] for how in self.symmetries.generators]
        if alike:
            yield alike[rng.integers(len(alike))]
            yield self.symmetries.images(start).mean(axis=0)
        state = velocity.state(y)
        if len(state.Q) > 1:
            order = np.sort(rng.integers(len(state.Q), size=len(state.Q)))
            yield packed(State(state.R[order], state.Q[np.ix_(order, order)], state.v))[velocity.free]

    @property
    def index_sum(self) -> float | None:
        """Sum of the indices of all states, 1 if none is missing; None where it is not known."""
        system = self.velocity.system
        constraint = system.constraints[0][0] if len(system.constraints) == 1 else "none"
        bounded = constraint in ("gram_schmidt", "polar") or (constraint == "sphere" and system.students == 1)
        if not bounded or system.side or any(point.kind == "marginal" for point in self._points):
            return None
        if any(self.velocity.room(x) < LEAST_ROOM for x in self.x):  # where noise vanishes it does not point inwards
            return None
        indices = [(-1.0) ** point.unstable_directions for point in self._points]
        return float(np.dot(indices, [len(images) for images in self._images]))

    def attractor(self, start: FloatArray) -> int | None:
        """Number of the state that a start is attracted to; None if its path does not come to rest.

        A path may come so near to an unstable state that only rounding would take it away again. It leaves along the
        direction that grows fastest, as noise would make it do.
        """
        x, velocity = start, self.velocity
        for _ in range(4):  # states that a path may visit
            root = None
            for speed in STAGES:
                x = velocity.inside(slowed(velocity, x, speed * velocity.size, 1e4 / velocity.size))
                root = rest_from(velocity, x)
                if root is None:
                    continue
                root, scale = velocity.inside(root), 1.0 + np.abs(x).max()
                point = fixed_point_at(velocity, root, 0)
                if point is not None and point.verdict >= 0 and np.abs(x - root).max() <= ARRIVAL * scale:
                    return self.add(root)
            if root is None or np.abs(x - root).max() > ARRIVAL * scale:
                return None
            rates, directions = np.linalg.eig(velocity.jacobian(root))
            along = directions[:, np.argmax(rates.real)].real
            x = velocity.inside(root + 1e-3 * scale * np.copysign(1.0, along @ (x - root)) * along)
        return None

    @property
    def points(self) -> list[FixedPoint]:
        """The states in the order in which they were found."""
        return list(self._points)


def rest_from(velocity: Velocity, start: FloatArray) -> FloatArray | None:
    """State at rest by Newton's method from a start; None if it leads to none.

    Errors of averages may put a state that is on the border, such as perfect students, beyond it. The nearest overlaps
    that vectors have are then at rest to the accuracy of averages.
    """
    x = velocity.inside(start)
    root = newton(velocity.equations, x, (), TOLERANCE, velocity.values, velocity.inside)
    if root is not None:
        return root
    best = np.inf
    for _ in range(10):  # of Newton's steps, which end sooner unless they come closer
        values, slope = velocity.equations(x)
        size = np.abs(values).max()
        if size <= velocity.accuracy and velocity.room(x) < LEAST_ROOM:
            return x
        if not (size < best and np.isfinite(slope).all()):
            return None
        best, x = size, velocity.inside(x - np.linalg.lstsq(slope, values, rcond=None)[0])
    return None


def fixed_point_at(velocity: Velocity, x: FloatArray, orbit: int) -> FixedPoint | None:
    """Fixed point of a velocity with its growth rates; None if it is not smooth there."""
    slope = velocity.jacobian(x)
    if not np.isfinite(slope).all():
        return None
    resolution = 1e-6 * max(float(np.abs(slope).max()), np.finfo(float).tiny)  # errors of derivatives are below
    return FixedPoint(x, sorted_rates(np.linalg.eigvals(slope)), resolution, orbit)
