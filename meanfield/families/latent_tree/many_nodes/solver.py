"""Density of infinitely many nodes per latent with two weights each, exactly (latent_tree.md, section 3.4).

Nodes see each other through the difference Delta of the mean outputs alone, and in the time T with dT = o Delta dt they
do not see each other at all. So the density is pushed along known paths, and T(t) is one differential equation.
"""

from __future__ import annotations

import time

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from meanfield.errors import BlowUpError, InputError
from meanfield.families.latent_tree.initial import places
from meanfield.families.latent_tree.many_nodes.circle import TURN
from meanfield.families.latent_tree.many_nodes.ensemble import SIGNS, Ensemble, ensemble_of
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.starts import SphereStart
from meanfield.families.latent_tree.tables import check_tables
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.problems.base import check_problem
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray, IntArray

TOLERANCE = 1e-10
"""Error of a step, relative to the time and to the last one."""

FARTHEST = 1e15
"""A time T that is not reached."""

GROWN = 1e9
"""Growth of Delta after which it is about to become infinite."""

LEAST = 1e-12
"""Smallest difference of mean outputs at the start that is more than rounding."""


def check_density(problem: Problem) -> None:
    """Refuse problems whose nodes have no density in one dimension.

    Raises
    ------
    InputError
        With what to change, or the method to use instead.
    """
    check_problem(problem, Problem)
    start, network = problem.network.initial, problem.network
    instead = "or use the method 'particles'"
    if problem.data is not None:
        raise InputError(
            f"data.law = '{problem.data.law}': its nodes do not see each other, and have no density; use the method "
            "'population'"
        )
    if not isinstance(start, SphereStart):
        raise InputError(
            f"network.initial.law = '{start.law}': a density of nodes needs a start with a limit of many of them; set "
            f"it to 'sphere', {instead}"
        )
    if problem.loss.kind != "simple" or network.output_normalisation:
        key = "loss.kind" if problem.loss.kind != "simple" else "network.output_normalisation"
        raise InputError(
            f"{key}: nodes see each other through one number only for the loss 'simple' of the outputs themselves; set "
            f"loss.kind to 'simple' and output_normalisation to false, {instead}"
        )
    check_tables(problem)
    children = problem.shape.children[0]
    if children + network.bias != 2:
        weights = f"{children} weight(s){' and a bias' if network.bias else ''}"
        raise InputError(
            f"tree.children: nodes have {weights}, and a density is computed for two numbers, on a circle; give "
            f"latents two leaves without biases, or one leaf with them, {instead}"
        )
    if abs(ensemble_of(problem).Delta(0.0)) < LEAST:
        raise InputError(
            f"network.initial.positive = {start.positive:g}: the mean outputs for both values of the root are the "
            "same, and infinitely many nodes never move from there; take another share, or polarities that are not 0"
        )


def solve_density(problem: Problem) -> xr.Dataset:
    """Density of infinitely many nodes for each latent below the root, exactly.

    Parameters
    ----------
    problem : Problem
        With two levels of latents, the start `sphere`, the loss `simple`, and nodes with two weights.

    Returns
    -------
    xarray.Dataset
        `Delta` and `loss` at the output times; `rho`, by child, sign of the outgoing weight and angle, which with
        `atom`, the nodes that stay at gates, adds up to 1 over angles, gates and signs; `square`, the mean of |w|^2.
        The attribute `status` is `complete`, `interrupted`, or `failed: ...` with the time at which weights become
        infinite, as they do where lengths are trained; what was not reached is NaN.

    Raises
    ------
    InputError
        If the nodes have no density in one dimension; `particles` takes every problem.

    Notes
    -----
    Source: latent_tree.md, section 3.4. Errors are below 1e-8, those of one differential equation: densities are
    averages over cells of a distribution function that is known, and quadratures follow nodes along their paths.
    """
    check_density(problem)
    started = time.perf_counter()
    nodes = ensemble_of(problem)
    at, status = _inner_times(nodes, problem.time.outputs_at)
    origin = provenance(time.perf_counter() - started)
    arrays = _arrays(problem, nodes, at)
    return build_dataset("density", problem, arrays | places(problem.shape), status, origin)


