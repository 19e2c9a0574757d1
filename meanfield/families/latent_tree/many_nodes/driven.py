"""Nodes that follow the slope of the loss by outputs, whatever the loss is of them (latent_tree.md, section 3.4).

Where the loss is no function of one number, or outputs are normalised, nodes see each other through the derivative of
the loss by the outputs for each configuration of the leaves, and no time lets each follow a path of its own. In a short
step that derivative is nearly constant, and for a constant one paths are known, from gate to gate. So a step goes along
them twice: first with the derivative at its start, then with the mean of those at the start and at the end that was
found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meanfield.families.latent_tree.many_nodes.carried import Carried, Nodes, Paths
from meanfield.families.latent_tree.many_nodes.carried_density import See, by_time, follow, seen
from meanfield.families.latent_tree.many_nodes.latents import BLOW_UP_GROWTH, SIGNS, grown_at
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.contrast import Contrast
from meanfield.problems.in_time import InTime, Stretch
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


def has_inner_time(problem: Problem) -> bool:
    """Whether nodes see each other through one number alone, and in a time of their own not at all."""
    one = problem.shape.width(problem.shape.depth) == 1
    return problem.loss.kind == "simple" and not problem.normalisation.active and one


def advance(
    problem: Problem, nodes: Carried, others: Nodes, scale: float, label: str, see: See
) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times, NaN where these were not reached, and the status.

    Parameters
    ----------
    others : Nodes
        Further nodes that go along, and count in no average.
    scale : float
        Length of steps, in terms of the longest that are taken; errors are in proportion to its square.
    label : str
        Of the progress bar.
    see : See
    """
    times = problem.time.outputs_at
    if has_inner_time(problem):
        return follow(nodes, others, times, label, see)
    return _Driven(nodes, Tables(problem)).follow(others, times, scale, label, see)


def one_step(problem: Problem, nodes: Carried, step: float) -> None:
    """Take the first step, which says what one costs."""
    driven = _Driven(nodes, Tables(problem))
    stretch = InTime(problem).stretches(problem.time.stop)[0]
    driven.tried(driven.start(stretch), stretch, step, np.inf, step)


class Slope(NamedTuple):
    """What nodes follow.

    Parameters
    ----------
    parts : ndarray, shape (latents, configurations, outputs)
        What nodes of each latent add to the last layer.
    factor : ndarray, shape (rows, configurations)
        What nodes climb is the sum of these times their activations.
    by_bias : ndarray, shape (outputs,)
        Derivative of the loss by the biases of the root.
    """

    loss: float
    Delta: float
    parts: FloatArray
    factor: FloatArray
    by_bias: FloatArray


def slope_of(tables: Tables, activity: FloatArray, bias: FloatArray, contrast: Contrast | None = None) -> Slope:
    """What nodes follow, from the averages of what they add.

    Parameters
    ----------
    activity : ndarray, shape (latents, configurations)
        Averages of v max(w.x, 0) over the nodes of each latent.
    bias : ndarray, shape (outputs,)
        Biases of the root.
    contrast : Contrast, optional
        The loss, by default that of the problem.
    """
    output = tables.problem.shape.output_of
    parts = activity[..., None] * (output[:, None, None] == np.arange(len(bias)))
    parts[0] += bias
    loss, Delta, slope = tables.of_children(parts, contrast)
    own = slope[np.arange(len(output)), :, output]
    factor = -SIGNS[:, None] * own[:, None, :]
    return Slope(loss, Delta, parts, factor.reshape(-1, own.shape[-1]), slope[0].sum(axis=0))


class _State(NamedTuple):
    """Nodes at a time, the biases of the root, and what they follow."""

    time: float
    places: Nodes
    bias: FloatArray
    slope: Slope


