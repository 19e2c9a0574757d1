"""Arrangements of planes through 0: the subspaces in which they meet, and the cells between them.

Cells are found from the rays in which planes meet: around a ray the planes that hold it are an arrangement of one
dimension less.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np

from meanfield.typing import FloatArray, IntArray

ON_PLANE = 1e-9
"""Largest product of unit vectors that is 0."""


@dataclass(frozen=True)
class Flat:
    """Subspace in which planes meet.

    Parameters
    ----------
    planes : ndarray of int
        Numbers of all planes that hold it.
    basis : ndarray, shape (d, k)
        Orthonormal vectors of it.
    """

    planes: IntArray
    basis: FloatArray


def is_small(planes: int, d: int) -> bool:
    """Whether cells of so many planes in d coordinates are enumerated."""
    return comb(planes, d - 1) <= 4000  # rays of an arrangement whose cells are enumerated


def unit(w: FloatArray) -> FloatArray:
    """Vectors of length 1 along the last axis."""
    return np.asarray(w / np.linalg.norm(w, axis=-1, keepdims=True))


def null_space(rows: FloatArray, d: int) -> FloatArray:
    """Orthonormal vectors that are orthogonal to all rows, shape (d, k)."""
    if not len(rows):
        return np.eye(d)
    _, size, vectors = np.linalg.svd(rows)
    rank = int(np.count_nonzero(size > 1e-10 * max(size[0], 1e-300)))
    return vectors[rank:].T


def flats(normal: FloatArray, d: int) -> list[Flat]:
    """Subspaces of one dimension or more in which planes meet, the whole space among them.

    Parameters
    ----------
    normal : ndarray, shape (planes, d)
        Unit normals, no two of them parallel.
    """
    found: dict[tuple[int, ...], Flat] = {}
    for count in range(d):
        for chosen in combinations(range(len(normal)), count):
            basis = null_space(normal[list(chosen)], d)
            if basis.shape[1] != d - count:
                continue
            planes = np.flatnonzero(np.linalg.norm(normal @ basis, axis=1) <= ON_PLANE)
            found.setdefault(tuple(planes.tolist()), Flat(planes, basis))
    return list(found.values())


def cells(normal: FloatArray) -> FloatArray:
    """Signs of the planes in each cell, shape (cells, planes).

    Parameters
    ----------
    normal : ndarray, shape (planes, k)
        Normals of any length but 0, parallel ones included.
    """
    planes, k = normal.shape
    if not planes:
        return np.ones((1, 0))
    unit = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    _, size, vectors = np.linalg.svd(unit, full_matrices=False)
    rank = int(np.count_nonzero(size > ON_PLANE))
    if rank < k:
        return cells(unit @ vectors[:rank].T)
    if k == 1:
        return np.stack([np.sign(unit[:, 0]), -np.sign(unit[:, 0])])
    if planes == k:
        return np.array(list(product((1.0, -1.0), repeat=k)))
    rows: list[FloatArray] = []
    seen: set[tuple[int, ...]] = set()
    for chosen in combinations(range(planes), k - 1):
        ray = null_space(unit[list(chosen)], k)
        if ray.shape[1] != 1:
            continue
        side = unit @ ray[:, 0]
        local = np.flatnonzero(np.abs(side) <= ON_PLANE)
        if (key := tuple(local.tolist())) in seen:
            continue
        seen.add(key)
        around = cells(unit[local] @ null_space(ray.T, k))
        for direction in (1.0, -1.0):
            signs = np.tile(direction * np.sign(side), (len(around), 1))
            signs[:, local] = around
            rows.append(signs)
    return np.unique(np.concatenate(rows), axis=0)
