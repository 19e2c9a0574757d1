"""Sign flips of features that leave the reduced ODEs as they are, found on the field itself."""

from __future__ import annotations

from itertools import product

import numpy as np

from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.typing import FloatArray


def sign_symmetries(field: VectorField) -> FloatArray:
    """All sign flips S with b(S q) = S b(q).

    Parameters
    ----------
    field : VectorField

    Returns
    -------
    ndarray, shape (flips, d1)
        Flips in rows, the identity first; 2^d1 of them if every feature may be flipped by itself, which holds for
        independent features with symmetric laws. With an even activation and even noise -1 is among them always.
    """
    d1 = field.features
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, d1))
    points *= np.array([[0.3], [0.6], [0.9]]) / np.linalg.norm(points, axis=1, keepdims=True)
    values = field(points)
    allowed = 1e-9 * max(float(np.abs(values).max()), np.finfo(float).tiny)
    flips = np.array(list(product((1.0, -1.0), repeat=d1)))
    kept = [np.abs(field(flip * points) - flip * values).max() <= allowed for flip in flips[1:]]
    return np.asarray(flips[[True, *kept]])


def is_reflected(flips: FloatArray) -> bool:
    """Whether every feature may be flipped by itself, so that one orthant of the ball tells all."""
    return flips.shape == (2 ** flips.shape[1], flips.shape[1])


def copies(q: FloatArray, flips: FloatArray) -> list[FloatArray]:
    """Point and its images under the flips, each once, shape (d1,), in order."""
    images = np.unique(flips * q + 0.0, axis=0)
    return list(images)
