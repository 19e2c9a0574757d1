"""Zeros of a field in planes that symmetries leave as they are: by scattered starts, known ones deflated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from meanfield.families.contrastive.fixed_points.search import line_roots
from meanfield.families.contrastive.fixed_points.symmetries import SAME_ZERO
from meanfield.numerics.continuation import newton
from meanfield.typing import FloatArray

Rates = Callable[[FloatArray], FloatArray]


class Plane:
    """Field in a plane of a face, in variables in which Newton's method finds its zeros.

    Parameters
    ----------
    face : callable
        q -> b(q) of a face, in units of the size of the field, shapes (..., n).
    basis : ndarray, shape (n, dimensions)
        Orthonormal vectors that span the plane, which the field does not leave.
    powers : ndarray, shape (dimensions,)
        Powers p of the variables y^p of coordinates of which y > 0 alone is searched, by the relative rates b/y: 2
        where the field is odd in it. 0 for coordinates that are searched as they are.
    """

    def __init__(self, face: Rates, basis: FloatArray, powers: FloatArray) -> None:
        self._face, self.basis = face, basis
        self._relative, self._powers = powers > 0.0, np.maximum(powers, 1.0)
        self.dimensions = basis.shape[1]

    def overlaps(self, x: FloatArray) -> FloatArray:
        """Points of the face of these variables, shape (..., n)."""
        return self.along(np.where(self._relative, np.maximum(x, 0.0) ** (1.0 / self._powers), x))

    def variables(self, q: FloatArray) -> FloatArray:
        """Variables of points of the plane, shape (..., dimensions)."""
        y = q @ self.basis
        return np.asarray(np.where(self._relative, np.abs(y) ** self._powers, y))

    def rates(self, x: FloatArray) -> FloatArray:
        """Rates that vanish at zeros; NaN outside the ball and where a positive coordinate is not."""
        q = self.overlaps(x)
        y = q @ self.basis
        inside = np.all((x > 0.0) | ~self._relative, axis=-1)
        rates = self._face(q) @ self.basis / np.where(self._relative & (y != 0.0), y, 1.0)
        return np.asarray(np.where(inside[..., None], rates, np.nan))

    def equations(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rates and their Jacobian by differences: Newton's method converges by five digits a step."""
        steps = np.where(self._relative, 1e-5 * x, np.copysign(1e-5, x))  # inwards
        ahead = self.rates(np.concatenate([x[None], x - np.diag(steps)]))
        return ahead[0], ((ahead[0] - ahead[1:]) / steps[:, None]).T

    def along(self, y: FloatArray) -> FloatArray:
        """Points of the face of coordinates along the basis."""
        return np.asarray(y @ self.basis.T)

    def projected(self, q: FloatArray) -> FloatArray:
        """Points of the plane next to those of the face."""
        return self.along(q @ self.basis)

    def holds(self, x: FloatArray) -> bool:
        """Whether a zero belongs to the plane; those closer to a smaller face cannot be told from those in it."""
        return bool(np.all((x > 1e-3**self._powers) | ~self._relative))

    def on_axis(self) -> list[FloatArray]:
        """Variables of points with equal coordinates."""
        norms = np.sqrt([0.1, 0.35, 0.6, 0.8, 0.95])
        lengths = norms if np.all(self._relative) else np.concatenate([norms, -norms])
        return [self.variables(self.along(np.full(self.dimensions, y * self.dimensions**-0.5))) for y in lengths]

    def on_line(self) -> list[FloatArray]:
        """Variables of all zeros of a plane that is a line, within the sphere."""

        def along(y: FloatArray) -> FloatArray:
            return np.asarray((self._face(self.along(y[:, None])) @ self.basis)[:, 0])

        roots = line_roots(along, positive=bool(self._relative[0]))
        return [self.variables(root * self.basis[:, 0]) for root in roots if abs(root) < 1.0 - 1e-9]


BESIDE = (0.03, -0.03, 0.1, -0.1)
"""Distances of starts from a zero along directions in which others may lie that have just branched off."""


