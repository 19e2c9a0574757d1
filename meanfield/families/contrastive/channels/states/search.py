"""Search for states of several channels at rest: Newton's method from many starts, and the attractors of random ones.

No search can prove that it is complete, but two channels have a witness that it is not. Noise points inwards wherever
K = M - q^T q is singular, but for channels that coincide, and the overlaps with K >= 0 are contractible. By Poincare
and Hopf the indices sign det(-J) of all states inside add up to 1 then, with those of coinciding channels from which no
perturbation 1 - |M_12| grows: a push inwards would move these inside, and the others out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from meanfield.families.contrastive.channels.states.field import (
    COINCIDING,
    ROOM_SHARE,
    SmoothField,
    arrangements,
    random_state,
    state_from_nothing,
)
from meanfield.families.contrastive.channels.states.symmetry import (
    Coincidence,
    Symmetries,
    coincidence_near,
    coincidences,
)
from meanfield.numerics.continuation import newton, slowed
from meanfield.numerics.growth_rates import FixedPoint, sorted_rates
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

TOLERANCE = 1e-11
"""Largest component of the velocity at rest, relative to its size."""

STAGES = (3e-2, 1e-4, 1e-6, 1e-8)
"""Speeds, relative to the size of the velocity, at which the end of a path is looked for by Newton's method."""

QUIET_STARTS = 100
"""Random starts of Newton's method in succession that bring nothing new and end the search."""

ARRIVAL_DISTANCE = 0.2
"""Largest distance between the end of a path and the state at which it has arrived."""


@dataclass(frozen=True)
class ChannelState(FixedPoint):
    """State of several channels at rest.

    Parameters
    ----------
    q : ndarray, shape (d1, d2)
        Overlaps of channels with features.
    eigenvalues : ndarray of complex, shape (n,)
        Eigenvalues of the Jacobian in q and the pairs of M, the one of the largest real part first.
    resolution : float
        Size below which rates count as zero.
    orbit : int
        Number of the state, which stands for all its images under symmetries.
    M : ndarray, shape (d2, d2)
        Overlaps of channels.
    copies : float
        Number of these images, itself included; infinite where features can be rotated.
    share : float
        Share of the random starts of order 1 that one of them attracts.
    limit_share : float
        Share of the starts from nothing, as N grows, that end at one of them.
    """

    M: FloatArray = field(default_factory=lambda: np.eye(1))
    copies: float = 1.0
    share: float = 0.0
    limit_share: float = 0.0


