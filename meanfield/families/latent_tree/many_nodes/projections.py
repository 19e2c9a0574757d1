"""Projections of the directions of nodes on a few axes, by which laws of more than two weights are compared.

Axes are fixed and lie askew to the gates, so that nodes that stay at gates have projections without atoms.
"""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray

AXES = 3
"""Number of axes, which are at right angles."""

PROJECTIONS = np.linspace(-1.0, 1.0, 33)[1:-1]
"""Projections at which distribution functions are taken."""


def axes_of(weights: int) -> FloatArray:
    """Axes for nodes with a number of weights, shape (axes, weights)."""
    drawn = np.random.default_rng(weights).normal(size=(weights, weights))
    return np.asarray(np.linalg.qr(drawn)[0].T[:AXES])


def projection_coordinates(weights: int) -> dict[str, FloatArray]:
    """Axes and projections as variables of results."""
    return {"axis": axes_of(weights), "projection": PROJECTIONS}


def distribution_of(w: FloatArray, mass: FloatArray) -> FloatArray:
    """Distribution functions of the projections of directions, shape (axes, projections).

    Parameters
    ----------
    w : ndarray, shape (nodes, weights)
        Of unit length.
    mass : ndarray, shape (nodes,)
        Their shares, which add up to 1.
    """
    places = np.searchsorted(PROJECTIONS, w @ axes_of(w.shape[1]).T)
    size = len(PROJECTIONS) + 1
    return np.array([np.cumsum(np.bincount(column, mass, size))[:-1] for column in places.T])
