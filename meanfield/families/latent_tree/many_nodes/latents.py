"""Infinitely many nodes of each latent below the root: what all ways to average over them share.

The time t of training follows from the time T in which nodes do not see each other: dT = o Delta dt. Laws of more than
two weights are compared by projections of directions on fixed axes, which lie askew to the gates, so that nodes that
stay at gates have projections without atoms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gamma

from meanfield.errors import BlowUpError
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import SphereStart
from meanfield.families.latent_tree.tables import Tables
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

SIGNS = np.array([-1.0, 1.0])
"""Signs of outgoing weights."""

BLOW_UP_GROWTH = 1e9
"""Growth of Delta after which it is about to become infinite."""


class Density(NamedTuple):
    """Density that a way to average over nodes found.

    Parameters
    ----------
    kind : str
        Of the result.
    arrays : dict of ndarray
        Variables of the kind by name, `Delta` among them.
    """

    kind: str
    arrays: dict[str, FloatArray]
    status: str
    warning: str = ""


@dataclass(frozen=True)
class Latents(ABC):
    """Infinitely many nodes of every latent below the root.

    Parameters
    ----------
    inputs : ndarray, shape (configurations, weights)
        Inputs of a node, with a 1 for the bias.
    difference : ndarray, shape (latents, configurations)
        (P(c|1) - P(c|0))/2.
    polarity : ndarray, shape (latents,)
        rho_0mu.
    positive : float
        Share of nodes with a positive outgoing weight.
    grows : bool
        Whether lengths are trained, or stay 1.
    o : float
        1 - rho_0^2.
    """

    inputs: FloatArray
    difference: FloatArray
    polarity: FloatArray
    positive: float
    grows: bool
    o: float

    @property
    def shares(self) -> FloatArray:
        """Shares of the signs, shape (signs,)."""
        return np.array([1.0 - self.positive, self.positive])

    @cached_property
    def pull(self) -> FloatArray:
        """rho_0mu times the sign, of each row: the time of its flow in units of T."""
        return np.outer(self.polarity, SIGNS).ravel()

    @property
    def first_activity(self) -> FloatArray:
        """Averages of v max(w.x, 0) at the start, over the sphere, for each input, shape (latents, configurations)."""
        d = self.inputs.shape[1]
        mean = gamma(0.5 * d) / (2.0 * np.sqrt(np.pi) * gamma(0.5 * (d + 1.0)))
        each = float(SIGNS @ self.shares) * mean * np.linalg.norm(self.inputs, axis=1)
        return np.tile(each, (len(self.polarity), 1))

    @abstractmethod
    def averages(self, T: float) -> tuple[FloatArray, FloatArray]:
        """Averages of |v| s and of |w|^2 over nodes at the time T, each of shape (latents, signs)."""

    def Delta(self, T: float) -> float:
        """Difference of the mean outputs for the values of the root."""
        return self.from_averages(self.averages(T)[0])

    def from_averages(self, s: FloatArray) -> float:
        """Difference of the mean outputs from averages of |v| s, shape (latents, signs)."""
        return float(2.0 * self.polarity @ s @ (SIGNS * self.shares))


def parts_of(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray, float, bool, float]:
    """Arguments of `Latents`, in their order."""
    start = problem.network.initial
    tables = Tables(problem)
    leaves = np.array(problem.tree.leaves)
    assert isinstance(start, SphereStart)
    count = problem.shape.children[0]
    inputs = leaves[np.indices((2,) * count).reshape(count, -1).T]
    if problem.network.bias:
        inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
    difference = 0.5 * (tables.given_latent[1][:, 1] - tables.given_latent[1][:, 0])
    o = 4.0 * float(np.prod(problem.tree.root))
    return inputs, difference, problem.tree.polarities[1], start.positive, not start.fixed_lengths, o


def inner_times(nodes: Latents, times: FloatArray) -> tuple[FloatArray, str]:
    """T at each output time, NaN where it was not reached, and the status; from t(T), an integral of 1/(o Delta).

    Parameters
    ----------
    times : ndarray, shape (times,)
    """
    start, stop = nodes.Delta(0.0), float(times[-1])
    sign = np.copysign(1.0, start)
    with progress_bar(stop, "density", "t") as bar:

        def rate(depth: float, t: FloatArray) -> FloatArray:
            bar.update(min(max(float(t[0]), bar.n), stop) - bar.n)
            return np.array([1.0 / (nodes.o * abs(nodes.Delta(sign * depth)))])

        solution = solve_ode(
            rate,
            np.zeros(1),
            np.array([0.0, 1e15]),  # a time T that is not reached
            Tolerance(1e-10, 1e-10 * stop),
            integrator="DOP853",
            stops=[
                lambda depth, t: stop - float(t[0]),
                lambda depth, t: BLOW_UP_GROWTH - abs(nodes.Delta(sign * depth) / start),
            ],
            dense=True,
            interruptible=True,
        )
    status, reached = solution.status, float(solution.end[0])
    if solution.stopped_by == 1:
        status = grown_at(reached).status
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


def grown_at(time: float) -> BlowUpError:
    """The weights become infinite."""
    return BlowUpError(
        time,
        f"Delta has grown by {BLOW_UP_GROWTH:.0e} and becomes infinite at this time",
        "set network.initial.fixed_lengths to true, or time.stop to less",
    )


AXES = 3
"""Number of axes, which are at right angles."""

PROJECTIONS = np.linspace(-1.0, 1.0, 33)[1:-1]
"""Projections at which distribution functions are taken."""


def axes_of(weights: int) -> FloatArray:
    """Axes for nodes with a number of weights, shape (axes, weights)."""
    drawn = np.random.default_rng(weights).normal(size=(weights, weights))
    return np.asarray(np.linalg.qr(drawn)[0].T[:AXES])


def projection_coordinates(weights: int) -> dict[str, FloatArray]:
    """Axes and projections as variables of results."""
    return {"axis": axes_of(weights), "projection": PROJECTIONS}


def distribution_of(w: FloatArray, mass: FloatArray) -> FloatArray:
    """Distribution functions of the projections of directions, shape (axes, projections).

    Parameters
    ----------
    w : ndarray, shape (nodes, weights)
        Of unit length.
    mass : ndarray, shape (nodes,)
        Their shares, which add up to 1.
    """
    places = np.searchsorted(PROJECTIONS, w @ axes_of(w.shape[1]).T)
    size = len(PROJECTIONS) + 1
    return np.array([np.cumsum(np.bincount(column, mass, size))[:-1] for column in places.T])