class ChannelStates:
    """All states at rest that a search finds, one of each set of images under symmetries.

    Parameters
    ----------
    field : SmoothField
    symmetries : Symmetries, optional
        Its symmetries, if they are known already.

    Attributes
    ----------
    x : list of ndarray
        Overlaps of each state in one vector.
    """

    def __init__(self, velocity: SmoothField, symmetries: Symmetries | None = None) -> None:
        self.field, self.symmetries = velocity, symmetries or Symmetries(velocity)
        self.x: list[FloatArray] = []
        self._rates: list[np.ndarray[tuple[int], np.dtype[np.complex128]]] = []
        self._indices: list[float] = []

    def add(self, x: FloatArray) -> int:
        """Number of a state, which is added if it is new."""
        for number, known in enumerate(self.x):
            if self.symmetries.same(x, known):
                return number
        self.x.append(x)
        slope = self.field.jacobian(x)
        self._rates.append(sorted_rates(np.linalg.eigvals(slope)))
        outside = abs(x[-1]) >= COINCIDING and slope[-1, -1] > 0.0
        marginal = np.abs(self._rates[-1].real).min() <= self.field.resolution
        self._indices.append(0.0 if outside else np.nan if marginal else float(np.sign(np.linalg.det(-slope))))
        return len(self.x) - 1

    def search(self, space: Coincidence) -> None:
        """Add the states of a subspace to which Newton's method leads from simple arrangements."""
        tried = set()
        for q in arrangements(self.field.features, space.groups):
            M = q.T @ q
            np.fill_diagonal(M, 1.0)
            start = space.packed(q, M)
            key = tuple(self.symmetries.representative(space.embedded(start)).round(9))
            if key not in tried:
                tried.add(key)
                root = at_rest(space, start)
                if root is not None:
                    self.add(root)

    def search_at_random(self, rng: np.random.Generator) -> None:
        """Add the states to which Newton's method leads from random starts, until many in succession bring nothing new.

        Only where indices tell what is missing: of more channels each start takes seconds.
        """
        if self.index_sum is None:
            return
        space, quiet = next(coincidences(self.field)), 0
        for _ in range(6 * QUIET_STARTS):  # that many where indices do not add up
            if quiet >= QUIET_STARTS and self.index_sum in (1.0, None):
                break
            known = len(self.x)
            root = at_rest(space, space.restricted(random_state(self.field, rng)))
            if root is not None:
                self.add(root)
            quiet = quiet + 1 if len(self.x) == known else 0

    @property
    def index_sum(self) -> float | None:
        """Sum of the indices of all states, 1 if none is missing; None where it is not known, as for a continuum."""
        copies = [self.symmetries.copies(x) for x in self.x]
        if self.field.channels != 2 or not np.isfinite([*copies, *self._indices]).all():
            return None
        return float(np.dot(copies, self._indices))

    def attractor(self, start: FloatArray) -> int | None:
        """Number of the state that a start is attracted to; None if the path does not come to rest.

        A path may come so near to an unstable state that only rounding would take it away again, or nothing where what
        grows is 0 by symmetry. It leaves along the direction that grows fastest, as noise would make it do.
        """
        x = start
        for _ in range(4):  # states that a path may visit
            root = None
            for speed in STAGES:
                x = self._slowed(x, speed)
                near = coincidence_near(self.field, x)
                for space in (near,) if near.alone else (near, next(coincidences(self.field))):
                    root = at_rest(space, space.restricted(x))
                    if root is not None and self._arrives(x, root):
                        return self.add(root)
            if root is None or np.abs(x - root).max() > ARRIVAL_DISTANCE:
                return None
            rates, directions = np.linalg.eig(self.field.jacobian(root))
            along = directions[:, np.argmax(rates.real)].real
            x = (1.0 - 1e-3) * root + 1e-3 * np.copysign(ROOM_SHARE, along @ (x - root)) * along
        return None

    def _slowed(self, x: FloatArray, speed: float) -> FloatArray:
        """End of the path from x at a speed relative to the size."""
        return slowed(self.field, x, speed * self.field.size, 1e4 / self.field.size)

    def _arrives(self, x: FloatArray, root: FloatArray) -> bool:
        """Whether a path at x ends at a state: it is not unstable, and near enough for x to move straight to it."""
        away = x - root
        if np.abs(away).max() > ARRIVAL_DISTANCE:
            return False
        slope = self.field.jacobian(root)
        if np.linalg.eigvals(slope).real.max() > self.field.resolution:
            return False
        velocity = self.field(x)
        # The velocity is nearly linear in the distance.
        return bool(np.linalg.norm(velocity - slope @ away) <= 0.3 * np.linalg.norm(velocity) + TOLERANCE)

    def states(self) -> list[ChannelState]:
        """The states in the order in which they were found."""
        found = []
        for number, (x, rates) in enumerate(zip(self.x, self._rates, strict=True)):
            q, M = self.field.unpacked(x)
            found.append(ChannelState(q, rates, self.field.resolution, number, M, self.symmetries.copies(x)))
        return found

    def resting_overlap(self) -> FloatArray:
        """Overlaps M of channels that have learnt nothing, where the noise that they share leaves them."""
        end = self._slowed(np.zeros(self.field.unknowns), STAGES[-1])
        return self.field.unpacked(end)[1]


def at_rest(space: Coincidence, start: FloatArray) -> FloatArray | None:
    """Overlaps of all channels at rest, by Newton's method from the unknowns of a subspace; None if it finds none."""
    root = newton(space.equations, start, tolerance=TOLERANCE)
    return None if root is None or space.room(root) < 1e-8 else space.embedded(root)  # channels coincide there


def find_channel_states(
    velocity: SmoothField, starts: int, seed: int, rates: FloatArray | None = None
) -> tuple[list[ChannelState], float | None]:
    """All states at rest that the search finds, one of each set of images under symmetries, and the sum of indices.

    Parameters
    ----------
    starts : int
        Number of random starts of order 1, uniform on the unit sphere in d1 + d2 dimensions, and of those from nothing;
        see `random_state` and `state_from_nothing`.
    seed : int
        Seed of the random starts.
    rates : ndarray, shape (d1,), optional
        Growth rates of overlaps with each feature where nothing is learnt; without them nothing starts there.

    Notes
    -----
    Source: several_channels.md, section 6.
    """
    found = ChannelStates(velocity)
    rng = np.random.default_rng(seed)
    reached: list[int | None] = []
    limit: list[int | None] = []
    with progress_bar(2 * starts + 1, "fixed points", "start") as bar:
        for space in coincidences(velocity):
            found.search(space)
        found.search_at_random(np.random.default_rng([seed, 1]))
        bar.update()
        for _ in range(starts):
            reached.append(found.attractor(random_state(velocity, rng)))
            bar.update()
        if rates is not None:
            M = found.resting_overlap()
            for _ in range(starts):
                limit.append(found.attractor(state_from_nothing(velocity, rates, M, rng)))
                bar.update()
    states = []
    for state in found.states():
        q, M = velocity.unpacked(found.symmetries.representative(found.x[state.orbit]))
        shares = [ends.count(state.orbit) / starts for ends in (reached, limit)]
        states.append(replace(state, q=q, M=M, share=shares[0], limit_share=shares[1]))
    states.sort(key=lambda state: (-state.share, state.eigenvalues[0].real))
    return [replace(state, orbit=orbit) for orbit, state in enumerate(states)], found.index_sum
