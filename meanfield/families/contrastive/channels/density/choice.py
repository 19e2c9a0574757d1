"""Which scheme solves the density of several channels: cells where they serve, and why not where they do not."""

from __future__ import annotations

from functools import partial

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.density.solver import solve_particles, solve_plane
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import joint_limit_of
from meanfield.families.contrastive.initial_state import check_sample, starts_from_sample
from meanfield.families.contrastive.problem import Problem
from meanfield.results.solved import Solved
from meanfield.several_vectors.choice import solved_by_scheme
from meanfield.several_vectors.evolution import REMEDY, DegenerateError, check_plane

MOST_FEATURES = 2
"""Largest number of features of a density on cells: each node has a plane of them."""


def solve_several(problem: Problem) -> Solved:
    """Density of several channels by the scheme of the settings; 'automatic' takes cells unless particles must be.

    Parameters
    ----------
    problem : Problem
        Problem that `check_several` lets pass.

    Returns
    -------
    Solved
        As `solve_plane` or `solve_particles` describe it. Where 'automatic' takes particles, the attribute `warning`
        says why.
    """
    closure = ChannelsInTime(problem)
    return solved_by_scheme(
        problem,
        problem.density,
        partial(why_no_cells, problem, closure),
        lambda: solve_plane(closure)[0],
        partial(solve_particles, closure),
    )


def solve_joint(problem: Problem) -> tuple[Solved, Solved]:
    """Density of two channels and that of both weights together; see `meanfield.contrastive.solve_joint_density`.

    Raises
    ------
    InputError
        If cells do not serve for the problem.
    """
    scheme = problem.density.scheme
    closure = ChannelsInTime(problem)
    try:
        reason = f"density.scheme = '{scheme}'" if scheme == "particles" else why_no_cells(problem, closure)
        if not reason:
            return solve_plane(closure)
    except DegenerateError as error:
        reason = error.reason
    raise InputError(f"{reason}; without cells there is no joint density, take solve_density")


def check_several(problem: Problem, backend: str) -> None:
    """Refuse problems that the scheme is not for.

    Raises
    ------
    InputError
        The message says which scheme is.
    """
    scheme = problem.density.scheme
    channels = problem.model.channels
    if backend != "numba":
        raise InputError(f"backend = '{backend}' with model.channels = {channels}: several channels have 'numba' alone")
    if scheme in ("lagrangian", "eulerian"):
        raise InputError(
            f"density.scheme = '{scheme}' with model.channels = {channels}: it is for a single channel; leave the key "
            "out"
        )
    if problem.density.half_width is not None:
        raise InputError(
            f"density.half_width = {problem.density.half_width:g} with model.channels = {channels}: the cells of "
            "several channels follow the weights; remove it"
        )
    check_sample(problem)
    reason = why_no_cells(problem) if scheme == "finite_volumes" else ""
    if reason:
        raise InputError(f"density.scheme = 'finite_volumes': {reason}; {REMEDY}, or leave the key out")


def why_no_cells(problem: Problem, closure: ChannelsInTime | None = None) -> str:
    """Why finite volumes do not serve for a problem, known before a run; empty where they do.

    Parameters
    ----------
    closure : ChannelsInTime, optional
        That of the problem, if it is known already.
    """
    channels, features = problem.model.channels, len(problem.features)
    if channels > 2:
        return f"model.channels = {channels}: cells are for two channels"
    if features > MOST_FEATURES:
        return f"features: {features} of them, and cells are for {MOST_FEATURES} at most"
    if starts_from_sample(problem):
        return "initial.from: cells take a law of weights that is Gaussian, and the file has a sample of weights"
    if all(prior.functions.linear for prior in problem.priors):
        return ""  # the law is Gaussian, even if it has no density in the plane
    try:
        check_plane(joint_limit_of(closure or ChannelsInTime(problem)))
    except DegenerateError as error:
        return error.reason
    return ""
