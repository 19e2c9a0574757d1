"""All stationary states of several channels as a result."""

from __future__ import annotations

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.density.choice import MOST_FEATURES
from meanfield.families.contrastive.channels.stationary.gaussian import gaussian_states
from meanfield.families.contrastive.channels.stationary.plane import plane_states
from meanfield.families.contrastive.problem import Problem
from meanfield.results.solved import Solved


def check_channels(problem: Problem) -> None:
    """Refuse problems of several channels whose stationary states cannot be searched for."""
    if problem.prior.functions.linear:
        return
    said = f"prior.name = '{problem.prior.name}' with model.channels = {problem.model.channels}"
    if problem.model.channels > 2:
        raise InputError(
            f"{said}: stationary states of more than two channels are known under priors with linear phi (none, l2); "
            "set model.channels to 2, change the prior, or follow the density or SGD to late times"
        )
    if len(problem.features) > MOST_FEATURES:
        raise InputError(
            f"{said}: {len(problem.features)} features, and laws of two channels are solved for {MOST_FEATURES} at "
            "most; remove features, change the prior to 'none' or 'l2', or follow the density or SGD to late times"
        )


def states_of_channels(problem: Problem) -> Solved:
    """Stationary states of several channels, one of each set of images by symmetries.

    Parameters
    ----------
    problem : Problem
        Problem that `check_channels` lets pass.
    """
    return gaussian_states(problem) if problem.prior.functions.linear else plane_states(problem)
