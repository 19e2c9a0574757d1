"""Stationary states that are images of each other when features change their signs and, with equal laws, their places.

Laws of coordinates are symmetric. Where T maps q to q' and g, Lambda and their derivatives at q to those at q', the
density at q' is P(w|T'u), whatever the prior, so that both states have the same multiplier, spectrum and errors. With
three features there are up to 27 states, of which 8 or fewer are no images of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.equations import Coefficients, coefficients
from meanfield.numerics.continuation import signed_permutations
from meanfield.typing import FloatArray

IMAGE_TOLERANCE = 1e-7
"""Largest difference of coefficients of images, relative to the largest: overlaps are found to many digits more."""

PROBE = np.array([0.43, -0.29, 0.17])
"""Overlap without any symmetry of its own, at which those of a limit show."""


class Orbit(NamedTuple):
    """An overlap with the matrices that map it to its images, the first of which is 1."""

    q: FloatArray
    maps: list[FloatArray]

    @property
    def images(self) -> list[FloatArray]:
        """All overlaps of the orbit."""
        return [T @ self.q for T in self.maps]


def orbits(limit: Limit, overlaps: Sequence[FloatArray]) -> list[Orbit]:
    """Overlaps of states, each as the first of its orbit or as an image."""
    found: list[tuple[Orbit, Coefficients]] = []
    candidates = list(_of_laws(limit))
    for q in overlaps:
        here = coefficients(limit.closure, q)
        for orbit, there in found:
            to_here = next((T for T in candidates if _maps(T, orbit.q, there, q, here)), None)
            if to_here is not None:
                orbit.maps.append(to_here)
                break
        else:
            found.append((Orbit(q, [np.eye(len(q))]), here))
    return [orbit for orbit, _ in found]


def symmetries(limit: Limit) -> list[FloatArray]:
    """Signed permutations T with F(T q) = T F(q): the laws do not see them, and g and Lambda follow them."""
    probe = PROBE[: len(limit.coordinates)]
    g, diffusion = limit.closure(probe)

    def follows(T: FloatArray) -> bool:
        mapped, other = limit.closure(T @ probe)
        same = np.abs(mapped - T @ g).max() <= IMAGE_TOLERANCE * np.abs(g).max()
        return bool(same and abs(other - diffusion) <= IMAGE_TOLERANCE * diffusion)

    return [T for T in _of_laws(limit) if follows(T)]


def _of_laws(limit: Limit) -> Iterator[FloatArray]:
    """Signed permutations that the joint law of the coordinates does not see."""
    laws = limit.coordinates
    for image in signed_permutations(np.arange(1.0, len(laws) + 1)):
        order = np.abs(image).astype(int) - 1
        if all(laws[i] == law for i, law in zip(order, laws, strict=True)):
            yield np.sign(image)[:, None] * np.eye(len(laws))[order]


def _maps(T: FloatArray, q: FloatArray, there: Coefficients, image: FloatArray, here: Coefficients) -> bool:
    """Whether T maps a state to another one."""
    mapped, found = (np.concatenate([np.ravel(part) for part in c]) for c in (mapped_coefficients(T, there), here))
    alike = np.abs(mapped - found).max() <= IMAGE_TOLERANCE * np.abs(found).max()
    return bool(alike and np.abs(T @ q - image).max() <= IMAGE_TOLERANCE)


def mapped_coefficients(T: FloatArray, c: Coefficients) -> Coefficients:
    """Coefficients at the image T q."""
    return Coefficients(T @ c.g, c.diffusion, T @ c.g_slope @ T.T, T @ c.diffusion_slope)
