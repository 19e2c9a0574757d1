"""Density of infinitely many nodes per latent (latent_tree.md, section 3.4).

Nodes see each other through what they add to the outputs. With the loss `simple` of one output that is the difference
Delta of the mean outputs alone, and in the time T with dT = o Delta dt nodes do not see each other at all. So they are
pushed along known paths, and T(t) is one differential equation. Else they follow the slope of the loss in short steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import InputError
from meanfield.families.latent_tree.initial import latent_coordinates
from meanfield.families.latent_tree.many_nodes.arc_density import on_arcs
from meanfield.families.latent_tree.many_nodes.driven import has_inner_time, slope_of
from meanfield.families.latent_tree.many_nodes.ensemble import ensemble_of, on_circle
from meanfield.families.latent_tree.many_nodes.finite import node_coordinates
from meanfield.families.latent_tree.many_nodes.latents import Density
from meanfield.families.latent_tree.many_nodes.particle_density import by_particles
from meanfield.families.latent_tree.many_nodes.sphere_density import on_sphere
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import SphereStart
from meanfield.families.latent_tree.sizes import check_tables
from meanfield.families.latent_tree.tables import Tables
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import check_at_extremes
from meanfield.results.solved import Solved, solver

MOST_WEIGHTS = 8
"""Largest number of weights of a node whose paths are followed: 255 gates, of which one meets a hundred."""

INSTEAD = "or use the method 'particles'"

ON_CELLS = {2: on_arcs, 3: on_sphere}
"""Densities on cells, by the number of weights of a node; of two weights with an inner time there is an exact one."""


def check_density(problem: Problem) -> None:
    """Refuse problems whose nodes have no limit that is solved.

    Raises
    ------
    InputError
        With what to change, or the method to use instead.
    """
    check_problem(problem, Problem)
    check_at_extremes(problem, _check_density)


def _check_density(problem: Problem) -> None:
    """Refuse what does not change in time."""
    start = _checked_start(problem)
    _check_outputs(problem, start)
    training = problem.training
    check_no_velocity(training, "population and SGD")
    if training.momentum > 0.0:
        raise InputError(
            f"training.momentum = {training.momentum:g}: a density is solved without, which is that at 1/(1 - mu) "
            "times the time; remove it, and multiply time.stop, and times of schedules and phases, by that"
        )
    check_tables(problem)
    _check_nodes(problem, start)


def _checked_start(problem: Problem) -> SphereStart:
    """Start of nodes; refuse data and starts without a limit of many nodes below the root."""
    start = problem.network.initial
    if problem.data is not None:
        raise InputError(
            f"data.law = '{problem.data.law}': nodes are outputs there, and a density is one of nodes below the root "
            "of a tree; use the method 'population', which follows all of them exactly"
        )
    if not problem.tree.is_symmetric_binary:
        raise InputError(
            "tree: a density is solved for binary latents whose edges have polarities, and leaves that are numbers; "
            f"leave out tree.values and tree.transitions, set tree.leaves to [0.0, 1.0], {INSTEAD}"
        )
    if not isinstance(start, SphereStart):
        raise InputError(
            f"network.initial.law = '{start.law}': a density of nodes needs a start with a limit of many of them; set "
            f"it to 'sphere', {INSTEAD}"
        )
    if problem.initial is not None:
        raise InputError(
            f"initial.from = '{problem.initial.path}': weights of a network are a start of finitely many nodes; use "
            "the method 'population' or 'particles', or remove initial"
        )
    return start


def _check_outputs(problem: Problem, start: SphereStart) -> None:
    """Refuse outputs that cannot turn, and those that turn outgoing weights."""
    output = problem.normalisation
    if start.outputs == 1 and output.active and output.epsilon == 0.0:
        key = "loss.kind = 'nt_xent'" if problem.loss.kind == "nt_xent" else "network.output_normalisation = true"
        less = "loss.kind to 'infonce'" if problem.loss.kind == "nt_xent" else "network.epsilon to more than 0"
        raise InputError(
            f"{key}: one output is normalised to its sign, which no node can change by a little, and nothing moves; "
            f"set network.initial.outputs to 2 or more, or {less}"
        )
    if start.outputs > 1 and not start.fixed_lengths:
        raise InputError(
            f"network.initial.outputs = {start.outputs} with fixed_lengths = false: outgoing weights of nodes turn "
            "from one output to others, and paths are followed where they stay; set network.initial.fixed_lengths to "
            f"true, outputs to 1, {INSTEAD}"
        )


def _check_nodes(problem: Problem, start: SphereStart) -> None:
    """Refuse nodes with too many weights for the scheme, and those that never move."""
    weights, scheme = weights_of(problem), problem.density.scheme
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"tree.children: nodes have {_in_words(problem)}, and paths of nodes are followed with {MOST_WEIGHTS} at "
            f"most; give latents fewer leaves, {INSTEAD}"
        )
    if scheme == "finite_volumes" and weights not in ON_CELLS:
        raise InputError(
            f"density.scheme = 'finite_volumes': nodes have {_in_words(problem)}, and cells are for two or three "
            "numbers; set it to 'particles', or leave the key out"
        )
    first = ensemble_of(problem)
    slope = slope_of(Tables(problem), first.first_activity, np.zeros(start.outputs))
    if np.abs(slope.factor * np.linalg.norm(first.inputs, axis=1)).max() < 1e-12:  # rounding
        raise InputError(
            f"network.initial.positive = {start.positive:g}: the mean outputs for both values of the root are the "
            "same, and infinitely many nodes never move from there; take another share, or polarities that are not 0"
        )


def weights_of(problem: Problem) -> int:
    """Number of weights of a node below the root, with its bias."""
    return problem.shape.children[0] + problem.network.bias


def _in_words(problem: Problem) -> str:
    return f"{problem.shape.children[0]} weight(s){' and a bias' if problem.network.bias else ''}"


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of infinitely many nodes for each latent below the root.

    Parameters
    ----------
    problem : Problem
        With two levels of latents, and the start `sphere`.

    Returns
    -------
    xarray.Dataset
        `Delta` and `loss` at the output times; `square`, the mean of |w|^2 by child and sign of the outgoing weight.
        Of nodes with two weights also `rho`, by angle, which with `atom`, the nodes that stay at gates, adds up to 1
        over angles, gates and signs. Of nodes with three `rho_on_sphere`, which adds up to 1 with the areas of cells,
        and of more, or with `density.scheme = 'particles'`, `w_sample`, the weights of some; both with the shares
        `held` of nodes that stay at gates and `idle` of those that no input activates, with `projected`, the
        distribution functions of the projections of w/|w| on a few axes, and with errors. The attribute `status` is
        `complete`, `interrupted`, or `failed: ...` with the time at which weights become infinite, as they do where
        lengths are trained; what was not reached is NaN. Where particles are taken by themselves, or the tolerance is
        missed, the attribute `warning` says why.

    Raises
    ------
    InputError
        If the nodes have no limit that is solved; `particles` takes every problem.

    Notes
    -----
    Source: latent_tree.md, section 3.4. With two weights, one output and the loss `simple` of the output itself errors
    are below 1e-8, those of one differential equation: densities are averages over cells of a distribution function
    that is known, and quadratures follow nodes along their paths. With more weights, nodes that stand for all are
    followed as exactly, and errors are those of averages over the start. Other losses, normalised outputs, and several
    of them add the errors of steps.
    """
    check_density(problem)
    found = _solved(problem)
    Delta = found.arrays["Delta"]
    o = 4.0 * float(np.prod(problem.tree.root))
    arrays: dict[str, Any] = {"loss": -0.25 * o * Delta**2} | found.arrays | {"time": problem.time.outputs_at}
    arrays |= node_coordinates(problem)
    if "Delta_error" in arrays and "loss_error" not in arrays:
        arrays["loss_error"] = 0.25 * o * arrays["Delta_error"] * (2.0 * np.abs(Delta) + arrays["Delta_error"])
    return Solved(found.kind, arrays | latent_coordinates(problem.shape), found.status, found.warning)


def _solved(problem: Problem) -> Density:
    """Density by the scheme of the settings; 'automatic' takes cells unless particles must be."""
    weights, scheme = weights_of(problem), problem.density.scheme
    if scheme != "particles" and weights in ON_CELLS:
        if weights == 2 and has_inner_time(problem):
            return on_circle(problem)
        return ON_CELLS[weights](problem)
    found = by_particles(problem)
    if scheme == "particles":
        return found
    reason = f"the density was solved by particles, because nodes have {_in_words(problem)}, and cells are for 2 or 3"
    return found._replace(warning="; ".join(text for text in (reason, found.warning) if text))
