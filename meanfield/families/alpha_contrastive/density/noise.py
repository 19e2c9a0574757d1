"""Law of a single filter over runs of SGD, to first order in the step: a Fokker-Planck equation on the circle.

With fields F_k = F_N + noise of batches, a step theta + eta F_k has in time eta k the generator

    b d/dtheta + (a/2) d^2/dtheta^2,   b = F_N - (eta/2) F_N F_N',   a = eta Var(F_k),

where F_N = (1 - 1/N) F. Batch fields are U-statistics of pairs, whose variance is exact: with K(x, y) the term of a
pair, 4 (N - 2) Var E[K|x] + 2 Var K over N (N - 1) (alpha_contrastive.md, section 4). Filters that share batches have a
common noise, and no such equation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import expm_multiply

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.density.cells import angles_of, masses
from meanfield.families.alpha_contrastive.density.grid import Grid, make_grid
from meanfield.families.alpha_contrastive.laws import DiscreteLaw
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.limit.pairs import half_squares
from meanfield.families.alpha_contrastive.moments import HARMONICS
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime, Stretch, made_of
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


def check_noise(problem: Problem) -> None:
    """Refuse problems in which the noise of SGD is no diffusion of single filters, at no cost.

    Raises
    ------
    InputError
    """
    if problem.filters.count != 1:
        raise InputError(
            f"density.noise = true with filters.count = {problem.filters.count}: filters of a network share batches, "
            "so that their noise is common and the density of a run obeys no Fokker-Planck equation; set filters.count "
            "= 1 for the law of one filter over runs, or density.noise = false"
        )
    if not isinstance(problem.data, DiscreteLaw) or problem.data.dimension != 2:
        raise InputError(
            f"density.noise = true is for finitely many points in the plane, not for data.law = '{problem.data.law}' "
            "or more coordinates; take such points, or density.noise = false"
        )
    if problem.data.sample_of is not None:
        raise InputError(
            "density.noise = true is for data whose two views are the same, whose noise is known; remove data.sample, "
            "or take density.noise = false"
        )
    if problem.model.activation_functions.kinks:
        raise InputError(
            f"density.noise = true with model.activation = '{problem.model.activation}', which has kinks: steps across "
            "their walls are no small part of what happens there; take a smooth one, or density.noise = false"
        )
    if discrete_field(problem, problem.data).pairs.normalised:
        raise InputError(
            f"density.noise = true with importance.kind = '{problem.importance.kind}', which divides by a sum over the "
            "batch: its noise is not known; take 'quadratic' or 'gaussian', or density.noise = false"
        )
    if problem.training.momentum > 0.0:
        raise InputError(
            f"density.noise = true with training.momentum = {problem.training.momentum:g}: steps would remember "
            "batches; set it to 0"
        )


def batch_moments(field: DiscreteField, angle: FloatArray, batch: int) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the tangential field of a batch at angles, shape (angles,) each."""
    w = on_circle(angle)
    z = w @ field.atoms.T
    h, p = field.filter.value(z), field.pairs.probability
    g = field.filter.slope(z) * (np.stack([-w[:, 1], w[:, 0]], axis=1) @ field.atoms.T)
    K = np.ones((1, 1, 1)) if field.pairs.kernel is None else field.pairs.kernel.value(half_squares(h))
    term = 0.5 * K * (h[:, :, None] - h[:, None]) * (g[:, :, None] - g[:, None])
    given = term @ p
    mean = given @ p
    one, two = (given**2) @ p - mean**2, ((term**2) @ p) @ p - mean**2
    N, left = float(batch), 1.0 - 1.0 / batch
    variance = (4.0 * (N - 2.0) * one + 2.0 * two) / (N * (N - 1.0))
    return left * mean, left**2 * np.maximum(variance, 0.0)


def noisy_path(problem: Problem, cells: int) -> tuple[dict[str, FloatArray], dict[str, FloatArray], FloatArray]:
    """Coordinates, density with moments, and the average of G, at all times."""
    assert isinstance(problem.data, DiscreteLaw)
    times, in_time = problem.time.outputs_at, InTime(problem)
    first = in_time(0.0)
    grid = make_grid(np.empty(0), np.empty(0, dtype=bool), cells)
    width = float(grid.width[0])
    law_of = made_of(partial(_Law, grid), _decides)

    def operator_of(stretch: Stretch[Problem]) -> Callable[[float], csr_array]:
        return lambda t: law_of(stretch.at(t)).operator

    mass = masses(problem, grid.edges)
    rows, longest = [mass], 0.5 * times[-1] / np.sqrt(cells)  # errors go as those of cells
    with progress_bar(len(times) - 1, f"density, {cells} cells") as bar:
        for stretch in _seen_by_steps(problem, in_time):
            for time, after in _moved(operator_of(stretch), mass, stretch.outputs(times), longest):
                mass = after
                if time in times:
                    rows.append(mass)
                    bar.update(1)
    masses_at = np.array(rows)
    # A law that the cells resolve has no density below -1e-6 of the largest.
    if masses_at.min() < -1e-6 * masses_at.max() and cells >= 6400:
        raise InputError(
            f"density.noise = true: the law of the filter is narrower than a cell, of which there are {cells}; lower "
            f"time.stop = {problem.time.stop:g}, or raise training.learning_rate = {first.training.learning_rate:g}"
        )
    k = HARMONICS
    damping = np.sinc(0.5 * width * k / np.pi)
    arrays = {
        "rho": np.maximum(masses_at, 0.0) / width,
        "moment_cos": masses_at @ np.cos(np.outer(grid.nodes, k)) / damping,
        "moment_sin": masses_at @ np.sin(np.outer(grid.nodes, k)) / damping,
    }
    coordinates = {**angles_of(grid), "harmonic": k}
    heights = [law_of(in_time(t)).height for t in times.tolist()]
    distinct = {id(height): masses_at @ height for height in heights}  # one product where nothing changes
    return coordinates, arrays, np.array([distinct[id(height)][i] for i, height in enumerate(heights)])


