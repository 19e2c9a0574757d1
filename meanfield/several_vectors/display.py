"""Densities of the weights on cells that stay where they are, from those in the moving frame.

A density that is linear between the centres of cells is a sum of pyramids. Along a coordinate each becomes a triangle
of its variance, which leaves the total probability as it is. Laws that are shown are those of each weight, of
(w_1 +- w_2)/sqrt(2), and of both weights together.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.process import own_numba as numba
from meanfield.several_vectors.frame import Frame
from meanfield.typing import FloatArray

CELLS = 240
"""Cells of the density of a single weight that results hold."""

JOINT_CELLS = 96
"""Cells of each axis of the joint density of two weights that results hold."""

REACH = 5.5
"""Standard deviations of the laws within the cells."""

DIAGONALS = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2.0)
"""Combinations of w_1 and w_2 whose laws tell whether the vectors share their weights."""


COMBINATIONS = np.vstack([np.eye(2), DIAGONALS])
"""Coefficients of w_1 and w_2 in the single numbers whose laws are shown."""


def singles_given_u(P: FloatArray, axis: FloatArray, frame: Frame, half_width: float) -> FloatArray:
    """Densities of the `COMBINATIONS` of the weights given u, averaged over cells of [-half_width, half_width].

    Parameters
    ----------
    P : ndarray, shape (nodes, n, n)
        Density in the frame.
    axis : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (nodes, CELLS, 4)
    """
    mass = P * (axis[1] - axis[0]) ** 2
    found = _single(mass, axis, frame.mean @ COMBINATIONS.T, COMBINATIONS @ frame.S, half_width, CELLS)
    return np.asarray(found * (0.5 * CELLS / half_width))


def joint_given_u(P: FloatArray, axis: FloatArray, frame: Frame, half_width: float) -> FloatArray:
    """Density of both weights given u in the same way, shape (nodes, JOINT_CELLS, JOINT_CELLS)."""
    mass = P * (axis[1] - axis[0]) ** 2
    found = _joint(mass, axis, frame.mean, frame.S, half_width, JOINT_CELLS)
    return np.asarray(found * (0.5 * JOINT_CELLS / half_width) ** 2)


def reach_of(frame: Frame) -> float:
    """Half-width that the laws of the weights and of their combinations need."""
    means = np.abs(frame.mean @ COMBINATIONS.T).max(axis=0)
    return float((means + REACH * np.linalg.norm(COMBINATIONS @ frame.S, axis=1)).max())


@numba.njit(inline="always")
def _below(x):  # type: ignore[no-untyped-def]
    """Distribution function of the triangle 1 - |x| on [-1, 1]."""
    x = min(max(x, -1.0), 1.0)
    return 0.5 * (1.0 + x) ** 2 if x < 0 else 1.0 - 0.5 * (1.0 - x) ** 2


@numba.njit(inline="always")
def _half_width(first, second, h, scale):  # type: ignore[no-untyped-def]
    """Half-width, in cells of the display, of a triangle with the variance of that of a cell along a coordinate."""
    return max(math.hypot(first, second) * h * scale, 0.05)


@numba.njit(cache=True, nogil=True)
def _single(mass, axis, means, rows, half_width, cells):  # type: ignore[no-untyped-def]
    """Probabilities of cells of the coordinates means + rows . x, shape (nodes, cells, coordinates)."""
    nodes, n = mass.shape[0], axis.size
    result = np.zeros((nodes, cells, rows.shape[0]))
    scale = cells / (2.0 * half_width)
    h = axis[1] - axis[0]
    shrunk = 1.0 / math.sqrt(1.0 + h * h / 6.0)  # so that triangles do not add to the variance
    for c in range(rows.shape[0]):
        width = _half_width(rows[c, 0], rows[c, 1], h * shrunk, scale)
        for node in range(nodes):
            for i in range(n):
                for j in range(n):
                    value = mass[node, i, j]
                    at = means[node, c] + shrunk * (rows[c, 0] * axis[i] + rows[c, 1] * axis[j])
                    at = min(max((at + half_width) * scale, width), cells - width)
                    before = 0.0
                    for cell in range(int(at - width), min(int(at + width), cells - 1) + 1):
                        after = _below((cell + 1.0 - at) / width)
                        result[node, cell, c] += value * (after - before)
                        before = after
    return result


@numba.njit(cache=True, nogil=True)
def _joint(mass, axis, mean, S, half_width, cells):  # type: ignore[no-untyped-def]
    """Probabilities of square cells of w_1 and w_2 at each node."""
    nodes, n = mass.shape[0], axis.size
    result = np.zeros((nodes, cells, cells))
    scale = cells / (2.0 * half_width)
    h = axis[1] - axis[0]
    shrunk = 1.0 / math.sqrt(1.0 + h * h / 6.0)
    width1 = _half_width(S[0, 0], S[0, 1], h * shrunk, scale)
    width2 = _half_width(S[1, 0], S[1, 1], h * shrunk, scale)
    parts = np.empty(cells)
    for node in range(nodes):
        for i in range(n):
            for j in range(n):
                at1 = mean[node, 0] + shrunk * (S[0, 0] * axis[i] + S[0, 1] * axis[j])
                at2 = mean[node, 1] + shrunk * (S[1, 0] * axis[i] + S[1, 1] * axis[j])
                at1 = min(max((at1 + half_width) * scale, width1), cells - width1)
                at2 = min(max((at2 + half_width) * scale, width2), cells - width2)
                first, last = int(at2 - width2), min(int(at2 + width2), cells - 1)
                before = 0.0
                for b in range(first, last + 1):
                    after = _below((b + 1.0 - at2) / width2)
                    parts[b] = mass[node, i, j] * (after - before)
                    before = after
                before = 0.0
                for a in range(int(at1 - width1), min(int(at1 + width1), cells - 1) + 1):
                    after = _below((a + 1.0 - at1) / width1)
                    for b in range(first, last + 1):
                        result[node, a, b] += parts[b] * (after - before)
                    before = after
    return result


def joint_outputs(outputs: int, nodes: int) -> list[int]:
    """Numbers of the output times at which a result holds joint densities: the last one, and some others."""
    # At most five output times, and 2**22 values, which are 32 MB, have joint densities.
    fitting = max(1, min(5, 2**22 // (nodes * JOINT_CELLS**2), outputs))
    return sorted(set(np.linspace(outputs - 1, 0, fitting).round().astype(int).tolist()))
