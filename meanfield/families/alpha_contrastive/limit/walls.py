"""Walls of the sphere, at which the field of a filter jumps, and the activation on either side of them.

An atom x and a kink c of the activation make the wall w.x = c. Atoms that are parallel share walls. A filter has a side
of every wall, and on it the activation goes on smoothly beyond the wall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.typing import FloatArray, IntArray

SAME_WALL = 1e-9
"""Distance of normals, and of offsets, of walls that are one."""

BESIDE_KINK = 1e-9
"""Distance from a kink at which the slope of a side is taken."""


@dataclass(frozen=True)
class Walls:
    """Planes u.w = c that meet the sphere, and what changes there.

    Parameters
    ----------
    normal : ndarray, shape (walls, coordinates)
        Unit normals u; the plus side is u.w > c.
    offset : ndarray, shape (walls,)
    atom, number, orientation : ndarray, shape (crossings,)
        Atoms with a kink at a wall, the wall, and the sign of x.u.
    kink : ndarray, shape (crossings,)
        The kink.
    lengths : ndarray, shape (atoms,)
        |x|.
    filter : Filter
    """

    normal: FloatArray
    offset: FloatArray
    atom: IntArray
    number: IntArray
    orientation: FloatArray
    kink: FloatArray
    lengths: FloatArray
    filter: Filter

    def side(self, w: FloatArray) -> FloatArray:
        """Sides of filters, +1 or -1, shape (filters, walls)."""
        return np.where(w @ self.normal.T >= self.offset, 1.0, -1.0)

    def outputs(self, z: FloatArray, side: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Activation and slope at z = w.x, shape (filters, atoms), as they are on the given sides of all walls."""
        low, high = np.full_like(z, -np.inf), np.full_like(z, np.inf)
        for kink in self.filter.kinks:
            never = np.abs(kink) >= self.lengths
            np.maximum(low, kink, out=low, where=never & (kink < 0))
            np.minimum(high, kink, out=high, where=never & (kink >= 0))
        for atom, number, orientation, kink in zip(self.atom, self.number, self.orientation, self.kink, strict=True):
            above = side[:, number] * orientation > 0.0
            np.maximum(low[:, atom], np.where(above, kink, -np.inf), out=low[:, atom])
            np.minimum(high[:, atom], np.where(above, np.inf, kink), out=high[:, atom])
        inside = np.clip(z, low + BESIDE_KINK, np.maximum(high - BESIDE_KINK, low + BESIDE_KINK))
        h, slope = self.filter.value(inside), self.filter.slope(inside)
        return h + slope * (z - inside), slope

    def jumps(self, pull: FloatArray) -> FloatArray:
        """How the field jumps along u at each wall from its minus to its plus side, shape (filters, walls).

        Parameters
        ----------
        pull : ndarray, shape (filters, atoms)
            Derivative of the objective by each output.
        """
        step = self.filter.slope(self.kink + BESIDE_KINK) - self.filter.slope(self.kink - BESIDE_KINK)
        table = np.zeros((pull.shape[1], len(self.offset)))
        np.add.at(table, (self.atom, self.number), step * self.lengths[self.atom])
        return pull @ table


def make_walls(atoms: FloatArray, filter_: Filter) -> Walls:
    """Walls of atoms and an activation."""
    lengths = np.linalg.norm(atoms, axis=1)
    normals: list[FloatArray] = []
    offsets: list[float] = []
    rows: list[tuple[int, int, float, float]] = []
    generic = np.cos(1.0 + np.arange(atoms.shape[1]))  # decides the sign of normals, of x and -x alike
    for atom, (x, length) in enumerate(zip(atoms, lengths, strict=True)):
        for kink in filter_.kinks:
            if abs(kink) >= length:
                continue
            sign = 1.0 if x @ generic >= 0.0 else -1.0
            normal, offset = sign * x / length, sign * kink / length
            same = [
                k
                for k, (other, at) in enumerate(zip(normals, offsets, strict=True))
                if np.abs(other - normal).max() < SAME_WALL and abs(at - offset) < SAME_WALL
            ]
            if not same:
                same = [len(normals)]
                normals.append(normal)
                offsets.append(offset)
            rows.append((atom, same[0], sign, kink))
    table = np.array(rows, dtype=float).reshape(-1, 4).T
    return Walls(
        np.array(normals).reshape(-1, atoms.shape[1]),
        np.array(offsets),
        table[0].astype(np.int64),
        table[1].astype(np.int64),
        table[2],
        table[3],
        lengths,
        filter_,
    )