def _decides(problem: Problem) -> tuple[object, ...]:
    """What a law depends on of all that may change in time."""
    return problem.importance, problem.training.learning_rate, problem.training.batch_size


class _Law:
    """What moves the law of a filter with the numbers of one time.

    Attributes
    ----------
    operator : csr_array
    height : ndarray, shape (cells,)
        G of a filter in each cell.
    """

    def __init__(self, grid: Grid, problem: Problem) -> None:
        assert isinstance(problem.data, DiscreteLaw)
        field, training, width = discrete_field(problem, problem.data), problem.training, float(grid.width[0])
        step, batch = training.learning_rate, training.batch_size
        self.operator = _operator(field, grid.nodes, grid.edges[:-1], width, step, batch)
        self.height = field.objective(on_circle(grid.nodes))


def _seen_by_steps(problem: Problem, in_time: InTime[Problem]) -> Iterator[Stretch[Problem]]:
    """Stretches of time as steps see them.

    The first step after a jump begins a stretch. A step has the field of its beginning, which on average is half a step
    before: to first order the term -(eta/2) dF/dt of the drift.
    """
    clock, stop = Clock(problem), problem.time.stop
    stretches = in_time.stretches(stop)
    ends = [0.0, *(min(clock.begin_of(stretch.start), stop) for stretch in stretches[1:]), stop]
    for stretch, (start, end) in zip(stretches, itertools.pairwise(ends), strict=True):
        if start < end:
            yield Stretch(start, end, lambda t, at=stretch.at: at(t - 0.5 * at(t).training.learning_rate))  # type: ignore[misc]


def _moved(
    operator: Callable[[float], csr_array], mass: FloatArray, outputs: FloatArray, longest: float
) -> Iterator[tuple[float, FloatArray]]:
    """Masses at each of some times after the first, by steps of a length that does not depend on them."""
    start, stop = outputs[[0, -1]].tolist()
    first = operator(start)
    if operator(0.5 * (start + stop)) is first and operator(stop) is first:  # nothing changes
        for low, high in itertools.pairwise(outputs.tolist()):
            mass = np.asarray(expm_multiply(first * (high - low), mass))
            yield high, mass
        return
    ends = np.linspace(start, stop, int(np.ceil((stop - start) / longest)) + 1).tolist()
    for low, high in itertools.pairwise(ends):
        after = _step(operator, mass, low, high)
        for time in outputs[(low < outputs) & (outputs <= high)].tolist():
            yield time, after if time == high else _step(operator, mass, low, time)
        mass = after


def _step(operator: Callable[[float], csr_array], mass: FloatArray, low: float, high: float) -> FloatArray:
    """Masses after a step, by exponentials of operators at Gauss points, of fourth order.

    Source: Blanes and Moan (2006), the commutator-free Magnus scheme of two exponentials.
    """
    h, away = high - low, np.sqrt(3.0) / 6.0
    one, other = (operator(low + h * (0.5 + side * away)) for side in (-1.0, 1.0))
    mass = expm_multiply(h * ((0.25 + away) * one + (0.25 - away) * other), mass)
    return np.asarray(expm_multiply(h * ((0.25 - away) * one + (0.25 + away) * other), mass))


def _operator(
    field: DiscreteField, nodes: FloatArray, faces: FloatArray, width: float, step: float, batch: int
) -> csr_array:
    """Rates of change of the masses of cells, a sparse matrix whose columns add up to 0.

    Fluxes through the left face of each cell: the drift takes the upwind value of third order, of three cells, and the
    diffusion the difference of a rho of two.
    """
    mean, variance = batch_moments(field, nodes, batch)
    drift = batch_moments(field, faces, batch)[0] - 0.25 * step * (mean**2 - np.roll(mean, 1) ** 2) / width
    n = len(nodes)
    cell = np.arange(n)
    flux = csr_array((n, n))
    forward, backward = np.maximum(drift, 0.0) / (6.0 * width), np.minimum(drift, 0.0) / (6.0 * width)
    for ahead, weight in (
        (-2, -forward),
        (-1, 5.0 * forward + 2.0 * backward + 0.5 * step * np.roll(variance, 1) / width**2),
        (0, 2.0 * forward + 5.0 * backward - 0.5 * step * variance / width**2),
        (1, -backward),
    ):
        flux = flux + csr_array((weight, (cell, (cell + ahead) % n)), shape=(n, n))
    difference = csr_array((np.ones(n), (cell, (cell + 1) % n)), shape=(n, n)) - eye_array(n)
    return csr_array(-difference @ flux)
