"""Branches of roots as a parameter changes, by pseudo-arclength continuation: around turning points, too.

A point of a branch is z = (x, p/range), so that both count alike. From a point the branch is followed along its tangent
and corrected in the plane orthogonal to it, which cuts the branch where it turns as well as anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from meanfield.numerics.continuation.roots import STEP_ROUNDING, TOLERANCE, newton
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

LEAST_COSINE = 0.9
"""Least cosine of the angle between tangents of neighbours; a sharper bend is taken in shorter steps."""


class ParametricEquations(Protocol):
    """Equations for every value of a parameter p, NaN outside their domain."""

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and Jacobian dF/dx, shapes (n,) and (n, n)."""

    def by_parameter(self, x: FloatArray, p: float, values: FloatArray) -> FloatArray:
        """Derivative dF/dp, shape (n,), where F is known to be `values`; a difference will do."""


@dataclass(frozen=True)
class Branch:
    """A curve of roots.

    Parameters
    ----------
    x : ndarray, shape (points, n)
    p : ndarray, shape (points,)
        The parameter; ends of the range are hit exactly.
    turning : ndarray of bool, shape (points,)
        Whether p has an extremum at a point along the branch.
    ends : tuple of str
        Reasons why the branch ends on both sides: `limit` (of the range), `closed` (back at its beginning) or `lost`
        (no root continues it).
    """

    x: FloatArray
    p: FloatArray
    turning: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ends: tuple[str, str]

    def crossings(self, p: float) -> list[FloatArray]:
        """Roots at a value of the parameter, by linear interpolation between points."""
        return crossings(self.x, self.p, p)


def crossings(x: FloatArray, p: FloatArray, value: float) -> list[FloatArray]:
    """Points of a curve x(p), shape (points, n), at a value of p, by linear interpolation between neighbours."""
    found = [here for here, at in zip(x, p, strict=True) if at == value]
    for i in np.flatnonzero((p[:-1] - value) * (p[1:] - value) < 0):
        share = (value - p[i]) / (p[i + 1] - p[i])
        found.append((1 - share) * x[i] + share * x[i + 1])
    return found


def follow(
    equations: ParametricEquations,
    x: FloatArray,
    p: float,
    limits: tuple[float, float],
    longest: float = 0.025,
    tolerance: float = TOLERANCE,
) -> Branch:
    """The branch through a root, to both sides as far as it goes within the limits.

    Parameters
    ----------
    equations : ParametricEquations
        F(x, p) and its derivatives.
    x : ndarray, shape (n,)
        A root at p.
    limits : tuple of float
        The range of p, increasing.
    longest : float
        Longest step of (x, p/range).
    tolerance : float
        Largest component of F at a root.
    """
    walker = _Walker(equations, limits, longest, tolerance)
    start = walker.locus(x, p)
    sides: list[tuple[list[Step], str]] = []
    for sign in (1.0, -1.0):
        heading = sign * start.tangent[-1]
        if (p == limits[0] and heading < 0) or (p == limits[1] and heading > 0):
            sides.append(([], "limit"))
        elif sides and sides[0][1] == "closed":
            sides.append(([], "closed"))
        else:
            sides.append(walker.walk(start._replace(tangent=sign * start.tangent)))
    (ahead, end), (behind, beginning) = sides
    steps = [*reversed(behind), Step(start.z, False), *ahead]
    points = np.array([step.z for step in steps])
    return Branch(
        points[:, :-1],
        np.array([walker.parameter(z) for z in points]),
        np.array([step.turning for step in steps]),
        (beginning, end),
    )


class Locus(NamedTuple):
    """A point of a branch and the unit tangent there."""

    z: FloatArray
    tangent: FloatArray


class Step(NamedTuple):
    """A point of a branch and whether it turns there."""

    z: FloatArray
    turning: bool


