"""Analysis of the reduced ODEs as one Dataset: fixed points, attraction, learnability, fluctuations, random starts.

What a problem does not have is absent from its result: fluctuations under batch centring, growth from q = 0 where that
is not stationary, chances to win where fewer than two features grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.states.analysis import channel_states
from meanfield.families.contrastive.fixed_points.attraction import attraction_intervals
from meanfield.families.contrastive.fixed_points.points import FixedPoints, find_fixed_points, fixed_point_arrays
from meanfield.families.contrastive.fixed_points.portrait import portrait_arrays, portrait_of
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.order_parameters.field import VectorField, check_linear
from meanfield.families.contrastive.order_parameters.table import MOST_FEATURES
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise, stationary_covariance
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.random_starts import RandomStart, limit_outcomes, random_start
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved, solver
from meanfield.results.text import describe_states
from meanfield.typing import FloatArray

DIMENSIONS = (1e2, 1e3, 1e4, 1e5, 1e6)
"""Dimensions N for which random starts are analysed."""

AMPLITUDES = 1024
"""Number of amplitudes of a random start, evenly spread: chances are good to about 0.002."""
QUANTILES = (0.1, 0.5, 0.9)
"""Probabilities of the quantiles of the escape time."""


@solver
def analyse_dynamics(problem: Problem) -> Solved:
    """Fixed points, attraction, growth from no information, fluctuations and random starts of the reduced ODEs.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs, any number of features, any start. For several channels see
        `meanfield.families.contrastive.channels.states.analysis.solve_channel_states`.

    Returns
    -------
    xarray.Dataset
        Result of the method `dynamics`. Along `state`: the fixed points, their rates and kinds, `region_share`, and
        `q_covariance` of the stable ones. For one feature `rate` along `line`; for two the variables of a portrait.
        `uninformed_rate` and `learnable_moment`: growth rates at q = 0, and the second moments that are learnable. From
        random starts, along `dimension`: quantiles of the escape time, and `win_chance` of each feature. The attribute
        `indices_add_up` says whether the fixed points pass the test of completeness.

    Raises
    ------
    InputError
        If the prior does not close the ODEs.

    Notes
    -----
    Source: theory.md, sections 2, 4, 5 and 7. Random starts are those of the limit; chances to win are off by some
    15/N to 50/N of themselves, see `meanfield.families.contrastive.random_starts`.
    """
    check_linear(problem)
    if problem.model.channels > 1:
        return channel_states(problem)
    with progress_bar(4, "dynamics", "part") as bar:
        points = find_fixed_points(VectorField(problem))
        bar.update()
        arrays, attributes = _attraction(points)
        bar.update()
        arrays |= _fluctuations(points, arrays["q"]) | _growth(problem)
        bar.update()
        more, overlap = _random_starts(problem, points)
        bar.update()
    attributes |= {"indices_add_up": str(points.complete).lower()}
    of_variables = {"escape_time_quantile": {"escape_overlap": overlap}} if more else {}
    return Solved("dynamics", arrays | more, attributes=attributes, variable_attributes=of_variables)


@solver
def solve_fixed_points(problem: Problem) -> Solved:
    """Fixed points and growth from no information: the part of `analyse_dynamics` that takes a fiftieth of its time.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs, any number of features, any start.

    Returns
    -------
    xarray.Dataset
        Result of the method `dynamics`, without regions, fluctuations and random starts.

    Raises
    ------
    InputError
        If the prior does not close the ODEs.
    """
    check_linear(problem)
    if problem.model.channels > 1:
        return channel_states(problem)
    points = find_fixed_points(VectorField(problem))
    arrays = fixed_point_arrays(points) | _growth(problem)
    return Solved("dynamics", arrays, attributes={"indices_add_up": str(points.complete).lower()})


def _attraction(points: FixedPoints) -> tuple[dict[str, Any], dict[str, str]]:
    """Fixed points, their regions of attraction, and the plane of the portrait."""
    field = points.field
    if field.features == 2:
        portrait = portrait_of(points)
        return portrait_arrays(portrait), {"plane": portrait.plane}
    arrays = fixed_point_arrays(points)
    if field.features == 1:
        line = np.linspace(-1.0, 1.0, 401)
        share = np.zeros(len(points.points))
        for low, high, number in attraction_intervals(points):
            share[number] = 0.5 * (high - low)
        arrays |= {"line": line, "rate": field(line[:, None])[:, 0], "region_share": share}
    return arrays, {}


def _fluctuations(points: FixedPoints, shown: FloatArray) -> dict[str, Any]:
    """Covariance N Cov[q] at the stable ones of the fixed points that are shown."""
    try:
        noise = StepNoise(points.field)
    except InputError:
        return {}
    d1 = points.field.features
    covariance = np.full((len(shown), d1, d1), np.nan)
    for i in points.stable:
        # On the sphere a fixed point has no Jacobian: points rest there only if nothing fluctuates.
        if np.linalg.norm(points.points[i].q) >= 1.0 - 1e-9:
            continue
        for row in np.flatnonzero((shown == points.points[i].q).all(axis=1)):
            covariance[row] = stationary_covariance(points.field, noise, points.points[i].q)
    return {"q_covariance": covariance}


def _growth(problem: Problem) -> dict[str, Any]:
    """Growth rates at q = 0, where that is stationary."""
    try:
        found = learnability(problem)
    except InputError:
        return {}
    return {"uninformed_rate": found.growth_rates, "learnable_moment": np.array(found.learnable_moments)}


def _random_starts(problem: Problem, points: FixedPoints) -> tuple[dict[str, Any], float]:
    """Escape times, the chance of each feature to win, and the |q| that counts as escape."""
    try:
        start = random_start(problem)
    except InputError:
        return {}, np.nan
    if not start.growing or start.field.features > MOST_FEATURES:
        return {}, np.nan
    overlap = problem.particles.escape_overlap or _halfway(points)
    amplitudes = start.amplitudes(AMPLITUDES)
    runs = [_outcomes(start, N, amplitudes, overlap) for N in DIMENSIONS]
    arrays: dict[str, Any] = {
        "dimension": np.array(DIMENSIONS),
        "quantile": np.array(QUANTILES),
        "escape_time_quantile": np.array([times for times, _ in runs]),
    }
    if start.growing > 1:
        arrays["win_chance"] = np.array([chances for _, chances in runs])
    return arrays, overlap


def _halfway(points: FixedPoints) -> float:
    lasting = [float(np.linalg.norm(point.q)) for point in points.points if point.verdict >= 0 and point.q.any()]
    return 0.5 * min(lasting, default=1.0)


def _outcomes(start: RandomStart, N: float, amplitudes: FloatArray, overlap: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles of the escape time, and the chance of each feature."""
    outcomes = limit_outcomes(start, N, amplitudes, overlap)
    times = np.quantile(outcomes.escape_time, QUANTILES, method="inverted_cdf")
    return times, np.array([np.mean(outcomes.winner == k) for k in range(start.field.features)])


