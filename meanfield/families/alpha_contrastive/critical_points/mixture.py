"""Critical points for Gaussian mixtures in more than two coordinates: ways uphill, Newton's method, and indices.

A flow uphill on a sphere of d coordinates has critical points with (-1)^k adding up to 1 + (-1)^(d - 1), the Euler
number of the sphere, where k is the number of directions in which deviations grow. So a search goes on until they do,
and until more starts show nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.enumeration import SAME_POINT
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

STEPS = 400
"""Largest number of steps uphill."""

TRIED_AFTER = (6, 9, 12, 16, 20, 26, 32, 48, 64, 96, 128, 192, 256, 320)
"""Steps uphill after which Newton's method is tried."""

USUAL_STEPS, USUAL_TRIES, USUAL_SEARCHES = 12, 3, 1500
"""Usual numbers of steps uphill of a filter, of tries of Newton's method on its way, and of its steps in searches."""

ROUND = 50
"""Starts of Newton's method between looks at what they have found."""

Field = MixtureField | KernelMixtureField


def mixture_points(field: Field, starts: int, seed: int) -> list[tuple[FloatArray, float]]:
    """Critical points that are found, with the share of random filters that come to them.

    Attractors are followed uphill from every start; Newton's method from between them, and from random filters, adds
    others, until indices add up and a round of starts adds none.

    Parameters
    ----------
    starts : int
        Number of random filters.
    seed : int
        Seed of these filters.
    """
    d = field.mean.shape[1]
    rng = np.random.default_rng(seed)
    first = _unit(rng.standard_normal((starts, d)))
    found: list[FloatArray] = []
    votes: list[int] = []
    for w in _ends(field, first):
        known = _known(found, w)
        if known is None:
            found.append(w)
            votes.append(0)
        votes[-1 if known is None else known] += 1
    between = [_unit(a + b) for a, b in combinations(found[:ROUND], 2) if np.linalg.norm(a + b) > 0.1]
    _added(field, found, between[: 4 * ROUND])
    for start in range(0, 4 * starts, ROUND):
        tried = first[start : start + ROUND]
        if not len(tried):  # on ways between known points
            a, b = np.array(found)[rng.integers(len(found), size=(2, ROUND))]
            tried = _unit(a + rng.random((ROUND, 1)) * b + 0.1 * rng.standard_normal((ROUND, d)))
        if not _added(field, found, tried) and missing_index(field, found) == 0:
            break
    return [(point, count / starts) for point, count in zip(found, [*votes, *[0] * len(found)], strict=False)]


def _added(field: Field, found: list[FloatArray], tried: Iterable[FloatArray]) -> bool:
    """Whether Newton's method finds critical points from some filters that are not known, which are added."""
    before = len(found)
    for w in tried:
        point = _newton(field, w)
        if point is not None and _known(found, point) is None:
            found.append(point)
    return len(found) > before


def missing_index(field: Field, points: list[FloatArray]) -> int:
    """Euler number of the sphere less the sum of (-1)^k over points; 0 if none, or a pair, is missing."""
    total = 0
    for w in points:
        growing = np.linalg.eigvalsh(field.jacobians(w, _tangent(w))[0]) > 0.0
        total += 1 if growing.sum() % 2 == 0 else -1
    return euler_number(field.mean.shape[1]) - total


def euler_number(d: int) -> int:
    """Sum of (-1)^k over the critical points of any flow uphill on a sphere of d coordinates."""
    return 2 * (d % 2)


def _known(found: list[FloatArray], w: FloatArray) -> int | None:
    return next((k for k, other in enumerate(found) if np.linalg.norm(other - w) < SAME_POINT), None)


def _unit(w: FloatArray) -> FloatArray:
    return np.asarray(w / np.linalg.norm(w, axis=-1, keepdims=True))


def _tangent(w: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.svd(w[None])[2][1:].T)


def _ends(field: Field, w: FloatArray) -> list[FloatArray]:
    """Attractors at the ends of the ways uphill of filters; those that do not come to one have none."""
    ends: list[FloatArray] = []
    step = np.ones(len(w))
    height, F = field.height_and_field(w)
    with progress_bar(STEPS, "filters uphill", "step") as bar:
        for number in range(1, STEPS + 1):
            trial = _unit(w + step[:, None] * (F - np.sum(F * w, axis=1, keepdims=True) * w))
            new, slope = field.height_and_field(trial)
            better = new > height
            w, F = (np.where(better[:, None], a, b) for a, b in ((trial, w), (slope, F)))
            height = np.where(better, new, height)
            step = np.where(better, 1.5 * step, 0.4 * step)
            bar.update(1)
            if number in TRIED_AFTER or number == STEPS:
                reached = [_attractor(field, each, ends) for each in w]
                ends += [each for each in reached if each is not None]
                left = np.array([each is None for each in reached], dtype=bool)
                w, F, height, step = w[left], F[left], height[left], step[left]
            if not len(w):
                break
    return ends


def _attractor(field: Field, w: FloatArray, ends: list[FloatArray]) -> FloatArray | None:
    """Attractor that a filter is about to come to; None if it is not near one."""
    basis = _tangent(w)
    force, J, _ = field.field_and_jacobians(w, basis)
    values, vectors = np.linalg.eigh(J)
    if values[-1] >= 0.0:
        return None
    step = vectors @ ((vectors.T @ (basis.T @ force)) / -values)
    if np.linalg.norm(step) > 0.1:
        return None
    guess = _unit(w + basis @ step)
    near = next((other for other in ends if np.linalg.norm(other - guess) < 0.3 * np.linalg.norm(step)), None)
    point = near if near is not None else _newton(field, guess)
    return point if point is not None and np.linalg.norm(point - w) < 0.2 else None


def _newton(field: Field, w: FloatArray) -> FloatArray | None:
    """Critical point by Newton's method on the sphere; None if it does not converge."""
    for _ in range(40):
        basis = _tangent(w)
        force, J, _ = field.field_and_jacobians(w, basis)
        step = np.linalg.lstsq(J, -basis.T @ force, rcond=None)[0]
        length = float(np.linalg.norm(step))
        w = w + basis @ (step * min(1.0, 0.3 / max(length, 1e-300)))
        w = w / np.linalg.norm(w)
        if length <= 1e-13:
            return w
    return None