class _Walker:
    """Steps along branches of roots; points are z = (x, (p - low)/range)."""

    def __init__(
        self, equations: ParametricEquations, limits: tuple[float, float], longest: float, tolerance: float
    ) -> None:
        self._equations = equations
        self._low, self._high = limits
        self._longest = longest
        self._tolerance = tolerance

    def parameter(self, z: FloatArray) -> float:
        """Parameter p of a point; 0 and 1 are the limits to the last digit."""
        return self._high if z[-1] == 1.0 else self._low + float(z[-1]) * (self._high - self._low)

    def locus(self, x: FloatArray, p: float) -> Locus:
        """The point of a root, with the tangent towards larger p."""
        z = np.array([*x, 1.0 if p == self._high else (p - self._low) / (self._high - self._low)])
        values, slope = self._equations.equations(x, p)
        return self._locus(z, self._jacobian(z, values, slope), np.eye(len(z))[-1])

    def _locus(self, z: FloatArray, jacobian: FloatArray, along: FloatArray) -> Locus:
        """The point of a root with the tangent that points `along`; NaN outside the domain."""
        if not np.all(np.isfinite(jacobian)):
            return Locus(z, np.full(len(z), np.nan))
        tangent = np.linalg.svd(jacobian)[2][-1]
        return Locus(z, tangent if tangent @ along >= 0 else -tangent)

    def _jacobian(self, z: FloatArray, values: FloatArray, slope: FloatArray) -> FloatArray:
        """Jacobian dF/dz from F and dF/dx."""
        by_p = self._equations.by_parameter(z[:-1], self.parameter(z), values)
        return np.column_stack([slope, (self._high - self._low) * by_p])

    def _corrected(self, here: Locus, ds: float) -> Locus | None:
        """The root near the tangent from `here` at length ds, or None.

        It lies in the plane orthogonal to the tangent, or, where p changes fast, at that p: this needs no dF/dp.
        """
        guess = z = here.z + ds * here.tangent
        steep = abs(here.tangent[-1]) > 0.7  # correction at fixed p is cheaper
        normal = np.eye(len(z))[-1] if steep else here.tangent
        for _ in range(8):  # Newton steps before the step along the branch is halved
            if not 0.0 <= z[-1] <= 1.0:
                return None
            values, slope = self._equations.equations(z[:-1], self.parameter(z))
            jacobian = np.pad(slope, ((0, 0), (0, 1))) if steep else self._jacobian(z, values, slope)
            matrix = np.vstack([jacobian, normal])
            if not (np.all(np.isfinite(values)) and np.all(np.isfinite(matrix))):
                return None
            step = np.linalg.lstsq(matrix, -np.array([*values, normal @ (z - guess)]), rcond=None)[0]
            if np.abs(values).max() <= self._tolerance or np.abs(step).max() <= STEP_ROUNDING:
                return self._locus(z, self._jacobian(z, values, slope) if steep else jacobian, here.tangent)
            z = z + step
        return None

    def walk(self, start: Locus) -> tuple[list[Step], str]:
        """Points after `start` along its tangent, and the reason why they end."""
        with progress_bar(math.inf, "branch", " points") as bar:
            return self._walk(start, bar.update)

    def _walk(self, start: Locus, count: Callable[[], object]) -> tuple[list[Step], str]:
        steps: list[Step] = []
        here, ds = start, 0.2 * self._longest
        # A branch with 5000 points, or steps of a millionth of the longest one, goes no further.
        while len(steps) < 5000 and ds >= 1e-6 * self._longest:
            crosses = not 0.0 < here.z[-1] + ds * here.tangent[-1] < 1.0
            there = self._at_limit(here) if crosses else self._corrected(here, ds)
            if there is None or not _continues(here, there, ds):
                ds *= 0.5
                continue
            if not crosses and here.tangent[-1] * there.tangent[-1] < 0.0:
                steps.append(Step(self._turning_point(here, there), True))
            steps.append(Step(there.z, False))
            count()
            if crosses:
                return steps, "limit"
            if len(steps) > 3 and _passes(start, here, there):
                return [*steps[:-1], Step(start.z, False)], "closed"
            here, ds = there, min(1.5 * ds, self._longest)
        return _thinned(start, steps, 0.05 * self._longest), "lost"  # no closer, where a branch ends inside the range

    def _at_limit(self, here: Locus) -> Locus | None:
        """The root on the limit that the tangent crosses."""
        limit = 1.0 if here.tangent[-1] > 0 else 0.0
        guess = here.z + (limit - here.z[-1]) / here.tangent[-1] * here.tangent
        p = self._high if limit == 1.0 else self._low
        x = newton(lambda x: self._equations.equations(x, p), guess[:-1], tolerance=self._tolerance)
        if x is None:
            return None
        z = np.array([*x, limit])
        return self._locus(z, self._jacobian(z, *self._equations.equations(x, p)), here.tangent)

    def _turning_point(self, here: Locus, there: Locus) -> FloatArray:
        """Extremum of p between two points: regula falsi (Illinois) for the tangent's last component."""
        chord = here._replace(tangent=(there.z - here.z) / np.linalg.norm(there.z - here.z))
        far = float(np.linalg.norm(there.z - here.z))
        near = 0.0
        far_value, near_value = float(there.tangent[-1]), float(here.tangent[-1])
        side = 0
        best = min(here, there, key=lambda locus: abs(float(locus.tangent[-1])))
        for _ in range(30):  # secant steps and bisections; few are usual
            at = (near * far_value - far * near_value) / (far_value - near_value)
            trial = self._corrected(chord, at)
            if trial is None:
                break
            value = float(trial.tangent[-1])
            best = min(best, trial, key=lambda locus: abs(float(locus.tangent[-1])))
            if abs(value) < 1e-9:  # the tangent has no component along p: a turning point
                break
            if value * far_value > 0:
                far, far_value, near_value = at, value, near_value * (0.5 if side == 1 else 1.0)
                side = 1
            else:
                near, near_value, far_value = at, value, far_value * (0.5 if side == -1 else 1.0)
                side = -1
        return best.z


def _continues(here: Locus, there: Locus, ds: float) -> bool:
    """Whether a step of length ds stayed on its branch."""
    straight = here.tangent @ there.tangent > LEAST_COSINE
    # A longer distance is a jump to another branch.
    return bool(straight and np.linalg.norm(there.z - here.z) < 1.5 * ds)


def _thinned(start: Locus, steps: list[Step], least: float) -> list[Step]:
    """Steps without those that are hardly further than the last one that is kept; the end and turning points are kept.

    Where a branch ends inside the range, ever shorter steps only say where.
    """
    kept, z = [], start.z
    for step in steps:
        if step is steps[-1] or step.turning or np.linalg.norm(step.z - z) >= least:
            kept.append(step)
            z = step.z
    return kept


def _passes(start: Locus, here: Locus, there: Locus) -> bool:
    """Whether a step leads past the beginning of the branch."""
    step = np.linalg.norm(there.z - here.z)
    close = max(np.linalg.norm(start.z - here.z), np.linalg.norm(start.z - there.z)) <= step
    return bool(close and start.tangent @ there.tangent > LEAST_COSINE)