def _inner_times(nodes: Ensemble, times: FloatArray) -> tuple[FloatArray, str]:
    """T at each output time, NaN where it was not reached, and the status; from t(T), an integral of 1/(o Delta)."""
    start, stop = nodes.Delta(0.0), float(times[-1])
    sign = np.copysign(1.0, start)
    with progress_bar(stop, "density", "t") as bar:

        def rate(depth: float, t: FloatArray) -> FloatArray:
            bar.update(min(max(float(t[0]), bar.n), stop) - bar.n)
            return np.array([1.0 / (nodes.o * abs(nodes.Delta(sign * depth)))])

        solution = solve_ode(
            rate,
            np.zeros(1),
            np.array([0.0, FARTHEST]),
            Tolerance(TOLERANCE, TOLERANCE * stop),
            integrator="DOP853",
            stops=[
                lambda depth, t: stop - float(t[0]),
                lambda depth, t: GROWN - abs(nodes.Delta(sign * depth) / start),
            ],
            dense=True,
            interruptible=True,
        )
    status, reached = solution.status, float(solution.end[0])
    if solution.stopped_by == 1:
        status = BlowUpError(
            reached,
            f"Delta has grown by {GROWN:.0e} and becomes infinite at this time",
            "set network.initial.fixed_lengths to true, or time.stop to less",
        ).status
    found = np.full(len(times), np.nan)
    found[0] = 0.0
    if solution.stopped_by == 0:  # where the last output time is met, but for rounding
        found[-1] = sign * solution.end_time
    if solution.path is not None:
        for k in np.flatnonzero((times > 0.0) & (times < reached) & np.isnan(found)):
            found[k] = sign * _where(solution.path, float(times[k]), solution.end_time)
    return found, status


def _where(path: Path, time: float, end: float) -> float:
    """T at a time before the last, from t at all T."""
    return float(brentq(lambda depth: float(path(depth)[0]) - time, 0.0, end, xtol=1e-14 * end, rtol=1e-14))


def _arrays(problem: Problem, nodes: Ensemble, at: FloatArray) -> dict[str, FloatArray]:
    """Variables of results from the time T at each output time."""
    circle, children = nodes.flows.circle, len(nodes.polarity)
    edges, arc = _faces(nodes, problem.density.cells)
    inside = arc[1:] == arc[:-1]  # between the last face of an arc and the first of the next there is the gate itself
    low, high = edges[:-1][inside], edges[1:][inside]
    sizes = (len(at), children, len(SIGNS))
    found = {
        "Delta": np.full(len(at), np.nan),
        "rho": np.full((*sizes, len(low)), np.nan),
        "atom": np.full((*sizes, len(circle.gates)), np.nan),
        "square": np.full(sizes, np.nan),
    }
    for k in np.flatnonzero(np.isfinite(at)):
        T = float(at[k])
        before = nodes.distribution(edges, arc, T)
        share = np.diff(before, axis=-1)
        s, square = nodes.averages(T)
        found["Delta"][k] = 2.0 * nodes.polarity @ s @ (SIGNS * nodes.shares)
        found["rho"][k] = share[..., inside] / (high - low)
        first = before[..., :1] + nodes.shares[:, None] - before[..., -1:]
        found["atom"][k] = np.concatenate([first[..., :1], share[..., ~inside]], axis=-1)
        found["square"][k] = square
    coordinates = {
        "time": problem.time.outputs_at,
        "child": np.arange(1, children + 1),
        "sign": SIGNS,
        "angle": 0.5 * (low + high),
        "angle_bnds": np.stack([low, high], axis=1),
        "gate": circle.gates,
    }
    return coordinates | found | {"loss": -0.25 * nodes.o * found["Delta"] ** 2}


def _faces(nodes: Ensemble, cells: int) -> tuple[FloatArray, IntArray]:
    """Faces of about so many cells, both ends of every arc among them, and their arcs."""
    edges, arcs = [], []
    for number, (first, last) in enumerate(nodes.flows.circle.ends):
        count = max(1, round(cells * (last - first) / TURN))
        edges.append(np.linspace(first, last, count + 1))
        arcs.append(np.full(count + 1, number))
    return np.concatenate(edges), np.concatenate(arcs)
