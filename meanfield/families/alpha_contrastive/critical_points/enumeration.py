"""All critical points of a filter in space: cell by cell, wall by wall, and where walls meet.

Where A(w) is constant between walls, the eigenvectors of A in every cell are all there are, and likewise in the
subspaces in which walls meet, for which multipliers of the walls are then found. Otherwise, in three coordinates, roots
on the circle of each wall are enumerated as on any circle, and those between walls are the ones that the field shows on
a mesh, extended smoothly beyond the walls of each cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.arrangement import Flat, cells, flats, is_small
from meanfield.families.alpha_contrastive.critical_points.rest import SpherePoint, held_point, polished, tangent_of
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.walls import Walls, make_walls
from meanfield.numerics.analytic_roots import roots_between
from meanfield.typing import BoolArray, FloatArray

Completeness = Literal["complete", "mesh", "searched"]
"""Completeness of critical points: all are known; all but pairs closer than a mesh; those that random filters find."""

MERIDIANS = (64, 128, 256)
"""Numbers of edges of the mesh from pole to pole: the next one is taken where indices of points do not add up."""

SAME_POINT = 1e-7
"""Distance of two points that are one."""

TURN = 2.0 * np.pi


def is_constant(field: DiscreteField) -> bool:
    """Whether A(w) is constant between walls."""
    return (field.frozen is not None or field.pairs.uniform) and field.filter.straight is not None


def is_enumerated(field: DiscreteField, walls: int) -> bool:
    """Whether points are enumerated where there are so many walls."""
    d = field.atoms.shape[1]
    return is_small(walls, d) and (is_constant(field) or d == 3)


def enumerated_points(field: DiscreteField) -> tuple[list[SpherePoint], Completeness]:
    """Critical points that are enumerated, and whether these are all."""
    d = field.atoms.shape[1]
    walls = make_walls(field.atoms, field.filter)
    constant = is_constant(field)
    if not is_enumerated(field, len(walls.offset)):
        return [], "searched"
    found: list[SpherePoint] = []
    for flat in flats(walls.normal, d):
        hold = np.zeros(len(field.atoms), dtype=bool)
        hold[walls.atom[np.isin(walls.number, flat.planes)]] = True
        if constant or flat.basis.shape[1] == 1:
            candidates = _eigenvectors(field, walls, flat)
        elif flat.basis.shape[1] == 2:
            candidates = _on_circle_of_wall(field, walls, flat)
        else:
            found += _on_mesh(field, walls)
            continue
        points = (held_point(field, w, hold) for w in candidates)
        found += [point for point in points if point is not None]
    return found, "complete" if constant else "mesh"


def _eigenvectors(field: DiscreteField, walls: Walls, flat: Flat) -> Iterator[FloatArray]:
    """Eigenvectors of A in a flat, in those of its cells for which A is."""
    V = flat.basis
    if V.shape[1] == 1:
        yield from (V[:, 0], -V[:, 0])
        return
    others = np.setdiff1d(np.arange(len(walls.offset)), flat.planes)
    signs = np.ones((1, len(walls.offset)))
    inside = cells(walls.normal[others] @ V)
    signs = np.repeat(signs, len(inside), axis=0)
    signs[:, others] = inside
    L = field.laplacian(np.eye(len(V))[0])
    _, slope = walls.outputs(np.zeros((len(signs), len(field.atoms))), signs)
    x = slope[:, :, None] * (field.atoms @ V)
    values, vectors = np.linalg.eigh(np.swapaxes(x, 1, 2) @ (L @ x))
    gaps = np.diff(values, axis=1, prepend=-np.inf, append=np.inf)
    # Eigenvectors of closer eigenvalues are not isolated.
    isolated = np.minimum(gaps[:, :-1], gaps[:, 1:]) > 1e-9 * np.abs(values[:, -1:])
    for sign in (1.0, -1.0):
        w = sign * np.swapaxes(vectors, 1, 2) @ V.T
        fits = np.all((w @ walls.normal[others].T > 0.0) == (inside > 0.0)[:, None], axis=2)
        yield from w[fits & isolated]


def _on_circle_of_wall(field: DiscreteField, walls: Walls, flat: Flat) -> Iterator[FloatArray]:
    """Roots of the field along a circle in which walls hold filters."""
    V = flat.basis
    others = np.setdiff1d(np.arange(len(walls.offset)), flat.planes)
    on_wall = walls.number[np.isin(walls.number, flat.planes)]
    hold = np.isin(np.arange(len(field.atoms)), walls.atom[np.isin(walls.number, on_wall)])

    def along(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        w = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ V.T
        z = np.where(hold, 0.0, w @ field.atoms.T)
        F = (field.pull(field.filter.value(z)) * np.where(hold, 0.0, field.filter.slope(z))) @ field.atoms
        ahead = np.stack([-np.sin(angle), np.cos(angle)], axis=1) @ V.T
        return np.sum(F * ahead, axis=1), np.abs(F).sum(axis=1) * field.amplification

    directions = walls.normal[others] @ V
    crossed = np.arctan2(directions[:, 1], directions[:, 0])[:, None] + np.array([0.5, -0.5]) * np.pi
    regular = np.linspace(0.0, TURN, 9)  # eight intervals at least
    ends = np.unique(np.concatenate([np.mod(crossed.ravel(), TURN), regular]))
    ends = ends[np.append(np.diff(ends) > 1e-10, True)]
    for angle in roots_between(along, ends):
        if np.abs(np.cos(angle - np.arctan2(directions[:, 1], directions[:, 0]))).min(initial=1.0) > 1e-10:
            yield V @ np.array([np.cos(angle), np.sin(angle)])


def _on_mesh(field: DiscreteField, walls: Walls) -> list[SpherePoint]:
    """Critical points between walls; where there are no walls, on meshes so fine that their indices add up."""
    energy = field.energy(_mesh(MERIDIANS[0])[0])
    # Importances underflow below that energy, and indices are not counted.
    countable = not len(walls.offset) and energy.min() > 1e-6 * energy.max()
    found: list[SpherePoint] = []
    for meridian in MERIDIANS:
        found = _roots_of_mesh(field, walls, meridian)
        # Maxima less saddles plus minima: Euler's characteristic of the sphere.
        if not countable or _sum_of_indices(field, found) == 2:
            break
    return found


def _sum_of_indices(field: DiscreteField, points: list[SpherePoint]) -> int:
    """Maxima less saddles plus minima of a smooth energy, each counted once."""
    once: list[FloatArray] = []
    for point in points:
        if all(np.linalg.norm(point.w - w) > SAME_POINT for w in once):
            once.append(point.w)
    return sum(int(np.sign(np.linalg.det(field.jacobians(w, tangent_of(np.eye(3), w))[0]))) for w in once)


def _roots_of_mesh(field: DiscreteField, walls: Walls, meridian: int) -> list[SpherePoint]:
    """Critical points in triangles of a mesh in which the field, extended from one side, has a root."""
    corners, triangles = _mesh(meridian)
    side = walls.side(corners)
    patterns = [side[triangles[:, k]] for k in range(3)]
    found: list[SpherePoint] = []
    for k, pattern in enumerate(patterns):
        new = np.ones(len(triangles), dtype=bool)
        for earlier in patterns[:k]:
            new &= np.any(pattern != earlier, axis=1)
        chosen = np.flatnonzero(new)
        roots, around = _linear_roots(field, walls, corners[triangles[chosen]], pattern[chosen])
        found += _polished_distinct(field, roots)
        if meridian > MERIDIANS[0]:  # of two points in a triangle, corners on either side lead to each
            found += _polished_distinct(field, around)
    inside = cells(walls.normal) if len(walls.offset) else np.ones((1, 0))
    middles = np.array([_middle(walls.normal, signs) for signs in inside])
    return found + _polished_distinct(field, middles)


def _middle(normal: FloatArray, signs: FloatArray) -> FloatArray:
    """A point in a cell: the sum of its rays, or of the normals that point into it."""
    inward = signs[:, None] * normal
    rays = np.cross(inward[:, None], inward[None]).reshape(-1, 3)
    rays = np.concatenate([rays, -rays])
    rays = rays[np.linalg.norm(rays, axis=1) > 1e-9]
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    rays = rays[np.all(rays @ inward.T >= -1e-9, axis=1)]
    total = rays.sum(axis=0) if len(rays) else inward.sum(axis=0) + np.array([1e-3, 2e-3, 3e-3])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-300))


def _polished_distinct(field: DiscreteField, starts: FloatArray) -> list[SpherePoint]:
    points = [polished(field, w, -1.0) for w in starts]
    return [point for point in points if point is not None]


def _linear_roots(
    field: DiscreteField, walls: Walls, corners: FloatArray, side: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Roots of the direction of the tangential field, linear in each triangle, in it or near, and its corners."""
    flat = corners.reshape(-1, 3)
    h, slope = walls.outputs(flat @ field.atoms.T, np.repeat(side, 3, axis=0))
    F = ((field.pull(h) * slope) @ field.atoms).reshape(corners.shape)
    F -= np.sum(F * corners, axis=2, keepdims=True) * corners
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    first = corners[:, 1] - corners[:, 0]
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.cross(normal, first)
    second /= np.maximum(np.linalg.norm(second, axis=1, keepdims=True), 1e-300)
    size = np.linalg.norm(F, axis=2, keepdims=True)  # directions have the same roots, and no steep decay
    plane = np.einsum("tcx,atx->tca", F / np.maximum(size, 1e-300), np.stack([first, second]))
    system = np.concatenate([np.swapaxes(plane, 1, 2), np.ones((len(plane), 1, 3))], axis=1)
    share = np.linalg.pinv(system) @ np.array([0.0, 0.0, 1.0])
    residual = np.abs(np.einsum("tab,tb->ta", system, share) - np.array([0.0, 0.0, 1.0])).max(axis=1)
    felt = size.max(axis=(1, 2)) > 1e-9 * size.max(initial=0.0)  # roots of a smaller field are rounding
    # The root of the linear field in a triangle may lie beyond it by 0.35 of its size.
    near: BoolArray = np.all(share > -0.35, axis=1) & (residual < 1e-6) & felt
    w = np.einsum("tc,tcx->tx", share[near], corners[near])
    return w / np.linalg.norm(w, axis=1, keepdims=True), corners[near].reshape(-1, 3)


def _mesh(meridian: int) -> tuple[FloatArray, FloatArray]:
    """Corners of a mesh of the sphere with so many edges from pole to pole, and the corners of its triangles."""
    polar, around = np.linspace(0.0, np.pi, meridian + 1), 2 * meridian
    azimuth = TURN * (np.arange(around) + 0.123) / around
    sine = np.sin(polar[1:-1])[:, None]
    z = np.broadcast_to(np.cos(polar[1:-1])[:, None], (meridian - 1, around))
    inner = np.stack([sine * np.cos(azimuth), sine * np.sin(azimuth), z], axis=-1).reshape(-1, 3)
    corners = np.concatenate([inner, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    here = np.arange(len(inner)).reshape(meridian - 1, around)
    right = np.roll(here, -1, axis=1)
    parts = [
        (here[:-1], right[:-1], here[1:]),
        (right[:-1], right[1:], here[1:]),
        (here[0], right[0], np.full(around, len(inner))),
        (here[-1], right[-1], np.full(around, len(inner) + 1)),
    ]
    return corners, np.concatenate([np.stack([each.ravel() for each in part], axis=1) for part in parts])