@dataclass(frozen=True)
class _Driven:
    """Nodes, and averages over the leaves."""

    nodes: Carried
    tables: Tables

    def follow(
        self, others: Nodes, times: FloatArray, scale: float, label: str, see: See
    ) -> tuple[dict[str, FloatArray], str]:
        """See `advance`."""
        stretches = InTime(self.tables.problem).stretches(float(times[-1]))
        ends, stretch = [each.stop for each in stretches], stretches.pop(0)
        state = self.start(stretch)
        rows = [self._row(state, others, see)]
        stop, now, status = float(times[-1]), 0.0, "complete"
        step = longest = scale * min(stop / 16.0, float(np.diff(times).max()))
        fineness = 0.1 * self.tables.problem.density.tolerance * scale**2  # of the error of densities
        limit = BLOW_UP_GROWTH * np.abs(state.slope.parts).max()
        with progress_bar(stop, label, "t") as bar:
            try:
                for before, time in pairwise(np.union1d(times, ends).tolist()):
                    while now < time:
                        left = time - now
                        wanted = left / np.ceil(left / min(step, scale * (time - before)))
                        # a shorter step is taken whatever its error is
                        state, factor, taken, step = self.tried(state, stretch, wanted, fineness, 1e-9 * stop)
                        step = min(step, longest)
                        others = self._along(factor)(others, taken)
                        now = time if taken == left else now + taken
                        bar.update(now - bar.n)
                        if np.abs(state.slope.parts).max() > limit:
                            return by_time(rows, len(times)), grown_at(now).status
                    if stretches and time >= stretch.stop:
                        stretch = stretches.pop(0)
                        state = self._at(state.places, state.bias, stretch, time)
                    if time in times:
                        rows.append(self._row(state, others, see))
            except KeyboardInterrupt:
                status = "interrupted"
        return by_time(rows, len(times)), status

    def start(self, stretch: Stretch[Problem]) -> _State:
        """Nodes at the start, with biases of 0 at the root."""
        return self._at(self.nodes.starting(self.nodes.w), np.zeros(self.tables.problem.shape.width(2)), stretch, 0.0)

    def _row(self, state: _State, others: Nodes, see: See) -> dict[str, FloatArray]:
        values = {"Delta": np.array(state.slope.Delta), "loss": np.array(state.slope.loss)}
        return values | seen(self.nodes, state.places) | see(state.places, others)

    def _at(self, places: Nodes, bias: FloatArray, stretch: Stretch[Problem], time: float) -> _State:
        slope = slope_of(self.tables, self.nodes.activity(places), bias, stretch.at(time).contrast)
        return _State(time, places, bias, slope)

    def _along(self, factor: FloatArray) -> Callable[[Nodes, float], Nodes]:
        """Motion of nodes for some time, with a constant slope."""
        paths = Paths(self.nodes.paths.gates.with_factor(factor))
        return lambda nodes, time: paths.push(paths.taken_up(nodes), np.full(len(nodes.w), time))

    def tried(
        self, state: _State, stretch: Stretch[Problem], step: float, fineness: float, shortest: float
    ) -> tuple[_State, FloatArray, float, float]:
        """State after a step that is as short as its error asks for; its factor, its length, and that of the next."""
        first = state.slope
        moves = self._along(first.factor)
        while True:
            trial = self._moved(state, stretch, moves, first.by_bias, step)
            factor = 0.5 * (first.factor + trial.slope.factor)
            by_bias = 0.5 * (first.by_bias + trial.slope.by_bias)
            found = self._moved(state, stretch, self._along(factor), by_bias, step)
            size = max(1.0, float(np.abs(found.slope.parts).max()))
            error = float(np.abs(found.slope.parts - trial.slope.parts).max()) / size
            following = step * float(np.clip(0.9 * np.sqrt(fineness / max(error, 1e-300)), 0.2, 2.0))
            if error <= fineness or step <= shortest:
                return found, factor, step, max(following, shortest)
            step = max(following, shortest)

    def _moved(
        self,
        state: _State,
        stretch: Stretch[Problem],
        moves: Callable[[Nodes, float], Nodes],
        by_bias: FloatArray,
        step: float,
    ) -> _State:
        bias = state.bias - step * by_bias if self.tables.problem.network.bias else state.bias
        return self._at(moves(state.places, step), bias, stretch, state.time + step)
