"""Flow of nodes on the circle of directions of their two weights, exactly (latent_tree.md, section 3.4).

The selectivity s(w) of a ReLU node is linear on arcs between gates, angles at which an input turns active: s = |g|
cos(theta - phi) for |w| = 1. On an arc theta' = s'(theta) is tan(x/2) = tan(x0/2) e^(-|g| t) with x = theta - phi, and
nodes go from arc to arc. Where the next arc does not lead on they stay at the gate. Nodes with |w| = |v| have the same
directions, and log|w| grows by the integral of s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.typing import FloatArray, IntArray

TURN = 2.0 * np.pi

AT_REST = 1e-13
"""Sine of the angle between two directions that are the same but for rounding."""


@dataclass(frozen=True)
class Circle:
    """Directions of nodes that see some inputs, which decide the gates.

    Parameters
    ----------
    inputs : ndarray, shape (configurations, 2)
        Inputs of a node, with a 1 for the bias.
    """

    inputs: FloatArray

    @cached_property
    def gates(self) -> FloatArray:
        """Increasing angles at which an input turns active, within one turn from the first, shape (gates,)."""
        seen = self.inputs[(self.inputs != 0.0).any(axis=1)]
        angle = np.arctan2(seen[:, 1], seen[:, 0])[:, None] + 0.5 * np.pi * np.array([-1.0, 1.0])
        angle = np.sort(np.mod(angle.ravel() + np.pi, TURN) - np.pi)
        apart = np.diff(angle, append=angle[0] + TURN) > AT_REST
        return angle[np.roll(apart, 1)]

    @cached_property
    def ends(self) -> FloatArray:
        """Ends of each arc, of which the last goes on to the first gate a turn later, shape (arcs, 2)."""
        return np.stack([self.gates, np.append(self.gates[1:], self.gates[0] + TURN)], axis=1)

    @cached_property
    def active(self) -> FloatArray:
        """1 where an input is active on an arc, else 0, shape (arcs, configurations)."""
        middle = self.ends.mean(axis=1)
        return np.asarray(np.stack([np.cos(middle), np.sin(middle)], axis=1) @ self.inputs.T > 0.0, dtype=float)

    def flows(self, difference: FloatArray) -> Flows:
        """Flows of nodes of several latents.

        Parameters
        ----------
        difference : ndarray, shape (latents, configurations)
            (P(c|1) - P(c|0))/2.
        """
        g = np.einsum("ac,lc,ci->lai", self.active, difference, self.inputs)
        size = np.hypot(g[..., 0], g[..., 1])
        middle = self.ends.mean(axis=1)
        offset = np.mod(middle - np.arctan2(g[..., 1], g[..., 0]) + np.pi, TURN) - np.pi
        return Flows(self, size, middle - offset)


@dataclass(frozen=True)
class Points:
    """Places of nodes.

    Parameters
    ----------
    angle : ndarray, shape (points,)
        Within the arc, or at one of its ends.
    turned : ndarray, shape (points,)
        The same plus whole turns that lie behind.
    arc : ndarray of int, shape (points,)
    growth : ndarray, shape (points,)
        log|w| where lengths are trained.
    """

    angle: FloatArray
    turned: FloatArray
    arc: IntArray
    growth: FloatArray


@dataclass(frozen=True)
class Flows:
    """Flow of the nodes of several latents on the same circle.

    Parameters
    ----------
    size, phase : ndarray, shape (latents, arcs)
        |g|, and phi within a turn of the arc.
    """

    circle: Circle
    size: FloatArray
    phase: FloatArray

    def selectivity(self, row: IntArray, angle: FloatArray, arc: IntArray) -> FloatArray:
        """Selectivity s of nodes with |w| = 1, shape (points,)."""
        return self.size[row, arc] * np.cos(angle - self.phase[row, arc])

    def push(self, row: IntArray, angle: FloatArray, arc: IntArray, duration: FloatArray) -> Points:
        """Places of nodes after some time, which may be negative.

        Parameters
        ----------
        row : ndarray of int, shape (points,)
            Latent of each node.
        angle : ndarray, shape (points,)
        arc : ndarray of int, shape (points,)
            The arc of each, which decides for nodes at a gate in which they start.
        duration : ndarray, shape (points,)
        """
        x = angle.copy()
        arc = arc.copy()
        growth = np.zeros(angle.shape)
        turns = np.zeros(angle.shape)
        sign = np.copysign(1.0, duration)
        left = np.abs(duration)
        goes = np.arange(len(angle))
        arcs = len(self.circle.gates)
        while len(goes):
            here, in_arc = row[goes], arc[goes]
            rate = sign[goes] * self.size[here, in_arc]
            phase = self.phase[here, in_arc]
            offset = x[goes] - phase
            ahead = _direction(rate, offset)
            end = self.circle.ends[in_arc, (ahead > 0.0).astype(int)]
            time = np.where(ahead == 0.0, np.inf, _time(rate, offset, end - phase))
            leaves = time <= left[goes]
            inside = np.where(leaves, time, left[goes])
            growth[goes] += _growth(rate, offset, inside)
            x[goes] = np.where(leaves, end, phase + _moved(rate, offset, inside))
            left[goes] -= inside
            goes, ahead = goes[leaves], ahead[leaves].astype(int)
            following = arc[goes] + ahead
            wraps = following // arcs
            following = following - arcs * wraps
            there = x[goes] - TURN * wraps
            further = sign[goes] * self.size[row[goes], following]
            crosses = _direction(further, there - self.phase[row[goes], following]) == ahead
            stays = goes[~crosses]
            growth[stays] += left[stays] * sign[stays] * self.selectivity(row[stays], x[stays], arc[stays])
            goes = goes[crosses]
            arc[goes] = following[crosses]
            x[goes] = there[crosses]
            turns[goes] = turns[goes] + wraps[crosses]
        return Points(x, x + TURN * turns, arc, growth)


def _direction(rate: FloatArray, x: FloatArray) -> FloatArray:
    """Sign of x' = -rate sin x, 0 where nothing moves."""
    sine = np.sin(x)
    return np.where(np.abs(sine) > AT_REST, -np.sign(rate * sine), 0.0)


