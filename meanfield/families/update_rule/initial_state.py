"""Start of update rules from a result at one of its times, or from weights and features in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.user_functions import is_address
from meanfield.problems.phases import pieces_of
from meanfield.results import initial_state
from meanfield.results.initial_state import Moment
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.families.update_rule.problem import Problem
    from meanfield.mckean_vlasov.weight_law import WeightLaw

SAME = 1e-6
"""Largest difference of numbers of a file and a problem that are the same: those of single precision are."""


class State(NamedTuple):
    """What a file holds of a start.

    Parameters
    ----------
    R : ndarray, shape (runs, students, features)
    Q : ndarray, shape (runs, students, students)
    v : ndarray, shape (runs, side variables)
    weights : ndarray, shape (runs, N, students), optional
    U : ndarray, shape (runs, N, features), optional
    rho : ndarray, shape (N,) or (nodes,), optional
        Eigenvalues of the noise at coordinates of weights, or at nodes.
    R_rho, Q_rho : ndarray, shape (nodes, students, features or students), optional
        Overlaps at nodes.
    law : WeightLaw, optional
        Of the weights of one student given feature coordinates.
    is_gaussian : bool
        Whether weights are Gaussian given feature coordinates.
    errors : mapping of str to ndarray
        Those that a result states of a prediction, such as `R_error`.
    """

    R: FloatArray
    Q: FloatArray
    v: FloatArray
    weights: FloatArray | None = None
    U: FloatArray | None = None
    rho: FloatArray | None = None
    R_rho: FloatArray | None = None
    Q_rho: FloatArray | None = None
    law: WeightLaw | None = None
    is_gaussian: bool = False
    errors: Mapping[str, FloatArray] = {}

    @property
    def runs(self) -> int:
        """See `meanfield.results.initial_state.State.runs`."""
        return len(self.Q)

    def of_run(self, replica: int) -> State:
        """The run from which a replica starts, without the axis of runs."""
        held = {name: getattr(self, name) for name in ("R", "Q", "v", "weights", "U")}
        each = {name: runs[replica % self.runs] for name, runs in held.items() if runs is not None}
        return self._replace(**each)


class InitialState(initial_state.InitialState):
    """Start from a file: `from` names a result (.nc), or arrays `weights`, `U` and perhaps `side` (.npz)."""

    family: ClassVar[str] = "update_rule"
    arrays: ClassVar[Mapping[str, str]] = {"weights": "W", "U": "U"}
    further_arrays: ClassVar[tuple[str, ...]] = ("side",)
    kept_at_snapshots: ClassVar[str] = "weights"
    wanted: ClassVar[str] = "order parameters, a density or runs of SGD of update rules"

    @property
    def atoms(self) -> State:
        """See `meanfield.results.initial_state.InitialState.atoms`."""
        state: State = super().atoms
        return state

    def of_result(self, moment: Moment) -> State:
        """See `meanfield.results.initial_state.InitialState.of_result`."""
        held, whole = moment.held, moment.result.dataset
        if "weights" in held:
            moment = moment._replace(held=held.sel(time=moment.time, method="nearest"))  # has the side variables
        Q = moment.runs_of("Q", "student", "student_")
        R = moment.runs_of("R", "student", "feature") if "R" in held else np.empty((*Q.shape[:2], 0))
        v = moment.runs_of("v") if "v" in held else np.empty((len(Q), 0))
        if "weights" in held:
            weights = moment.runs_of("weights", "coordinate", "student").reshape(len(Q), -1, Q.shape[1])
            U = whole["U"].transpose("replica", "coordinate", "feature").values if "U" in held else weights[..., :0]
            rho = held["rho_of_coordinate"].values[0] if "rho_of_coordinate" in held else None
            return _of_weights(weights, U, v, rho, moment.path)
        errors = {str(name): held[name].values for name in held if str(name).endswith("_error")}
        errors = {name: each for name, each in errors.items() if not name.endswith("covariance_error")}
        state = State(R, Q, v, is_gaussian=_stays_gaussian(moment.result.problem), errors=errors)
        if "rho" in held.dims:
            R_rho, Q_rho = (held[name].transpose("rho", "student", ...).values for name in ("R_rho", "Q_rho"))
            state = state._replace(rho=held["rho"].values, R_rho=R_rho, Q_rho=Q_rho)
        return _with_law(state, held) if "P" in held and Q.shape[1] == 1 and "rho_of_node" not in held else state

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """See `meanfield.results.initial_state.InitialState.of_arrays`."""
        weights, U, side = (given.get(name, np.empty(0)) for name in (*self.arrays, *self.further_arrays))
        weights = weights[:, None] if weights.ndim == 1 else weights
        weights = weights.reshape(-1, *weights.shape[-2:])
        side = np.broadcast_to(side, (len(weights), side.shape[-1])) if side.ndim <= 2 else side
        fits = weights.ndim == 3 and U.ndim in (2, 3) and U.shape[-2] == weights.shape[1] and side.ndim == 2
        if not fits or (U.ndim == 3 and len(U) not in (1, len(weights))):
            raise InputError(
                f"{path}: has the shapes { {name: values.shape for name, values in given.items()} }; give weights "
                "(N,), (N, students) or (runs, N, students), U (N, features) or (runs, N, features), and side (side "
                "variables,) or (runs, side variables) where there are some"
            )
        return _of_weights(weights, np.broadcast_to(U, (len(weights), *U.shape[-2:])), side, None, path)

    def check_fits(self, problem: Problem) -> None:
        """See `meanfield.results.initial_state.InitialState.check_fits`."""
        state, N = self.atoms, problem.particles.dimension
        sizes = (state.R.shape[2], state.R.shape[1], state.v.shape[1])
        wanted = (len(problem.features), len(problem.students), len(problem.side))
        for what, found, own in zip(("feature", "student", "side variable"), sizes, wanted, strict=True):
            if found != own:
                raise ValueError(f"initial.from: has {found} {what}(s), and the problem {own}; make them equal")
        if state.weights is not None and state.weights.shape[1] != N:
            raise ValueError(
                f"particles.dimension = {N}: initial.from has weights of N = {state.weights.shape[1]}; set it to that"
            )
        if not _has_noise(problem, state):
            raise ValueError(
                "data.spectrum: is not that of initial.from, whose overlaps are those of its eigenvalues; make them "
                "equal, and name order parameters or runs of SGD with particles.snapshots"
            )
        for name, group in problem.constraints:
            own_Q = state.Q[:, group.start : group.stop, group.start : group.stop]
            if name in ("gram_schmidt", "polar") and not np.allclose(own_Q, np.eye(len(group)), 0.0, SAME):
                raise ValueError(
                    f"model.constraint = '{name}' keeps students orthonormal, and those of initial.from are not; name "
                    "another file, or another constraint"
                )


def _has_noise(problem: Problem, state: State) -> bool:
    """Whether the eigenvalues of the noise are those of a problem."""
    spectrum, rho, N = problem.data.spectrum, state.rho, problem.particles.dimension
    if spectrum is None or rho is None:
        return spectrum is None and rho is None
    at_nodes = state.R_rho is not None
    known = spectrum.nodes(len(rho)).rho if at_nodes else spectrum.quantiles((np.arange(N) + 0.5) / N).rho
    return known.shape == rho.shape and np.allclose(known, rho, SAME, SAME)


def _of_weights(weights: FloatArray, U: FloatArray, v: FloatArray, rho: FloatArray | None, path: Path) -> State:
    """State of weights and features, whose lengths are sqrt(N)."""
    N = weights.shape[1]
    away = np.abs(np.einsum("rnk,rnj->rkj", U, U) / N - np.eye(U.shape[2])).max(initial=0.0)
    if away > 1e-3:  # single precision, and no more
        raise InputError(
            f"{path}: U^T U/N deviates from 1 by {away:.3g}; features have the length sqrt(N) and are orthogonal: "
            "rescale them"
        )
    R, Q = (np.einsum("rnk,rnm->rkm", weights, each) / N for each in (U, weights))
    return State(R, Q, v, weights, U, rho)


def _stays_gaussian(problem: Any) -> bool:
    """Whether weights of a limit are known to be Gaussian given the features; what a result names is not opened."""
    priors = [piece.problem.prior for piece in pieces_of(problem)]
    linear = all(not is_address(prior.name) and prior.functions.linear for prior in priors)
    return linear and problem.initial is None


def _with_law(state: State, held: xr.Dataset) -> State:
    """State with the law of weights of a density; errors include what reading it off its cells adds."""
    from meanfield.mckean_vlasov.cells import edges_of, nodes_of  # reading a problem file needs no SciPy
    from meanfield.mckean_vlasov.weight_law import WeightLaw

    u, u_weight = nodes_of(held)
    P = held["P"].transpose(..., "w").values.reshape(len(u), -1)
    law = WeightLaw(u, u_weight, edges_of(held), P, {})
    q, norm = law.moments
    added = {"R_error": np.abs(q - state.R[0]), "Q_error": np.abs(norm - state.Q[0])}
    errors = {name: error + added.get(name, 0.0) for name, error in state.errors.items()}
    return state._replace(law=law, errors=errors)


def law_at_start(problem: Problem) -> WeightLaw | None:
    """Law of the weights of one student given the features, where a file says one that need not be Gaussian."""
    law = None if problem.initial is None else problem.initial.atoms.law
    return law and replace(law, kinks=problem.prior.functions.kinks)


def with_errors_of_start(problem: Problem, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of a prediction, to whose errors those of a file are added."""
    known = {} if problem.initial is None else problem.initial.atoms.errors
    # Observables may be others.
    same = [name for name in known if name in arrays and arrays[name].shape[1:] == known[name].shape]
    return arrays | {name: arrays[name] + known[name] for name in same}


