"""All stationary states of several channels as a result."""

from __future__ import annotations

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.stationary.gaussian import gaussian_states
from meanfield.families.contrastive.problem import Problem
from meanfield.results.solved import Solved


def check_channels(problem: Problem) -> None:
    """Refuse problems of several channels whose stationary states cannot be searched for."""
    if not problem.prior.functions.linear:
        raise InputError(
            f"model.channels = {problem.model.channels} with prior.name = '{problem.prior.name}': stationary states of "
            "several channels are known under priors with linear phi (none, l2); change the prior, or follow the "
            "density or SGD to late times"
        )


def states_of_channels(problem: Problem) -> Solved:
    """Stationary states of several channels, one of each set of images by symmetries.

    Parameters
    ----------
    problem : Problem
        Problem that `check_channels` lets pass.
    """
    return gaussian_states(problem)
