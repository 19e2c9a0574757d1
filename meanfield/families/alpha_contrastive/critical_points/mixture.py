"""Critical points for Gaussian mixtures in more than two coordinates: Newton's method from random filters."""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.enumeration import SAME_POINT
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

STEPS = 400
"""Steps uphill before Newton's method."""


def mixture_points(field: MixtureField | KernelMixtureField, starts: int, seed: int) -> list[tuple[FloatArray, float]]:
    """Critical points that are found, with the share of random filters that come to them.

    Attractors are followed uphill from every start; Newton's method from the starts themselves adds saddles.

    Parameters
    ----------
    starts : int
        Number of random filters.
    seed : int
        Seed of these filters.
    """
    d = field.mean.shape[1]
    first = np.random.default_rng(seed).standard_normal((starts, d))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    ends = _uphill(field, first)
    found: list[FloatArray] = []
    votes: list[int] = []
    for w in [*ends, *first]:
        point = _newton(field, w)
        if point is None:
            continue
        known = next((k for k, other in enumerate(found) if np.linalg.norm(other - point) < SAME_POINT), None)
        if known is None:
            found.append(point)
            votes.append(0)
    for w in ends:
        if found:
            nearest = int(np.argmin([np.linalg.norm(point - w) for point in found]))
            votes[nearest] += 1
    return [(point, count / starts) for point, count in zip(found, votes, strict=True)]


def _uphill(field: MixtureField | KernelMixtureField, w: FloatArray) -> FloatArray:
    """Filters at the end of their way uphill."""
    step, height = np.ones(len(w)), field.objective(w)
    with progress_bar(STEPS, "filters uphill", "step") as bar:
        for _ in range(STEPS):
            F = field.field(w)
            trial = w + step[:, None] * (F - np.sum(F * w, axis=1, keepdims=True) * w)
            trial /= np.linalg.norm(trial, axis=1, keepdims=True)
            new = field.objective(trial)
            better = new > height
            w = np.where(better[:, None], trial, w)
            height = np.where(better, new, height)
            step = np.where(better, 1.5 * step, 0.4 * step)
            bar.update(1)
    return w


def _newton(field: MixtureField | KernelMixtureField, w: FloatArray) -> FloatArray | None:
    """Critical point by Newton's method on the sphere; None if it does not converge."""
    for _ in range(40):
        basis = np.linalg.svd(w[None])[2][1:].T
        J, _ = field.jacobians(w, basis)
        step = np.linalg.lstsq(J, -basis.T @ field.field(w[None])[0], rcond=None)[0]
        length = float(np.linalg.norm(step))
        w = w + basis @ (step * min(1.0, 0.3 / max(length, 1e-300)))
        w = w / np.linalg.norm(w)
        if length <= 1e-13:
            return w
    return None