def check_one_start(problem: Problem) -> None:
    """Refuse a covariance over runs where these start apart.

    Raises
    ------
    InputError
    """
    runs = 1 if problem.initial is None else problem.initial.atoms.runs
    if runs > 1:
        raise InputError(f"initial.from has {runs} runs that differ at the start; name a file with one")


def check_known(problem: Problem, what: str, at_nodes: bool = False) -> None:
    """Refuse a file that does not say how weights are distributed.

    Parameters
    ----------
    what : str
        What needs it, for the message.
    at_nodes : bool
        Whether overlaps at nodes of a spectrum are enough.

    Raises
    ------
    InputError
    """
    if problem.initial is None:
        return
    state, named = problem.initial.atoms, f"initial.from = '{problem.initial.path}'"
    if problem.data.spectrum is not None:
        if at_nodes and state.R_rho is None:
            raise InputError(f"{named}: {what} go on from overlaps at nodes of data.spectrum; name order parameters")
        if not at_nodes:
            raise InputError(f"{named}: with data.spectrum it is no start of {what}; take the method of the file")
    elif not at_nodes and not (state.is_gaussian or state.law):
        raise InputError(
            f"{named}: {what} takes the law of weights given features, known of order parameters and densities; name "
            "one of these, or take order_parameters"
        )
