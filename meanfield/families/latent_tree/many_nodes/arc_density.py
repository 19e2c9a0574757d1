"""Density of nodes with two weights that follow any slope of the loss: pieces of arcs that move along exact paths.

They are to the circle what triangles are to the sphere, see `meanfield.families.latent_tree.many_nodes.sphere_density`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.families.latent_tree.many_nodes.carried import Carried, Nodes
from meanfield.families.latent_tree.many_nodes.carried_density import on_cells
from meanfield.families.latent_tree.many_nodes.circle import TURN, Circle
from meanfield.families.latent_tree.many_nodes.driven import advance
from meanfield.families.latent_tree.many_nodes.ensemble import faces
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Density, parts_of
from meanfield.families.latent_tree.problem import Problem
from meanfield.typing import BoolArray, FloatArray

FEWEST, MOST = 128, 4096
"""Numbers of pieces of the circle, in the first run and the last."""

SAME_PLACE = 1e-9
"""Distance of the ends of a piece in radians at which all of it is at a gate."""


def on_arcs(problem: Problem) -> Density:
    """Density of a problem whose nodes have two weights."""
    return on_cells(problem, "density", (FEWEST, MOST), partial(_run, problem), "pieces of the circle")


def carried_arcs(problem: Problem, count: int) -> tuple[FloatArray, Carried]:
    """Both ends of pieces of arcs between gates, shape (pieces, 2), and nodes in their middles."""
    parts = parts_of(problem)
    edges, arc = faces(Circle(parts[0]), count)
    inside = arc[1:] == arc[:-1]
    ends = np.stack([edges[:-1][inside], edges[1:][inside]], axis=1)
    half = 0.5 * np.diff(ends, axis=1)[:, 0]
    # The mean of w over a piece is sin(half)/half times the direction of its middle.
    return ends, Carried(*parts, _direction(ends.mean(axis=1)), 2.0 * half / TURN, 2.0 * np.sin(half) / TURN)


def _direction(angle: FloatArray) -> FloatArray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _run(problem: Problem, count: int) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times from so many pieces, and the status."""
    ends, nodes = carried_arcs(problem, count)
    circle = Circle(nodes.inputs)
    edges, arc = faces(circle, problem.density.cells)
    within = arc[1:] == arc[:-1]
    low, high = edges[:-1][within], edges[1:][within]

    def see(places: Nodes, others: Nodes) -> dict[str, FloatArray]:
        rows = len(nodes.polarity) * len(SIGNS)
        rho, atom = np.zeros((rows, len(low))), np.zeros((rows, len(circle.gates)))
        held = (others.side == 0).any(axis=1)
        angle = np.arctan2(others.w[:, 1], others.w[:, 0]).reshape(len(nodes.rows), -1, 2)
        for row, at, stays in zip(nodes.rows, angle, held.reshape(angle.shape), strict=True):
            share = nodes.shares[row % len(SIGNS)]
            free, atom[row] = _seen(at, share * nodes.weight, stays.all(axis=1), circle.gates)
            rho[row] = _before(free, high, at) - _before(free, low, at)
        found = {"rho": np.maximum(rho, 0.0) / (high - low), "atom": atom}  # of rounding
        return {name: values.reshape(-1, len(SIGNS), values.shape[-1]) for name, values in found.items()}

    label = f"density, {count} pieces of the circle"
    # Ends at gates belong to the arc of their piece.
    inside = _direction(ends + np.array([1e-6, -1e-6]) * np.diff(ends, axis=1))
    others = nodes.starting(_direction(ends).reshape(-1, 2), inside.reshape(-1, 2))
    found, status = advance(problem, nodes, others, FEWEST / count, label, see)
    coordinates = {
        "angle": 0.5 * (low + high),
        "angle_bnds": np.stack([low, high], axis=1),
        "gate": circle.gates,
    }
    return found | coordinates, status


def _seen(angle: FloatArray, mass: FloatArray, stays: BoolArray, gates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Masses of pieces that are not at gates, and of the gates.

    Parameters
    ----------
    angle : ndarray, shape (pieces, 2)
        Of the ends of pieces.
    mass : ndarray, shape (pieces,)
    stays : ndarray of bool, shape (pieces,)
        Whether both ends stay at gates.
    """
    at_gate = stays & (np.abs(_turned(angle[:, 1] - angle[:, 0])) < SAME_PLACE)
    gate = np.abs(_turned(angle[at_gate, :1] - gates)).argmin(axis=1)
    return np.where(at_gate, 0.0, mass), np.asarray(np.bincount(gate, mass[at_gate], len(gates)), dtype=float)


def _turned(angle: FloatArray) -> FloatArray:
    """Angles between -pi and pi."""
    return np.asarray(np.mod(angle + np.pi, TURN) - np.pi)


def _before(mass: FloatArray, place: FloatArray, angle: FloatArray) -> FloatArray:
    """Masses on the way from the first end to places, and once more for each turn; pieces are even between their ends.

    Parameters
    ----------
    angle : ndarray, shape (pieces, 2)
        Of the ends of pieces, which follow each other around the circle.
    """
    steps = np.mod(np.diff(angle.ravel()), TURN)
    steps[steps > TURN - SAME_PLACE] = 0.0  # rounding
    along = np.concatenate([[0.0], np.cumsum(steps)])
    total = np.concatenate([[0.0], np.cumsum(np.stack([mass, np.zeros_like(mass)], axis=1))[:-1]])
    from_first = place - angle[0, 0]
    turns = np.floor(from_first / TURN)
    return np.asarray(mass.sum() * turns + np.interp(from_first - TURN * turns, along, total))
