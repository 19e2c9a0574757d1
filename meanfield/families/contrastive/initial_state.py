"""Start of one or several channels from a result at one of its times, or from weights and features in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from meanfield.errors import InputError
from meanfield.ingredients.user_functions import is_address
from meanfield.results import initial_state
from meanfield.results.initial_state import Moment
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.families.contrastive.problem import Problem
    from meanfield.mckean_vlasov.weight_law import WeightLaw

LEAST_SAMPLE = 800
"""Smallest number of coordinates from which a density of several channels starts: a hundred for each of its runs."""


class State(NamedTuple):
    """What a file holds of a start.

    Parameters
    ----------
    q : ndarray, shape (runs, d1, d2)
        Overlaps; one run for those of a limit.
    M : ndarray, shape (runs, d2, d2)
        Overlaps of channels.
    weights : ndarray, shape (runs, N, d2), optional
    U : ndarray, shape (runs, N, d1), optional
    law : WeightLaw, optional
        Of the weights of one channel given feature coordinates.
    is_gaussian : bool
        Whether the weights of several channels are Gaussian given feature coordinates.
    particles : (ndarray, ndarray), optional
        Weights, shape (n, d2), and features, shape (n, d1), at single coordinates: a sample of the law of a limit.
    errors : mapping of str to ndarray
        `q_error` and `M_error` of the overlaps of several channels.
    """

    q: FloatArray
    M: FloatArray
    weights: FloatArray | None = None
    U: FloatArray | None = None
    law: WeightLaw | None = None
    is_gaussian: bool = False
    particles: tuple[FloatArray, FloatArray] | None = None
    errors: Mapping[str, FloatArray] = {}

    @property
    def runs(self) -> int:
        """See `meanfield.results.initial_state.State.runs`."""
        return len(self.q)

    @property
    def overlap(self) -> FloatArray:
        """Mean overlaps of all runs, shape (d1, d2)."""
        return np.asarray(self.q.mean(axis=0))

    @property
    def sample(self) -> tuple[FloatArray, FloatArray] | None:
        """Weights and features at single coordinates, of all runs; None where only a law is known, or overlaps."""
        if self.weights is None or self.U is None:
            return self.particles
        return self.weights.reshape(-1, self.weights.shape[2]), self.U.reshape(-1, self.U.shape[2])


class InitialState(initial_state.InitialState):
    """Start of weights from a file: `from` names a result (.nc), or arrays `weights` and `U` (.npz)."""

    smoothing: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="width in the normal score by which quantiles of n single weights are smoothed for a density; "
        "n^(-1/5)/2 if nothing is said",
    )

    family: ClassVar[str] = "contrastive"
    arrays: ClassVar[Mapping[str, str]] = {"weights": "w", "U": "U"}
    kept_at_snapshots: ClassVar[str] = "weights"
    wanted: ClassVar[str] = "a density, order parameters or runs of SGD of contrastive learning"

    @property
    def atoms(self) -> State:
        """See `meanfield.results.initial_state.InitialState.atoms`."""
        state: State = super().atoms
        return state

    def of_result(self, moment: Moment) -> State:
        """See `meanfield.results.initial_state.InitialState.of_result`."""
        problem, held = moment.result.problem, moment.held
        if "weights" in held:
            U = moment.runs_of("U", "feature")
            weights = moment.runs_of("weights", "channel")
            return _checked(weights.reshape(*U.shape[:2], -1), U, moment.path)
        q = moment.runs_of("q", "feature", "channel")
        if "channel" in held.dims:
            M = moment.runs_of("M", "channel", "channel_")
            errors = {name: held[name].values for name in ("q_error", "M_error") if name in held}
            gaussian = _stays_gaussian(problem, moment.result.method)
            return State(q, M, is_gaussian=gaussian, particles=_particles(moment), errors=errors)
        from meanfield.problems.in_time import InTime

        law = _law(held, InTime(problem)(moment.time)) if "P" in held else None
        return State(q[..., None], np.ones((len(q), 1, 1)), law=law)

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """See `meanfield.results.initial_state.InitialState.of_arrays`."""
        weights, U = given["weights"], given["U"]
        U = U[:, None] if U.ndim == 1 else U
        N = U.shape[-2] if U.ndim in (2, 3) else -1
        if weights.shape[-1:] == (N,) and weights.ndim in (1, 2):  # a single channel
            weights = np.atleast_2d(weights)[..., None]
        elif weights.shape[-2:-1] == (N,) and weights.ndim in (2, 3):
            weights = weights.reshape(-1, *weights.shape[-2:])
        else:
            N = -1
        if N < 0 or (U.ndim == 3 and len(U) not in (1, len(weights))):
            raise InputError(
                f"{path}: weights of shape {given['weights'].shape} and U of shape {given['U'].shape}; give (N,) or "
                "(runs, N), with several channels (N, channels) or (runs, N, channels), and (N, features) or (runs, "
                "N, features)"
            )
        return _checked(weights, np.broadcast_to(U, (len(weights), *U.shape[-2:])), path)

    def check_fits(self, problem: Problem) -> None:
        """See `meanfield.results.initial_state.InitialState.check_fits`."""
        state, (d1, d2), N = self.atoms, (len(problem.features), problem.model.channels), problem.particles.dimension
        for what, found, wanted in (("feature", state.q.shape[1], d1), ("channel", state.q.shape[2], d2)):
            if found != wanted:
                raise ValueError(f"initial.from: has {found} {what}(s), and the problem {wanted}; make them equal")
        if state.weights is not None and state.weights.shape[1] != N:
            raise ValueError(
                f"particles.dimension = {N}: initial.from has weights of N = {state.weights.shape[1]}; set it to that"
            )
        if (np.square(state.overlap).sum(axis=0) >= 1.0).any():
            raise ValueError(f"initial.from: overlaps {state.overlap.tolist()} are not inside the unit ball")

    def law_at(self, nodes: tuple[FloatArray, FloatArray], kinks: tuple[float, ...]) -> WeightLaw | None:
        """Law of weights given feature coordinates at the start; None where only overlaps are known.

        Parameters
        ----------
        nodes : tuple of ndarray
            Nodes in u, shape (nodes, d1), and their weights, where the law of single weights is wanted.
        kinks : tuple of float
            Those of the prior, where a density has corners.
        """
        state = self.atoms
        if state.weights is None or state.U is None:
            return state.law and replace(state.law, kinks=kinks)
        from meanfield.mckean_vlasov.weight_law import law_of_samples  # reading a problem file needs no SciPy

        w = state.weights.ravel()
        # of best order for smooth laws, and narrow enough for those of sparse weights
        smoothing = 0.5 * len(w) ** -0.2 if self.smoothing is None else self.smoothing
        laws = [law_of_samples(w, state.U.reshape(len(w), -1), nodes, width) for width in (smoothing, 2.0 * smoothing)]
        return replace(laws[0], errors={"P_error": np.array(laws[0].distance(laws[1]))})


def check_law(problem: Problem, what: str) -> None:
    """Refuse a start of several channels from a file that does not say how their weights are distributed.

    Parameters
    ----------
    what : str
        What needs that law, for the message.

    Raises
    ------
    InputError
    """
    if problem.initial is None or problem.model.channels == 1 or problem.initial.atoms.is_gaussian:
        return
    raise InputError(
        f"initial.from = '{problem.initial.path}': {what} of several channels takes a law of all their weights "
        "together, which is known, and Gaussian, of densities under linear priors alone; name such a density, or "
        "weights, of SGD or of your own, or use the order parameters"
    )


def check_sample(problem: Problem) -> None:
    """Refuse a start of a density of several channels that neither says the law of their weights nor has a sample."""
    if not starts_from_sample(problem):
        return check_law(problem, "a density")
    assert problem.initial is not None
    assert problem.initial.atoms.sample is not None
    count = len(problem.initial.atoms.sample[0])
    if count < LEAST_SAMPLE:
        raise InputError(
            f"initial.from = '{problem.initial.path}': has weights at {count} coordinate(s), and a density of several "
            f"channels takes a sample of {LEAST_SAMPLE} at least; name more runs, or those of a larger N"
        )
    return None


def starts_from_sample(problem: Problem) -> bool:
    """Whether the law of the weights of several channels is known from a sample alone."""
    state = None if problem.initial is None else problem.initial.atoms
    return state is not None and not state.is_gaussian and state.sample is not None


def with_errors_of_start(problem: Problem, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of several channels, to whose errors those of overlaps in a file are added."""
    known = {} if problem.initial is None else dict(problem.initial.atoms.errors)
    if "q_average" in arrays:  # which begins with the weights
        overlaps = {"q_average": "q_error", "overlap_average": "M_error", "M_average": "M_error"}
        known |= {f"{name}_error": known[of] for name, of in overlaps.items() if of in known}
    return arrays | {name: arrays.get(name, np.zeros_like(arrays[name[0]])) + known[name] for name in known}


