"""Start from the weights of a result at one of its times, or from weights in an array."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.errors import InputError
from meanfield.families.latent_tree.weights import ManyNodes
from meanfield.results import initial_state
from meanfield.results.initial_state import Moment
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    pass

KEPT_AT_SNAPSHOTS = "layer_weights"
"""Weights of networks on images."""


class State(NamedTuple):
    """Weights of runs, shape (runs, weights), each in a row as in results."""

    weights: FloatArray

    @property
    def runs(self) -> int:
        """See `meanfield.results.initial_state.State.runs`."""
        return len(self.weights)


class InitialState(initial_state.InitialState):
    """Start of weights from a file: `from` names a result (.nc), or an array `weights` (.npz)."""

    family: ClassVar[str] = "latent_tree"
    arrays: ClassVar[Mapping[str, str]] = {"weights": "w"}
    kept_at_snapshots: ClassVar[str] = KEPT_AT_SNAPSHOTS
    wanted: ClassVar[str] = "a gradient flow, or SGD with particles.record = 'replicas' and, on images, snapshots"

    @property
    def atoms(self) -> State:
        """See `meanfield.results.initial_state.InitialState.atoms`."""
        state: State = super().atoms
        return state

    def of_result(self, moment: Moment) -> State:
        """See `meanfield.results.initial_state.InitialState.of_result`."""
        name = KEPT_AT_SNAPSHOTS if KEPT_AT_SNAPSHOTS in moment.held else "weights"
        return State(moment.runs_of(name))

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """See `meanfield.results.initial_state.InitialState.of_arrays`."""
        weights = given["weights"]
        if weights.ndim not in (1, 2) or not weights.size:
            raise InputError(
                f"{path}: weights of shape {weights.shape}; give all of a network in a row, as results have them, (n,) "
                "or (runs, n)"
            )
        return State(np.atleast_2d(weights))

    def check_fits(self, problem: Any) -> None:
        """See `meanfield.results.initial_state.InitialState.check_fits`."""
        found, wanted = self.atoms.weights.shape[1], len(problem.drawn_weights().vector)
        if found != wanted:
            raise ValueError(
                f"initial.from: has networks of {found} weights, and the problem one of {wanted}; give both the same "
                "inputs and [network]"
            )
        motion = getattr(problem, "motion", None)
        if isinstance(motion, ManyNodes) and motion.fixed_lengths:
            for run in range(self.atoms.runs):
                weights = initial_weights(problem, run)
                deviation = np.abs(motion.held(weights) - weights.vector).max()
                if deviation > 1e-6:  # rounding of single precision
                    raise ValueError(
                        f"initial.from: weights of nodes have lengths that deviate from 1 by about {deviation:.3g}, "
                        "and network.initial.fixed_lengths = true holds them there; set it to false, or rescale them"
                    )


def initial_weights(problem: Any, run: int = 0, rng: Generator | None = None) -> Any:
    """Weights at the start of a run: those of a file, or drawn by the seed of the start or another generator."""
    drawn = problem.drawn_weights(rng)
    if problem.initial is None:
        return drawn
    state = problem.initial.atoms
    return drawn.like(state.weights[run % state.runs])
