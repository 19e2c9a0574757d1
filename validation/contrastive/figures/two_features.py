"""Problems with two features that the paper's figures 3, 7, 8 and 9 show: portraits, SGD, and the printed formula."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import root

import meanfield
from meanfield.families.contrastive.fixed_points.attraction import attractor_of
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.fixed_points.portrait import phase_portrait
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import plot_portrait, share_legend
from meanfield.problems.file import parse_problem
from validation.study import Statement, within_errors

LEARNING_RATE, BATCH_SIZE = 0.04, 20
"""Learning rate and batch size, of which the paper prints neither. For tau/m below 0.01 the portraits keep their fixed
points and their order; 0.002 puts those on the axes close to 1, where the paper's text has them, and SGD there in
reasonable time."""

TEXT = """
title = "{title}"
[model]
activation = "quadratic"
learning_rate = {learning_rate}
batch_size = {batch_size}
[[features]]
hidden = {first}
initial_overlap = {q[0]}
[[features]]
hidden = {second}
initial_overlap = {q[1]}
[time]
stop = {stop}
outputs = {outputs}
[particles]
method = "chain"
dimension = {dimension}
replicas = {replicas}
record = "statistics"
seed = {seed}
"""


DIRECTIONS = 30
"""Number of directions of starts at one radius, evenly spaced in a quadrant."""


class Law(NamedTuple):
    """A hidden variable: what a problem file says of it, and its moments m2, m4, m6."""

    table: str
    moments: tuple[float, float, float]
    name: str


def gaussian(m2: float) -> Law:
    return Law(f'{{ law = "gaussian", second_moment = {m2} }}', (m2, 3 * m2**2, 15 * m2**3), f"Gaussian, $m_2 = {m2}$")


def three_point(m2: float, m4: float) -> Law:
    table = f'{{ law = "three_point", second_moment = {m2}, fourth_moment = {m4} }}'
    return Law(table, (m2, m4, m4**2 / m2), f"three-point, $m_2 = {m2}$")


UNEQUAL = gaussian(1.2), three_point(1.1, 6.05)
"""Hidden variables of figures 3, 7 and 9b."""


def problem_with(
    laws: tuple[Law, Law],
    q: tuple[float, float] = (0.1, 0.1),
    stop: float = 4.0,
    outputs: int = 21,
    dimension: int = 5000,
    replicas: int = 10,
    seed: int = 0,
) -> Problem:
    """Two independent features, sigma(x) = x^2, no noise, no prior."""
    title = ", ".join(law.name.replace("$", "").replace("m_2", "m2") for law in laws)
    first, second = (law.table for law in laws)
    return parse_problem(
        TEXT.format(
            title=title,
            learning_rate=LEARNING_RATE,
            batch_size=BATCH_SIZE,
            first=first,
            second=second,
            q=[float(value) for value in q],
            stop=stop,
            outputs=outputs,
            dimension=dimension,
            replicas=replicas,
            seed=seed,
        )
    )


@lru_cache(maxsize=16)
def portrait(laws: tuple[Law, Law]) -> xr.Dataset:
    """The phase portrait over (Q1, Q2)."""
    return phase_portrait(problem_with(laws))


def squared(result: xr.Dataset) -> np.ndarray:
    """Q = q^2 of the fixed points of a portrait, shape (states, 2)."""
    return np.asarray(result["q"].values ** 2)


def shares(result: xr.Dataset) -> tuple[float, float]:
    """Parts of the plane that are attracted to learning the first and the second feature."""
    Q, share = squared(result), result["region_share"].values
    learnt = [share[(Q.argmax(axis=1) == k) & (Q.max(axis=1) > 1e-6)].sum() for k in (0, 1)]
    return float(learnt[0]), float(learnt[1])


def share_of_directions(laws: tuple[Law, Law], radius: float) -> float:
    """Part of the directions of q, |q| = radius, from which the second feature is learnt along the ODE."""
    points = find_fixed_points(VectorField(problem_with(laws)))
    turn = (np.arange(DIRECTIONS) + 0.5) * 0.5 * np.pi / DIRECTIONS  # the other quadrants are mirror images
    ends = attractor_of(points, radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1))
    return float(np.mean([end >= 0 and np.abs(points.q[end]).argmax() == 1 for end in ends]))


def inner_point(result: xr.Dataset) -> int | None:
    """The fixed point with both overlaps, the one farthest out; None if there is none."""
    Q = squared(result)
    both = np.flatnonzero(Q.min(axis=1) > 1e-6)
    return int(both[np.argmax(Q[both].sum(axis=1))]) if both.size else None


def listed(Q: np.ndarray) -> str:
    """Points in words."""
    return ", ".join(f"({first + 0.0:.3f}, {second + 0.0:.3f})" for first, second in Q)


def trajectories(laws: tuple[Law, Law], starts: np.ndarray, **settings: float) -> np.ndarray:
    """Overlaps along the ODE from each start, shape (starts, times, 2)."""
    problems = [problem_with(laws, q=tuple(q), **settings) for q in starts]  # type: ignore[arg-type]
    return np.array([meanfield.solve_order_parameters(problem)["q"].values for problem in problems])


def sgd_trajectories(laws: tuple[Law, Law], starts: np.ndarray, **settings: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean overlaps of SGD from each start and their standard errors, both of shape (starts, times, 2)."""
    means, errors = [], []
    for seed, q in enumerate(starts):
        problem = problem_with(laws, q=tuple(q), seed=seed, **settings)  # type: ignore[arg-type]
        run = meanfield.simulate_sgd(problem)
        variance = np.einsum("tkk->tk", run["q_covariance"].values) / problem.particles.dimension
        means.append(run["q_mean"].values)
        errors.append(np.sqrt(variance / problem.particles.replicas))
    return np.array(means), np.array(errors)


