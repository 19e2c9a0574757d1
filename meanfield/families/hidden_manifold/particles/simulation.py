"""Simulation of hidden-manifold SGD: choice of the kind of step, and results that are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Record, identity_of
from meanfield.ensembles.averages import check_rates
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.particles.eigenspaces import spaces_of
from meanfield.families.hidden_manifold.particles.features import latent_dimension
from meanfield.families.hidden_manifold.particles.fresh_samples import count_fresh
from meanfield.families.hidden_manifold.particles.measurement import gaussian_noise, row_shapes
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.problems.base import check_problem, schedules_of
from meanfield.problems.phases import Piece, pieces_of
from meanfield.results.solved import Solved, solver

CHAIN_HAS_NO_WEIGHTS = "particles.method = 'chain' follows overlaps alone and has no weights; set it to 'plain'"
"""Reason why a chain has no snapshots, with the remedy."""

ONLY_IN_THE_LIMIT = (
    "The chain draws Gaussian inputs with the covariances of f(U), which are not Gaussian at finite N for this "
    "nonlinearity or law of latents: means and fluctuations are those of plain SGD in the limit of large N."
)
"""Warning of results whose law is that of plain SGD in the limit alone."""


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of one-pass SGD at finite N, each with features, teacher and start of its own.

    Parameters
    ----------
    problem : Problem
        `particles.method` chooses how steps are taken: `plain` line by line for any problem; `chain` for spectra of
        few eigenvalues, with the law of plain SGD if f is linear, and that of its limit if not.
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `Q`, `R`, `Omega`, `Sigma`, `v` and `field_mean` at every output time, all from the weights; with
        `training.average_rate` `Q_average` and others of the average of weights;
        `generalisation_error` on fresh samples with its standard error `generalisation_error_error`, or, of the chain,
        from its Gaussian fields; and the components `S` of weights along eigenvectors of the features at the
        snapshots. With `particles.record = 'statistics'` statistics over replicas instead. See
        `meanfield.families.hidden_manifold.results`. Output time t is step round(t N). The attribute `status` is
        `complete`, `interrupted` or `failed: ...`; what was not reached is NaN.

    Raises
    ------
    InputError
        If the chain does not apply, N is too small for the vectors of the start, or the run does not fit into the free
        memory or into `particles.longest_days`.

    Notes
    -----
    All quantities are dimensionless. Source: hidden_manifold.md, sections 1 and 7.
    """
    simulation = simulation_of(problem)
    method = simulation.label
    solved = run_ensemble(simulation, partial(prepare_steppers, problem, method), workers, record)
    warning = "" if method == "plain" or covariates_are_gaussian(problem) else ONLY_IN_THE_LIMIT
    return replace(solved, warning=warning)


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes, with the kind of step that it takes.

    Raises
    ------
    InputError
        If the method cannot give what is asked for.
    """
    check_problem(problem, Problem)
    method = chosen_method(problem)
    for piece in pieces_of(problem):
        check_decay(piece)
    check_rates(problem.training, problem.particles.dimension, "raise particles.dimension")
    D = latent_dimension(problem)
    K = problem.students
    M = problem.teachers
    chain = method == "chain"
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        rows=row_shapes(problem),
        label=method,
        snapshots={} if chain else {"S": (K, D)},
        constants={} if chain else {"teacher_components": (D, M), "rho_of_coordinate": (D,)},
        without_snapshots=CHAIN_HAS_NO_WEIGHTS if chain else "",
        together=256 if chain else 1,  # replicas of a chain that one call advances
        working_set=working_set(problem, method),
        remedy="lower training.learning_rate",
    )


def check_decay(piece: Piece[Problem]) -> None:
    """Refuse weight decay that turns weights over in a step.

    Raises
    ------
    InputError
    """
    problem = piece.problem
    N = problem.particles.dimension
    schedules = schedules_of(problem).values()
    looked_at = [time for each in schedules for time in each.looked_at(piece.start, piece.stop)]
    times = np.unique([piece.start, *looked_at])
    eta, eta_v, _, _, decay = problem.training.numbers_at(times)
    rate = np.maximum(eta, eta_v)
    for k in np.flatnonzero(rate * decay > N):
        at = f" at t = {times[k]:.6g}" if schedules or piece.start > 0.0 else ""
        raise InputError(
            f"training.weight_decay = {decay[k]:g}{at}: a step multiplies weights by 1 - {rate[k] * decay[k] / N:.3g}, "
            f"its product with the learning rate over N, which is below 0; lower it to {N / rate[k]:.3g} or less, or "
            "raise particles.dimension"
        )


def chosen_method(problem: Problem) -> str:
    """Kind of step: the one that the problem names, or the chain where it has the law of plain SGD.

    Raises
    ------
    InputError
        If the chain is asked for and does not apply, or N is too small.
    """
    _ = latent_dimension(problem)
    settings = problem.particles
    moving = max(each.problem.training.remembers for each in pieces_of(problem))
    if settings.method == "chain" and moving:
        raise InputError(
            f"particles.method = 'chain' with training.{moving}: the chain follows products of weights, and of no "
            "velocity; set particles.method to 'plain', or remove the momentum"
        )
    average = problem.training.average_rate
    if settings.method == "chain" and average is not None:
        raise InputError(
            f"particles.method = 'chain' with training.average_rate = {average:g}: the chain follows overlaps alone "
            "and has no weights to average; set particles.method to 'plain', or remove training.average_rate"
        )
    if problem.initial is not None:
        _check_from_file(problem)
        return "plain"
    exact = covariates_are_gaussian(problem) and not settings.snapshots and not moving and average is None
    if settings.method == "plain" or (settings.method == "auto" and not exact):
        return "plain"
    try:
        for piece in pieces_of(problem):
            spaces_of(piece.problem)
    except InputError:
        if settings.method == "chain":
            raise
        return "plain"
    return "chain"


def _check_from_file(problem: Problem) -> None:
    """Refuse a start from a file that holds no weights, or for the chain."""
    assert problem.initial is not None
    state, named = problem.initial.atoms, f"initial.from = '{problem.initial.path}'"
    if problem.particles.method == "chain":
        raise InputError(f"particles.method = 'chain' with {named}: a file is a start of 'plain' steps; set it to that")
    if not state.own:
        raise InputError(
            f"{named}: holds order parameters and no weights; name runs of SGD with particles.snapshots, or arrays"
        )
    if state.matrices is None and state.seed is None:
        raise InputError(
            f"{named}: these runs had started from a file themselves, and their features are not known; name arrays of "
            "features, weights and teacher, or use the method order_parameters"
        )


def covariates_are_gaussian(problem: Problem) -> bool:
    """Whether inputs are Gaussian in each component at every N, in all phases: linear functions of Gaussian latents."""
    return all(
        (inputs.components_drawn == "sample" or len(inputs.mixture) == 1)
        and all(gaussian_noise(moments) == 0 for moments in inputs.moments)
        for inputs in (piece.problem.inputs for piece in pieces_of(problem))
    )


def working_set(problem: Problem, method: str) -> int:
    """Bytes that one worker needs to advance one block."""
    if method == "chain":
        return 0
    N, D = problem.particles.dimension, latent_dimension(problem)
    # features, as they are drawn, made orthonormal, scaled and packed; then their products, and eigenvectors; samples
    # and those of the phase before
    before = 2 * N * D if problem.phases is not None else 0
    return (before + 4 * N * D + 3 * D * D + N * count_fresh(problem)) * 8  # bytes of doubles