def _stays_gaussian(problem: Any, kind: str) -> bool:
    """Whether residual weights of a result of several channels are Gaussian at all times."""
    linear = all(not is_address(prior.name) and prior.functions.linear for prior in problem.priors)
    return linear and (problem.initial is None or kind == "density")  # other starts of densities are refused


def _particles(moment: Moment) -> tuple[FloatArray, FloatArray] | None:
    """Particles of a limit that were kept at that time."""
    held = moment.held
    if "w_sample" not in held or moment.time not in held["snapshot_time"]:
        return None
    weights = held["w_sample"].sel(snapshot_time=moment.time).transpose("particle", "channel").values
    return weights, held["u_sample"].transpose("particle", "feature").values


def _checked(weights: FloatArray, U: FloatArray, path: Path) -> State:
    """State of weights and features on their spheres."""
    N = weights.shape[1]
    norm, gram = np.square(weights).sum(axis=1) / N, np.einsum("rnk,rnj->rkj", U, U) / N
    for name, deviation in (("|w|^2/N", norm - 1.0), ("U^T U/N", gram - np.eye(U.shape[2]))):
        if np.abs(deviation).max() > 1e-3:  # single precision, and no more
            raise InputError(
                f"{path}: {name} deviates from 1 by {np.abs(deviation).max():.3g}; weights and features have the "
                "length sqrt(N), and features are orthogonal: rescale them"
            )
    # Those of a run go on as they are, to the last bit.
    weights = weights / np.sqrt(np.where(np.abs(norm - 1.0) > 1e-12, norm, 1.0))[:, None]  # rounding
    M = np.einsum("rnk,rnl->rkl", weights, weights) / N
    return State(np.einsum("rnk,rnc->rkc", U, weights) / N, M, weights, U)


def _law(at: xr.Dataset, problem: Problem) -> WeightLaw:
    """Law of a density at one time; its errors include what reading it off its cells adds to q and r."""
    from meanfield.mckean_vlasov.cells import edges_of, nodes_of  # reading a problem file needs no SciPy
    from meanfield.mckean_vlasov.weight_law import WeightLaw

    errors = {name: at[name].values for name in ("q_error", "r_error", "P_error") if name in at}
    law = WeightLaw(*nodes_of(at), edges_of(at), at["P"].transpose(..., "w").values, {}, problem.prior.functions.kinks)
    q, _ = law.moments
    added = {
        "q_error": np.abs(q - at["q"].values),
        "r_error": abs(law.mean(lambda w: w * problem.prior.force(w)) - float(at["r"])),
    }
    return replace(law, errors={name: error + added.get(name, 0.0) for name, error in errors.items()})