def following(text: str, path: xr.DataArray, numbers: xr.Dataset, allowed: float) -> Statement:
    """Whether SGD stays within so many standard errors of a path after the start, which is exact."""
    mean, error = numbers["sgd_q"].values, numbers["sgd_q_error"].values
    away = (np.abs(mean - path.values) / np.maximum(error, 1e-12))[..., 1:, :]
    return within_errors(text, "theory, section 2", away, allowed)


def sgd_paths(laws: tuple[Law, Law], starts: np.ndarray, stop: float, settings: dict[str, int]) -> xr.Dataset:
    """Mean overlaps of SGD from each start with their standard errors, at `outputs` times of the settings."""
    mean, error = sgd_trajectories(laws, starts, stop=stop, **settings)
    dims = ("start", "sgd_time", "feature")
    return xr.Dataset(
        {
            "sgd_q": (dims, mean, {"long_name": "mean overlaps of SGD"}),
            "sgd_q_error": (dims, error, {"long_name": "their standard error"}),
        },
        {"sgd_time": np.linspace(0.0, stop, settings["outputs"])},
    )


def printed_rate(laws: tuple[Law, Law], Q: np.ndarray) -> np.ndarray:
    """(dQ1/dt, dQ2/dt)/tau by (S-50) as it is printed, with kappa for what it calls kappa; Q of shape (..., 2)."""
    moments = np.array([law.moments for law in laws]).T
    nu, kappa, beta = moments - np.array([[1.0], [3.0], [15.0]])

    def rate(i: int, j: int) -> np.ndarray:
        a, b = Q[..., i], Q[..., j]
        cross = 3 * nu[i] * nu[j]
        gain = 4 * (kappa[i] * a**2 + 3 * nu[i] * a * (1 - 2 * a) + cross * a * b) * (1 - a)
        gain = gain - 4 * (kappa[j] * b + 3 * nu[j] * (1 - 2 * b**2) + cross * a) * a * b
        spread = beta[i] * a**2 + beta[j] * b**3 + 15 * kappa[i] * a**2 * (1 - a) + 15 * kappa[j] * b**2 * (1 - b)
        spread = spread + 45 * nu[i] * a * (1 - a) ** 2 + 45 * nu[j] * b * (1 - b) ** 2
        spread = spread + 15 * kappa[i] * nu[j] * a**2 * b + 15 * kappa[j] * nu[i] * a * b**2
        spread = spread + 90 * nu[i] * nu[j] * a * b * (1 - a - b) + 15
        return np.asarray(gain - 8 * LEARNING_RATE / BATCH_SIZE * a * spread)

    return np.stack([rate(0, 1), rate(1, 0)], axis=-1)


def printed_zeros(laws: tuple[Law, Law]) -> np.ndarray:
    """Zeros of `printed_rate` in the triangle, from a grid of starts, shape (zeros, 2)."""
    found: list[np.ndarray] = []
    for start in ((a, b) for a in np.linspace(0, 1, 21) for b in np.linspace(0, 1 - a, 21)):
        zero = root(lambda Q: printed_rate(laws, Q), start, tol=1e-12)
        inside = zero.x.min() > -1e-7 and zero.x.sum() < 1.0
        if zero.success and inside and not any(np.linalg.norm(zero.x - other) < 1e-4 for other in found):
            found.append(zero.x)
    return np.array(sorted(np.round(found, 6).tolist())) + 0.0


def labelled(result: xr.Dataset, name: str) -> xr.Dataset:
    """A portrait of which all names begin with a name, so that several fit into one Dataset."""
    own = set(result.dims) - {"feature", "row", "column", "mode"}
    names = {old: f"{name}_{old}" for old in [*result.data_vars, *own]}
    return result.rename(names).assign({f"{name}_plane": result.attrs["plane"]}).drop_attrs()


def portrait_named(numbers: xr.Dataset, name: str) -> xr.Dataset:
    """The portrait that `labelled` has put into a Dataset."""
    kept = numbers[[variable for variable in numbers.data_vars if str(variable).startswith(f"{name}_")]]
    old = [str(key) for key in [*kept.data_vars, *kept.dims]]
    plain = kept.rename({key: key.removeprefix(f"{name}_") for key in old})
    plane = str(plain["plane"].values)
    return plain.drop_vars("plane").assign_attrs(plane=plane)


def count_statement(result: xr.Dataset, source: str, where: str) -> Statement:
    """The paper's `four fixed points in total`."""
    count = result.sizes["state"]
    marginal = bool(np.any(result["kind"].values == "marginal"))
    number = "a continuum of them" if marginal else f"{count}: {listed(squared(result))}"
    return Statement(f"four fixed points in total, {where}", source, count == 4 and not marginal, number)


def draw_portraits(panels: dict[str, xr.Dataset], columns: int) -> Figure:
    """A panel for each portrait, and one legend for all."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 4.5 * rows + 0.5), layout="constrained")
    for (title, result), axes in zip(panels.items(), figure.subplots(rows, columns, squeeze=False).flat, strict=True):
        plot_portrait(result, axes)
        axes.set_title(title, fontsize="medium")
    share_legend(figure)
    return figure
