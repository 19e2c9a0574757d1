"""Gradient flow W' = -grad L of all weights, exactly, from one change of an activation to the next.

Between two changes the same nodes are active for the same configurations of the leaves, and the flow is smooth. Where
a pre-activation reaches 0 the flow goes on with another pattern of active nodes, if it crosses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.latent_tree.initial import latent_coordinates
from meanfield.families.latent_tree.many_nodes.finite import node_coordinates, nodes_of
from meanfield.families.latent_tree.pieces import Pieces
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.families.latent_tree.sizes import check_tables
from meanfield.families.latent_tree.tables import Tables
from meanfield.families.latent_tree.weights import Weights
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import InTime, check_at_extremes
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


@solver
def solve_population(problem: Problem) -> Solved:
    """Gradient flow of all weights on the population loss, with exact averages.

    Parameters
    ----------
    problem : Problem
        `population.tolerance` is the error of a step relative to the weights.

    Returns
    -------
    xarray.Dataset
        `loss`, `selectivity`, `correlation` and `weights` at the output times, with `training.average_rate` also those
        of averaged weights, `loss_average`, `selectivity_average` and `weights_average`. The attribute `status` is
        `complete`, `interrupted`, or `failed: ...` with the time at which weights become infinite, as they do in finite
        time without output normalisation; what was not reached is NaN.

    Raises
    ------
    InputError
        If exact averages do not fit; see `meanfield.families.latent_tree.sizes.check_tables`.

    Notes
    -----
    Where the flow from both sides leads to the surface on which a pre-activation is 0, it slides along it: the node has
    the slope between 0 and 1 there with which it stays, which is Filippov's solution. Source: latent_tree.md, sections
    1.4 and 3.2.
    """
    check_problem(problem, Problem)
    check_population(problem)
    tables, start = tables_of(problem), problem.initial_weights
    states, status, pieces = _followed(tables, start)
    problems = list(map(InTime(problem), problem.time.outputs_at))
    arrays = {"time": problem.time.outputs_at, "weights": states} | observables(tables, start, states, problems)
    if pieces.averages is not None:
        found = observables(tables, start, pieces.averages, problems) | {"weights": pieces.averages}
        arrays |= {f"{name}_average": found[name] for name in ("loss", "selectivity", "weights")}
    arrays |= node_coordinates(problem)
    effort = {"changes": pieces.changes, "slides": pieces.slides}
    return Solved("population", arrays | latent_coordinates(problem.shape), status, effort=effort)


def check_population(problem: Problem) -> None:
    """Refuse problems whose exact averages do not fit.

    Raises
    ------
    InputError
        See `meanfield.families.latent_tree.sizes.check_tables`.
    """
    check_at_extremes(problem, check_tables)


def _followed(tables: Tables, start: Weights) -> tuple[FloatArray, str, Pieces]:
    """Weights at the output times, NaN where they were not reached; the status; and how the path went."""
    problem = tables.problem
    times = problem.time.outputs_at
    a = problem.training.average_rate
    b = problem.training.momentum_rate
    pieces = Pieces(tables, start, times, problem.population.tolerance, average_rate=a, momentum_rate=b)
    status = "complete"
    with progress_bar(float(times[-1]), "gradient flow", "t") as bar:
        try:
            while pieces.time < times[-1]:
                bar.update(pieces.time - bar.n)
                pieces.follow()
        except BlowUpError as error:
            status = error.status
        except KeyboardInterrupt:
            status = "interrupted"
    return pieces.states, status, pieces


def observables(tables: Tables, like: Weights, states: FloatArray, at: Sequence[Problem]) -> dict[str, FloatArray]:
    """Loss, selectivities and correlations for weights in rows; NaN for rows that are not finite.

    Parameters
    ----------
    states : ndarray, shape (rows, weights)
    at : sequence of Problem
        What the loss is of each row.
    """
    loss, gap = (np.full(len(states), np.nan) for _ in range(2))
    averages = tables.problem.averages_nodes
    nodes = (len(like.shape.level_of), like.shape.nodes)
    selectivity, correlation = (np.full((len(states), *nodes), np.nan) for _ in range(2))
    for i in np.flatnonzero(np.isfinite(states).all(axis=1)):
        passed = tables.forward(like.like(states[i]))
        loss[i] = tables.evaluate(passed, at[int(i)].contrast).value
        gap[i] = tables.gap(tables.outputs(passed)) if averages else np.nan
        moments = tables.moments(passed)
        selectivity[i], correlation[i] = moments.selectivity, moments.correlation
    found = {"loss": loss, "selectivity": selectivity, "correlation": correlation}
    if averages:
        found |= {"Delta": gap, "square": nodes_of(like, states).square}
    return found