def _time(rate: FloatArray, x: FloatArray, end: FloatArray) -> FloatArray:
    """Time until x' = -rate sin x reaches an end; infinite if it never does."""
    at_rest = np.abs(np.sin(end)) <= AT_REST
    with np.errstate(all="ignore"):
        ratio = np.tan(0.5 * x) / np.tan(0.5 * end)
        time = np.log(np.where(ratio > 0.0, ratio, np.nan)) / rate
    return np.where(at_rest | ~(time >= 0.0), np.where(x == end, 0.0, np.inf), time)


def _moved(rate: FloatArray, x: FloatArray, time: FloatArray) -> FloatArray:
    """Solution of x' = -rate sin x on (-pi, pi)."""
    turned = np.exp(-np.abs(rate) * time)
    up = np.where(rate > 0.0, turned, 1.0)
    down = np.where(rate > 0.0, 1.0, turned)
    return np.asarray(2.0 * np.arctan2(up * np.sin(0.5 * x), down * np.cos(0.5 * x)))


def _growth(rate: FloatArray, x: FloatArray, time: FloatArray) -> FloatArray:
    """Integral of rate cos x along the solution: the logarithm of cosh(rate t) + cos x sinh(rate t)."""
    c, depth = np.sign(rate) * np.cos(x), np.abs(rate) * time
    with np.errstate(divide="ignore"):  # at a point of rest one of the two is exactly 0
        return depth + np.logaddexp(np.log(0.5 * (1.0 + c)), np.log(0.5 * (1.0 - c)) - 2.0 * depth)
