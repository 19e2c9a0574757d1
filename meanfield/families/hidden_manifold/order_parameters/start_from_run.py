"""Order parameters from the start of one run itself: its features, teacher and weights in place of their limits.

Nodes are the eigenvalues of F F^T/N, and r, sigma and t at each are products of coordinates of weights and columns
along its eigenvector (hidden_manifold.md, section 2). What then is left between SGD and the ODEs are the noise of its
steps and corrections of order 1/N.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.arguments import as_array, as_whole
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.initial_state import OwnStart, own_start_of
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, driven, legs_of
from meanfield.families.hidden_manifold.order_parameters.system import check_means, own_system
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    check_trajectory,
    order_parameter_arrays,
    to_tolerance,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.problems.file import format_problem
from meanfield.problems.problem_keys import with_values
from meanfield.results.result import Result, check_dataset
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


def solve_from_weights(
    problem: Problem,
    features: ArrayLike,
    weights: ArrayLike,
    teacher: ArrayLike,
    output_weights: ArrayLike | None = None,
) -> xr.Dataset:
    """Order parameters of a hidden manifold from matrices at hand, in place of the problem's spectrum and start.

    Parameters
    ----------
    problem : Problem
        For the rest: nonlinearity, components, activations, the teacher's second layer, learning rates, time.
    features : array_like, shape (D, N)
        F, whose columns have the length sqrt(D) or nearly so.
    weights : array_like, shape (students, N)
        W(0).
    teacher : array_like, shape (teachers, D)
        Wt.
    output_weights : array_like, shape (students,), optional
        v(0); by default that of the problem.

    Returns
    -------
    xarray.Dataset
        As that of `meanfield.solve` with the method `order_parameters`; its problem has the D/N, N and T of the
        matrices.

    Raises
    ------
    InputError
        If arrays have other shapes or are not finite, if eigenvalues of F F^T/N have no mean near 1, if a component has
        a mean that the teacher does not span, whose direction is not known here, or if the problem has no ODEs.
    """
    check_problem(problem, Problem)
    F, W, Wt = (_matrix(name, a) for name, a in (("features", features), ("weights", weights), ("teacher", teacher)))
    own = problem.student.output_weights if output_weights is None else output_weights
    v = as_array(own, "output_weights", "give a list of numbers, one for each unit of the student")
    D, N = F.shape
    for name, found, shape in (
        ("weights", W.shape, (problem.students, N)),
        ("teacher", Wt.shape, (problem.teachers, D)),
        ("output_weights", v.shape, (problem.students,)),
    ):
        if found != shape:
            raise InputError(
                f"{name}: has the shape {found}, but the problem and features of shape {F.shape} need {shape}"
            )
    return solve_start(problem, OwnStart.of_matrices(F, W, Wt, v), N)


def solve_from_run(problem: Problem, run: xr.Dataset, replica: int = 0) -> xr.Dataset:
    """Order parameters of a hidden manifold from the start of a replica of plain SGD.

    Parameters
    ----------
    problem : Problem
        That of the run. It is not taken from the result, which may name functions and is never trusted to.
    run : xarray.Dataset
        From `meanfield.solve` with the method `particles`, with weights at t = 0 (`particles.snapshots`).
    replica : int

    Returns
    -------
    xarray.Dataset
        As that of `solve_from_weights`.

    Raises
    ------
    InputError
        If the run is of another problem, holds no weights at t = 0, or has no such replica.
    """
    return solve_start(problem, start_of_run(problem, run, replica), problem.particles.dimension)


def start_of_run(problem: Problem, run: xr.Dataset, replica: int = 0) -> OwnStart:
    """Start of a replica; see `solve_from_run`."""
    check_problem(problem, Problem)
    check_dataset(run)
    if format_problem(Result.of(run).problem) != format_problem(problem):
        raise InputError("run: is of another problem than the one given; give the problem that it was simulated with")
    if "S" not in run or run["snapshot_time"].values[0] != 0.0:
        raise InputError(
            "run: holds no weights at t = 0; simulate it with particles.method = 'plain' and "
            "particles.snapshots = [0.0]"
        )
    last = run.sizes["replica"] - 1
    as_whole(replica, "replica", f"the run has replicas 0 to {last}", least=0, most=last)
    return own_start_of(run, 0.0, replica)


@solver
def solve_start(problem: Problem, start: OwnStart, N: int) -> Solved:
    """Order parameters from the start of a run at a finite N."""
    D = len(start.rho)
    T = start.teacher.T @ start.teacher / D
    own = {"inputs.aspect_ratio": D / N, "particles.dimension": N, "teacher.overlap": (0.5 * (T + T.T)).tolist()}
    problem = with_values(problem, own)
    check_trajectory(problem)
    check_means(problem)
    stretches = driven(problem)

    def prepared(_: int, order: int) -> tuple[list[Leg], FloatArray]:
        legs = legs_of(stretches, lambda each: own_system(each, start, order, problem)[0])
        return legs, own_system(stretches[0][0].problem, start, order, problem)[1]

    system, path, found, warning = to_tolerance(problem, problem.time.outputs_at, prepared)
    arrays = order_parameter_arrays(problem, system, path.state) | found
    return Solved("order_parameters", arrays, path.status, warning, {"nodes": D}, problem=problem)


def _matrix(name: str, values: ArrayLike) -> FloatArray:
    matrix = as_array(values, name, "give a matrix of numbers")
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"{name}: has the shape {matrix.shape}; give a matrix")
    if not np.isfinite(matrix).all():
        raise InputError(f"{name}: holds values that are not finite")
    return matrix