def describe(dynamics: xr.Dataset) -> str:
    """Result of `analyse_dynamics` as text: a line for each fixed point, then growth from q = 0 and random starts."""
    lines = describe_states(dynamics)
    if dynamics.attrs.get("indices_add_up", "true") != "true":
        lines.append("the indices of these do not add up to 1: a fixed point may be missing")
    return "\n".join([*lines, *describe_growth(dynamics)])


def describe_growth(dynamics: xr.Dataset) -> list[str]:
    """Growth from q = 0, and the outcome of random starts, as text."""
    return [*_growth_in_words(dynamics), *_random_starts_in_words(dynamics)]


def _growth_in_words(dynamics: xr.Dataset) -> list[str]:
    if "copies" in dynamics:
        return _growth_of_channels(dynamics)
    if "uninformed_rate" not in dynamics:
        return ["q = 0 is not stationary: overlaps leave it at once"]
    rates = ", ".join(f"{value:.4g}" for value in dynamics["uninformed_rate"].values)
    low, high = dynamics["learnable_moment"].values
    if np.isnan(low):
        learnable = "no second moment is learnable"
    else:
        learnable = f"second moments above {low:.4g}" if np.isinf(high) else f"second moments below {high:.4g}"
        learnable += " are learnable from nothing"
    return [f"growth rates at q = 0: {rates}; {learnable}"]


def _growth_of_channels(dynamics: xr.Dataset) -> list[str]:
    """Growth in channels that have learnt nothing, while no other or another one has learnt a feature."""
    starts = dynamics["region_share"].attrs["starts"]
    last = f"shares are of {starts} random starts; no search can prove that it has found all fixed points"
    if "uninformed_channel_rate" not in dynamics:
        return ["where nothing is learnt overlaps do not grow by themselves: they are driven, or features mix", last]
    rates = dynamics["uninformed_channel_rate"].values[:, 0]
    given = dynamics["conditional_rate"].values
    lines = [f"growth rates where no channel has learnt: {', '.join(f'{value:.4g}' for value in rates)}"]
    for learnt in range(len(rates)):
        others = ", ".join(f"{value:.4g} of feature {f + 1}" for f, value in enumerate(given[:, learnt]) if f != learnt)
        if np.isfinite(given[:, learnt]).any():
            lines.append(f"beside a channel with feature {learnt + 1}: {others}")
    return [*lines, last]


def _random_starts_in_words(dynamics: xr.Dataset) -> list[str]:
    if "escape_time_quantile" not in dynamics:
        return []
    lines = []
    for i, N in enumerate(dynamics["dimension"].values):
        times = dynamics["escape_time_quantile"].values[i]
        line = f"random start, N = {N:.0e}: escape at t = {times[0]:.4g}, {times[1]:.4g}, {times[2]:.4g} (10, 50, 90 %)"
        if "win_chance" in dynamics:
            line += "; features win with chance " + ", ".join(f"{p:.3f}" for p in dynamics["win_chance"].values[i])
        lines.append(line)
    return lines