class Search:
    """Search for approximate zeros in a plane.

    Parameters
    ----------
    plane : Plane
    likely : list of ndarray, shape (n,)
        Overlaps that are tried first.
    patience : int
        Scattered starts in a row that bring nothing new before the plane is left.
    deflated : bool
        Whether zeros that are known are deflated: many of them leave Newton's method little room.
    """

    def __init__(
        self, plane: Plane, likely: Sequence[FloatArray] = (), patience: int = 12, deflated: bool = True
    ) -> None:
        self.plane, self._likely, self._patience, self._deflated = plane, list(likely), patience, deflated
        self._known = np.empty((0, plane.dimensions))
        self._fruitless = 0

    def leave_out(self, images: FloatArray, isolated: bool) -> None:
        """Take those of a zero and its images, in rows, that lie in the plane for known: not to be found again."""
        there = np.abs(self.plane.projected(images) - images).max(axis=1) < SAME_ZERO
        self._known = np.concatenate([self._known, self.plane.variables(images[there])])
        if isolated and np.any(there):
            self._fruitless = 0

    def try_beside(self, q: FloatArray, slope: FloatArray) -> None:
        """Try starts beside a zero, if it lies in the plane, in directions in which the field hardly changes."""
        basis = self.plane.basis
        if np.abs(self.plane.projected(q) - q).max() < SAME_ZERO:
            rates, directions = np.linalg.eig(basis.T @ slope @ basis)
            for k in np.flatnonzero((np.abs(rates) < 0.1 * np.abs(rates).max()) & (rates.imag == 0.0)):
                self._likely += [q + distance * (basis @ directions[:, k].real) for distance in BESIDE]

    def zeros(self) -> Iterator[FloatArray]:
        """Zeros that are new; whoever takes one calls `leave_out` for it."""
        if self.plane.dimensions == 1:
            yield from (self.plane.overlaps(x) for x in self.plane.on_line() if self._is_new(x))
            return
        yield from self._from_likely()
        for start in self.plane.on_axis():
            yield from self._from(start)
        self._fruitless = 0
        for start in self._scattered():
            self._fruitless += 1
            yield from self._from(start)
            yield from self._from_likely()
            if self._fruitless >= self._patience:
                return

    def _from_likely(self) -> Iterator[FloatArray]:
        while self._likely:
            yield from self._from(self.plane.variables(self._likely.pop(0)))

    def _is_new(self, x: FloatArray) -> bool:
        return not np.any(np.abs(self._known - x).max(axis=1) <= 1e-7)  # zeros are more accurate

    def _from(self, start: FloatArray) -> Iterator[FloatArray]:
        """The zero that a start leads to, if it is new."""
        x = newton(self.plane.equations, start, self._known if self._deflated else (), 1e-9, self.plane.rates)
        for _ in range(2):  # to rounding, which no tolerance tells beforehand
            if x is None or not self._is_new(x):
                return
            values, slope = self.plane.equations(x)
            x = x - np.linalg.lstsq(slope, values, rcond=None)[0] if np.all(np.isfinite(slope)) else None
        if x is not None and self.plane.holds(x) and self._is_new(x):
            yield self.plane.overlaps(x)

    def _scattered(self) -> Iterator[FloatArray]:
        """Scattered starts, half of them next to the sphere, in three parts that are sorted by rates."""
        n = self.plane.dimensions
        # Largest number of scattered starts, for each dimension, in the ball; as many are next to the sphere.
        parts, norms = scattered_parts(n, 64 * n)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(2, *parts.shape))
        for few in np.split(np.arange(len(parts)), [len(parts) // 4, len(parts) // 2]):
            both = np.stack([norms[few], 1.0 - 0.05 * norms[few] ** 2])
            points = (signs[:, few] * np.sqrt(both[..., None] * parts[few])).reshape(-1, n)
            starts = self.plane.variables(self.plane.along(points))
            yield from starts[np.argsort(np.linalg.norm(self.plane.rates(starts), axis=1))]


def directions_of(face: Rates, signs: FloatArray) -> FloatArray:
    """Points of the sphere of an orthant near which the field may vanish, shape (points, n)."""
    parts, _ = scattered_parts(len(signs), 8 * len(signs))
    points = (1.0 - 2e-16) * signs * np.sqrt(parts)  # rounded inwards
    size = np.linalg.norm(face(points), axis=1)
    likely = np.argsort(size)[:2]
    return np.asarray(points[likely[size[likely] < 0.05]])  # of the size of the field, which vanishes at a zero


def scattered_parts(n: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Points of the face sum_k u_k = 1 of a simplex, shape (count, n), evenly scattered, and numbers in (0, 1)."""
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    cube = qmc.Sobol(n + 1, scramble=False).random_base2(count.bit_length())[1 : count + 1]  # the first is a corner
    parts = np.log1p(-cube[:, :n]) ** 2  # of exponential variables, squared: many are small
    return parts / parts.sum(axis=1, keepdims=True), cube[:, n]
