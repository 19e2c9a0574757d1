"""Levels with their estimated errors, and the solution that is put together from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.density.lagrangian import display
from meanfield.mckean_vlasov.density.lagrangian.estimate import Correction, extrapolated, weights_of
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.solution import Errors, Solution, sampled
from meanfield.numerics.finite_volumes.grid import Grid
from meanfield.numerics.refinement import missed
from meanfield.typing import FloatArray


@dataclass
class Parts:
    """Parts of the error of q, r and a free norm, shape (outputs, judged) each."""

    points: FloatArray
    steps: FloatArray
    nodes: FloatArray
    norm: FloatArray

    @property
    def total(self) -> FloatArray:
        """Sum of the parts."""
        return self.points + self.steps + self.nodes + self.norm

    @property
    def of_points(self) -> float:
        """Largest part that more points reduce."""
        return float(self.points.max())

    @property
    def of_steps(self) -> float:
        """Largest part that shorter steps reduce."""
        return float((self.steps + self.norm).max())

    @property
    def of_nodes(self) -> float:
        """Largest part that more nodes in u reduce."""
        return float(self.nodes.max())

    @property
    def largest(self) -> str:
        """Name of the largest part."""
        sizes = {"points": self.points, "time steps": self.steps, "nodes in u": self.nodes, "norm": self.norm}
        return max(sizes, key=lambda name: float(sizes[name].max()))


@dataclass(frozen=True)
class Found:
    """Levels of one accuracy in time, corrected for more nodes in u, with an estimate of their error.

    The coarsest level is there with longer steps, too.
    """

    levels: list[Level]
    correction: Correction
    parts: Parts
    by_steps: tuple[Level, Level]

    @property
    def error(self) -> float:
        """Largest estimated error of q, r and a free norm."""
        return float(self.parts.total.max())

    def missed(self, tolerance: float, why: str, chosen_nodes: bool) -> str:
        """Status of a run that misses its tolerance, for nodes in u that the user chose or not."""
        part, remedy = self.parts.largest, "raise it, or take density.scheme = 'eulerian'"
        if part == "nodes in u" and chosen_nodes:
            remedy = "raise density.feature_nodes, or leave it out"
        elif part == "nodes in u":
            why = "more of them would take too long"
        what = f"{self.levels[0].limit.what_is_judged} (mostly of the {part})"
        return f"failed: {missed(what, self.error, 'density.tolerance', tolerance, f'{why}; {remedy}')}"


def assembled(found: Found | None, levels: list[Level], status: str) -> Solution:
    """Solution with the q and r that were found, if any, and densities by extrapolation of the last two levels."""
    moments, finest = extrapolated(found.levels if found else levels).copy(), levels[-1]
    nodes, edges = finest.frames.nodes, display.edges_for(finest)
    grid, outputs = Grid(edges, nodes.u, nodes.u_weight), len(moments)
    P, shape = np.empty((outputs, *grid.shape)), np.full(outputs, np.nan)
    for index in range(outputs):  # one after the other, because all quantiles would not stay in fast memory
        xi, changed = _quantiles(levels, edges, index, extrapolate=found is not None)
        P[index] = nodes.unfolded(display.masses(xi) / np.diff(edges), 0, 1)
        shape[index] = changed
    errors = None
    if found is not None:
        moments[:, :-1] += found.correction.moments
        # The change by extrapolation counts in full: two levels do not tell whether they follow the assumed power yet.
        # The cut tails leave 2e-10: a probability of up to 8e-11 beyond the outermost edges is put into the last cells.
        shape = shape + _steps_of_shape(found, finest, edges) + 2e-10
        # The L1 distance of laws that have nothing in common.
        errors = Errors(found.parts.total, np.minimum(shape + _moved(found, moments), 2.0))
    moments[:, -1] = (P @ np.diff(edges)) @ nodes.u_weight
    effort: dict[str, object] = {
        "points": [level.points for level in (found.levels if found else levels)],
        "steps": [level.steps for level in (found.levels if found else levels)],
        "nodes": len(nodes.u_weight),
    }
    return Solution(grid, moments, P, status, effort, errors)


def _quantiles(levels: list[Level], edges: FloatArray, output: int, extrapolate: bool) -> tuple[FloatArray, float]:
    """Quantiles of edges at an output time, shape (nodes solved, edges), and what extrapolation changes in P."""
    finest = levels[-1]
    raw = display.quantiles(finest, edges, output)
    if not extrapolate:
        return raw, np.nan
    weights = weights_of([level.points for level in levels[-2:]])
    xi = weights[1] * raw + weights[0] * display.quantiles(levels[-2], edges, output)
    np.maximum.accumulate(xi, axis=-1, out=xi)
    return xi, float(display.distances(xi, raw) @ finest.frames.nodes.solved[1])


def _moved(found: Found, moments: FloatArray) -> FloatArray:
    """How far the laws of the nodes move with the errors of q and of E[w^2], which are a part of those of q if kept.

    Means given u move by u.dq, and the variance given u, which is E[w^2] - |q|^2 under linear priors, by 2 q.dq: in L1
    by about sqrt(2/pi) |dq|/s and 4 phi(1) |q| |dq|/s^2 for Gaussians of spread s, together by |dq|/s^2 or so.
    """
    total, limit = found.parts.total, found.levels[0].limit
    q, own = moments[:, : len(limit.coordinates)], limit.overlaps
    changed = (np.abs(found.correction.moments[:, :own]) + total[:, :own]).sum(axis=1) + total[:, own + 1 :].sum(axis=1)
    norm = moments[:, -2] if limit.free_norm else limit.initial_norm
    variance = np.maximum(norm - np.sum(q * q, axis=1), np.finfo(float).tiny)
    return np.asarray(changed / variance)


def _steps_of_shape(found: Found, finest: Level, edges: FloatArray) -> float:
    """What shorter steps change in P, at the worst of some output times."""
    pairs = [
        [display.quantiles(level, edges, output) for level in found.by_steps]
        for output in sampled(len(finest.moments)).tolist()
    ]
    largest = np.max([display.distances(*pair) for pair in pairs], axis=0)
    ratio = finest.tolerance / found.by_steps[0].tolerance
    return ratio * float(largest @ found.by_steps[0].frames.nodes.solved[1])


def steps_error(level: Level, looser: Level) -> FloatArray:
    """Error of the time steps of a level, from the same one with longer ones."""
    change = np.abs(looser.moments - level.moments)[:, : level.limit.judged]
    # A tenth of the change is expected, but a step next to a corner has a lower order, and few steps are as long as
    # their growth allows. Both begin with the same short steps, whose error their difference does not show: the largest
    # counts always.
    return np.broadcast_to(change.max(axis=0), change.shape)
