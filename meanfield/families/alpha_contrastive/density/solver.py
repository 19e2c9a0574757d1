"""Density of infinitely many filters on the circle or the sphere, on cells that are halved until two runs agree.

Source: alpha_contrastive.md, section 4, equation (MV).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.critical_points.circle import circle_points
from meanfield.families.alpha_contrastive.critical_points.mixture import mixture_points
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.density.cells import CircleCells, MovedCells
from meanfield.families.alpha_contrastive.density.flows import (
    CoupledFlow,
    Flow,
    MixtureFlow,
    carried_along,
    decides_flow,
    steps_along,
)
from meanfield.families.alpha_contrastive.density.noise import check_noise, noisy_path
from meanfield.families.alpha_contrastive.filters import FourierStart, UniformStart
from meanfield.families.alpha_contrastive.laws import Conditional, DiscreteLaw, GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import AnyField, discrete_field, mixture_field, scale_of_angles
from meanfield.families.alpha_contrastive.limit.networks import best_on_circle
from meanfield.families.alpha_contrastive.moments import moments
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.refinement import change_of, doublings, largest_of_times, missed, refine
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import InTime, check_at_extremes, made_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

MOST_STEPS = 20_000
"""Largest number of time steps, as the start predicts them; cells that need more are not tried."""

FEWEST = {2: 100, 3: 12}
"""Number of cells of the first run, by the number of coordinates; on a sphere along a meridian."""

MOST = {2: 6400, 3: 96}
"""Largest number of cells."""

COMPARED = {2: ("moment_cos", "moment_sin"), 3: ("mean", "second_moment")}
"""Moments in which two runs agree."""


@dataclass(frozen=True)
class Path:
    """Density on one set of cells, and what is known of it.

    Parameters
    ----------
    coordinates : dict of ndarray
    arrays : dict of ndarray
        Density and moments, one row per time.
    objective : ndarray, shape (times,)
    gap : ndarray, shape (times,), optional
    """

    coordinates: dict[str, FloatArray]
    arrays: dict[str, FloatArray]
    objective: FloatArray
    gap: FloatArray | None = None


def check_density(problem: Problem) -> None:
    """Refuse problems that have no density on the circle or the sphere, at no cost.

    Raises
    ------
    InputError
    """
    check_problem(problem, Problem)
    if problem.model.layers == 2 or isinstance(problem.data, Tokens | Images | Conditional):
        raise InputError(
            f"model.layers = 2, with data.law = '{problem.data.law}', has no density on a sphere; take points or a "
            "mixture with model.layers = 1"
        )
    if problem.data.dimension > 3:
        raise InputError(
            f"data have {problem.data.dimension} coordinates, and densities of filters are on the circle and the "
            "sphere; take data with 2 or 3, or the method 'critical_points'"
        )
    start = problem.filters.start
    if not isinstance(start, UniformStart | FourierStart):
        raise InputError(
            f"filters.start.law = '{start.law}' is a start of single filters; take 'uniform' or 'fourier' for a density"
        )
    if problem.initial is not None and problem.initial.atoms.law is None and problem.data.dimension == 3:
        raise InputError(
            f"initial.from = '{problem.initial.path}': single filters on a sphere are no start of a density; name a "
            "density, or use the methods 'population' and 'particles'"
        )
    check_at_extremes(problem, _check_at_one_time)


def _check_at_one_time(problem: Problem) -> None:
    check_no_velocity(problem.training, "population and SGD")
    if problem.density.noise:
        check_noise(problem)
    make_flow(problem)


def make_flow(problem: Problem) -> Flow:
    """Flow of the filters of a problem.

    Raises
    ------
    InputError
        If the field of a filter is not known.
    """
    best, speed = best_energy(problem), 1.0 / (1.0 - problem.training.momentum)
    if isinstance(problem.data, GaussianMixture):
        if problem.importance.kind != "quadratic":
            raise InputError(
                f"importance.kind = '{problem.importance.kind}' depends on the distances of all samples of data.law = "
                "'gaussian_mixture', which are no finite number; take 'quadratic', or data.law = 'points'"
            )
        return MixtureFlow(mixture_field(problem, problem.data), best, speed)
    assert isinstance(problem.data, DiscreteLaw)
    return CoupledFlow(discrete_field(problem, problem.data), best, speed)


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of filters on the circle or the sphere in the limit of infinitely many, or that of one filter over runs.

    Parameters
    ----------
    problem : Problem
        With one layer, data with two or three coordinates, and a start that has a density.

    Returns
    -------
    xarray.Dataset
        In the plane `rho`, averages over cells, `moment_cos` and `moment_sin`; in space `rho_on_sphere`, `mean` and
        `second_moment`; moments have estimated errors. The objective `G` that the flow ascends; and `certificate_gap`,
        what E_alpha of the best filter is above its average over the density, which bounds what G is below its largest
        value. With `density.noise` it is the law of a single filter over runs of SGD, `G` is its average and there is
        no certificate.

    Raises
    ------
    InputError
        If the method does not apply to the problem, or would take very many steps.

    Notes
    -----
    Source: alpha_contrastive.md, section 4. Errors are the largest differences of the two finest runs at any time:
    three times the error of the finer one at order two, that of smooth data and of ReLU alike, and as large as the
    error at order one.
    """
    check_density(problem)
    assert not isinstance(problem.data, Tokens)
    d = problem.data.dimension
    cells = FEWEST[d]
    steps = predicted_steps(problem, cells)
    if not steps <= MOST_STEPS / 2:
        raise InputError(
            f"time.stop = {problem.time.stop:g} takes {steps:.2g} time steps on the coarsest cells, {cells} of them; "
            f"lower it to {problem.time.stop * MOST_STEPS / (4 * steps):.2g} or less, by when filters have gathered, "
            "or scale the data down"
        )
    path, tolerance = _noisy if problem.density.noise else carried_path, problem.density.tolerance
    found = refine(
        takewhile(lambda cells: predicted_steps(problem, cells) <= MOST_STEPS, doublings(cells, MOST[d])),
        lambda cells: path(problem, cells),
        lambda coarse, fine: change_of(coarse.arrays, fine.arrays, COMPARED[d]),
        tolerance,
    )
    coarse, fine = found.before, found.result
    assert coarse is not None, "the coarsest cells take half of the steps that are allowed"
    arrays = {
        "time": problem.time.outputs_at,
        **fine.coordinates,
        **fine.arrays,
        **found.change.errors,
        "G": fine.objective,
        "G_error": largest_of_times(fine.objective - coarse.objective),
    }
    of_start = _errors_of_start(problem, arrays)
    arrays |= {f"{name}_error": arrays[f"{name}_error"] + error for name, error in of_start.items()}
    if fine.gap is not None:
        arrays["certificate_gap"] = fine.gap
    what = f"moments on {found.level} cells"
    largest = found.change.largest + max(
        (float(np.max(of_start[name])) for name in COMPARED[d] if of_start), default=0.0
    )
    warning = missed(what, largest, "density.tolerance", tolerance, "raise it, or lower time.stop")
    kind, status = "density" if d == 2 else "sphere_density", "interrupted" if found.interrupted else "complete"
    return Solved(kind, arrays, status, warning, {"cells": found.level})


def _errors_of_start(problem: Problem, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Errors of moments that a start from a file has already, by what the file says that they are."""
    if problem.initial is None:
        return {}
    state = problem.initial.atoms
    known = state.moments if state.filters is None else moments(state.filters.reshape(-1, problem.shape[2]))
    there = [name for name in known if f"{name}_error" in arrays]
    return {name: np.abs(arrays[name][0] - known[name]) + known.get(f"{name}_error", 0.0) for name in there}


def courant_of(problem: Problem, cells: int) -> float:
    """Step in time, relative to the rate of the flow."""
    assert not isinstance(problem.data, Tokens)
    return 0.1 * FEWEST[problem.data.dimension] / cells  # relative to the rate of the flow; it is halved with the cells


def predicted_steps(problem: Problem, cells: int) -> float:
    """Number of time steps of a density, at the rates that the start has with the numbers of some times."""
    flow, *others = map(make_flow, InTime(problem).extremes(problem.time.stop).values())
    few = _cells(problem, flow, FEWEST[flow.dimension])
    rates = [each.speed * each.rate(each.laplacian(few.filters, few.weight)) for each in (flow, *others)]
    return problem.time.stop * float(np.mean(rates)) / courant_of(problem, cells)


def example_step(problem: Problem, cells: int) -> Callable[[], object]:
    """Function that takes one time step from the start."""
    flow = make_flow(InTime(problem)(0.0))
    moved = _cells(problem, flow, cells)
    duration = problem.time.stop / max(predicted_steps(problem, cells), 1.0)
    start = moved.filters, moved.weight, (0.0, duration), courant_of(problem, cells)
    return lambda: next(steps_along(lambda _: flow, *start))


def _cells(problem: Problem, flow: Flow, cells: int) -> CircleCells | MovedCells:
    return (CircleCells if flow.dimension == 2 else MovedCells)(problem, flow, cells)


def carried_path(problem: Problem, cells: int) -> Path:
    """Density of infinitely many filters, on one set of cells."""
    flow_of = made_of(make_flow, decides_flow)
    flow = flow_of(InTime(problem)(0.0))
    moved = _cells(problem, flow, cells)
    rows = [moved.arrays(moved.filters)]
    summaries = [flow.summary(moved.filters, moved.weight)]
    courant, label = courant_of(problem, cells), f"density, {cells} cells"
    start = moved.filters, moved.weight, courant
    for filters, now, _ in carried_along(problem, flow_of, *start, label, None, lambda *_: None):
        rows.append(moved.arrays(filters))
        summaries.append(now.summary(filters, moved.weight))
    objective, gap = np.array(summaries).T
    return Path(moved.coordinates(), {name: np.array([row[name] for row in rows]) for name in rows[0]}, objective, gap)


def _noisy(problem: Problem, cells: int) -> Path:
    """Density of one filter over runs of SGD, on one set of cells."""
    return Path(*noisy_path(problem, cells))


def best_energy(problem: Problem) -> Callable[[AnyField], float]:
    """Function of a field of filters that returns the largest energy of one of them."""
    settings = problem.critical_points

    def in_plane(field: AnyField) -> float:
        longest = scale_of_angles(problem)
        if isinstance(field, DiscreteField):
            return _largest(best_on_circle(field, longest)[1])
        points = circle_points(tangential(field), np.empty(0), longest)
        return _largest(field.energy(on_circle(np.array([point.angle for point in points]))))

    def in_space(field: AnyField) -> float:
        if isinstance(field, DiscreteField):
            points = [point.w for point in sphere_points(field, settings.starts, settings.seed)[0]]
        else:
            points = [w for w, _ in mixture_points(field, settings.starts, settings.seed)]
        return _largest(field.energy(np.array(points).reshape(-1, 3)))

    assert not isinstance(problem.data, Tokens)
    return in_plane if problem.data.dimension == 2 else in_space


def _largest(energies: FloatArray) -> float:
    return float(energies.max()) if energies.size else 0.0
