"""Networks at rest: ends of the flow from random starts, and unstable ones by least squares (latent_tree.md, 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import BlowUpError, InputError
from meanfield.families.latent_tree.initial import latent_coordinates
from meanfield.families.latent_tree.pieces import Pieces
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.rest.equations import Equations, State, has_directions
from meanfield.families.latent_tree.settings import SphereStart
from meanfield.families.latent_tree.sizes import check_tables
from meanfield.families.latent_tree.tables import Tables
from meanfield.families.latent_tree.weights import uniform_weights
from meanfield.numerics.growth_rates import verdict_of
from meanfield.problems.base import check_problem
from meanfield.process.progress import counted
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

MOST_GRADIENTS = 8000
"""Largest number of gradients of a flow from a random network."""

MOST_WEIGHTS = 400
"""Largest number of weights of a network whose states are searched for: each Jacobian takes twice as many gradients."""


def check_stationary(problem: Problem) -> None:
    """Refuse problems whose networks at rest are not searched for.

    Raises
    ------
    InputError
        With what to change, or the method to use instead.
    """
    check_problem(problem, Problem)
    check_no_velocity(problem.training, "population and SGD")
    start = problem.network.initial
    if problem.data is not None:
        raise InputError(
            f"data.law = '{problem.data.law}': nodes rest in whole regions there, or slide without end, and "
            "latent_tree.md, section 1.4, has the phase portrait; use the method 'population'"
        )
    if isinstance(start, SphereStart) and start.fixed_lengths:
        raise InputError(
            "network.initial.fixed_lengths = true: nodes of fixed length rest on spheres, and networks at rest are "
            "searched for where all weights are trained; set it to false, or use the method 'density' with a late "
            "time.stop"
        )
    if has_directions(problem) and problem.network.bias:
        raise InputError(
            f"network.bias = true: with loss.kind = '{problem.loss.kind}' and outputs that are not normalised weights "
            "grow without bound, and with biases their direction never rests; set network.bias to false, or "
            "network.output_normalisation to true"
        )
    check_tables(problem)
    if problem.weight_count > MOST_WEIGHTS:
        raise InputError(
            f"network.nodes_per_latent = {problem.network.nodes_per_latent}: networks at rest are searched for with up "
            f"to {MOST_WEIGHTS} weights, and this one has {problem.weight_count:,}; lower it, tree.depth or "
            "tree.children, or use the method 'population'"
        )


@solver
def find_stationary(problem: Problem) -> Solved:
    """Networks at rest under W' = -grad L, which of them are stable, and how many random networks come to each.

    Parameters
    ----------
    problem : Problem
        `network.initial` does not matter: `stationary.starts` networks start uniformly within 1/sqrt(inputs).

    Returns
    -------
    xarray.Dataset
        Along `state`, by loss: `loss`, `weights`, `selectivity`, `correlation`, `rates`, the growth rates of small
        deviations that keep inactive nodes inactive, minus the eigenvalues of the Hessian; `growing`, `flat` and
        `orbit`, the numbers of those that grow, that do neither, and that must not by symmetry; `stability`, of all
        others; `dead` and `kinks`, the numbers of nodes that are never active, and of pre-activations that stay at 0;
        `share`, the share of the random networks that come to it. Each state stands for all that compute the same up to
        rotations of the outputs. With the losses `simple` and `beta` of outputs that are not normalised weights grow
        without bound, and states are directions of all weights. The attribute `warning` says what is known of states
        that may be missing.

    Raises
    ------
    InputError
        If tables do not fit, or there are no such states; the message says what to change.

    Notes
    -----
    Source: latent_tree.md, section 3.6.
    """
    check_stationary(problem)
    tables = Tables(problem)
    rng = np.random.default_rng(problem.stationary.seed)
    count = problem.stationary.starts
    starts = [uniform_weights(problem.shape, problem.network.bias, rng) for _ in range(count)]
    equations = Equations(tables, starts[0])
    scale = float(np.median([np.linalg.norm(equations.field(start.vector)) for start in starts]))
    search = _Search(equations, max(scale, 1e-12))
    complete = problem.shape.depth == 1 and equations.directions
    states = _of_a_linear_network(equations) if complete else []
    moving = 0
    shares = [0.0] * len(states)
    for start in counted(starts, "networks at rest", "start"):
        state = search.end_of(equations.scaled(start.vector))
        if state is None:
            moving += 1
            continue
        place = next((k for k, other in enumerate(states) if state.is_like(other)), len(states))
        if place == len(states):
            states.append(state)
            shares.append(0.0)
        shares[place] += 1.0 / count
    if not complete:
        lowest = min((state.loss for state in states), default=0.0)
        for _ in counted(range(count), "unstable states", "start"):
            drawn = equations.scaled(uniform_weights(problem.shape, problem.network.bias, rng).vector)
            found = search.nearest(drawn)
            if found is None or (equations.directions and found.loss > 1e-6 * lowest):
                continue  # where both means are the same nothing moves, in a continuum of networks
            if not any(found.is_like(other) for other in states):
                states.append(found)
                shares.append(0.0)
    warning = _warning(problem, equations.directions, moving, search.at_zero, complete)
    return _solved(problem, equations, states, shares, warning)


class _EnoughError(Exception):
    """End of a flow that takes too many gradients."""


class _Flow(Pieces):
    """Flow that takes a limited number of gradients: some outputs that are normalised turn round without end at 0."""

    _taken = 0

    def _velocity(self, y: FloatArray) -> FloatArray:
        self._taken += 1
        self.last = y
        if self._taken > MOST_GRADIENTS:
            raise _EnoughError
        return super()._velocity(y)


class _Search:
    """Ways from a network to one at rest."""

    def __init__(self, equations: Equations, scale: float) -> None:
        self._equations = equations
        self._scale = scale
        self.at_zero = 0
        """Number of networks that came to no rest because an output that is normalised is led to 0."""

    def end_of(self, y: FloatArray) -> State | None:
        """State to which the flow from a network comes; None if it does not rest."""
        equations = self._equations
        first = float(np.linalg.norm(y)) / self._scale  # so that weights can change by as much as they are
        times = np.concatenate([[0.0], first * 2.0 ** np.arange(12)])  # a network that moves then never rests
        # a loose tolerance, because only the end matters
        flow = _Flow(equations.tables, equations.like.like(y), times, 1e-7, equations.motion)
        found = None
        try:
            for stop in times[1:]:
                while flow.time < stop:
                    flow.follow(stop)
                found = self._rest_near(*flow.pattern)
                if found is not None:
                    return found
        except BlowUpError:
            pass
        except _EnoughError:  # perhaps because what decays fastest takes short steps, near a state
            found = self._rest_near(flow.last, equations.tables.forward(equations.like.like(flow.last)).gates, [])
        self.at_zero += found is None and self._leads_to_zero(flow)
        return found

    def _leads_to_zero(self, flow: _Flow) -> bool:
        """Whether a normalised output turns round near 0, or jumps there as a node that slides becomes active."""
        tables, like = self._equations.tables, self._equations.like
        output = tables.problem.normalisation
        if not output.active or output.epsilon > 0.0:
            return False
        lengths = np.linalg.norm(tables.forward(like.like(flow.last)).before[-1][0], axis=-1)
        if lengths.min(initial=np.inf, where=lengths > 0.0) < 0.01 * lengths.max(initial=0.0):  # an output vanishes
            return True
        y, gates, held = flow.pattern
        closed = [gate.copy() for gate in gates]
        for surface in held:
            closed[surface.level][surface.latent, surface.where, surface.node] = 0.0
        on, off = (tables.forward(like.like(y), some).before[-1][0].any(axis=-1) for some in (gates, closed))
        return bool((on & ~off).any())

    def _rest_near(self, y: FloatArray, gates: Any, held: Any) -> State | None:
        """State that the flow comes to from a network near it."""
        equations = self._equations
        speed = float(np.linalg.norm(equations.field(y, gates)))
        if speed > 0.1 * self._scale:  # of which the rest is left to Newton's method
            return None
        now = equations.tables.loss_and_gradient(equations.like.like(equations.scaled(y)), gates)[0]
        ways: list[Callable[[], State | None]] = [lambda: equations.polished(y, gates, held, self._scale)]
        if not held:
            ways.append(lambda: self.nearest(y))
        for way in ways:
            state = way()
            if state is None or state.growing or state.loss > now + 1e-9 * abs(now):  # rounding
                continue
            away = float(np.linalg.norm(state.y - equations.scaled(y)))
            if away <= 0.3 * float(np.linalg.norm(state.y)):
                return state
        return None

    def nearest(self, y: FloatArray) -> State | None:
        """State that the method of least squares comes to, stable or not; None if it comes to none."""
        equations = self._equations

        def residual(x: FloatArray) -> FloatArray:
            return equations.field(x) / self._scale

        def jacobian(x: FloatArray) -> FloatArray:
            return equations.slope(x) / self._scale

        found = least_squares(residual, y, jacobian, max_nfev=25)
        if found.cost > 1e-6:  # of velocities that are far from 0
            return None
        y = equations.scaled(found.x)
        gates = equations.tables.forward(equations.like.like(y)).gates
        return equations.polished(y, gates, [], self._scale)


def _of_a_linear_network(equations: Equations) -> list[State]:
    """All directions at rest of a network of one level: one output along an eigenvector of the operator, the rest 0.

    The loss is -tr W V W^T, so that the gradient of one output's weights is -2 V times them, and at rest all rows of W
    are in one eigenspace.
    """
    like, tables = equations.like, equations.tables
    inputs = like.W[0][0, 0].size
    rows = []
    for row in np.eye(inputs):
        y = np.zeros(len(like.vector))
        y[:inputs] = row
        rows.append(-0.5 * tables.loss_and_gradient(like.like(y))[1].vector[:inputs])
    values, vectors = np.linalg.eigh(np.array(rows))
    found: list[State] = []
    for k in np.argsort(-values):
        if k + 1 < inputs and abs(values[k + 1] - values[k]) <= 1e-9 * np.abs(values).max():
            continue  # of the eigenspace before it
        y = np.zeros(len(like.vector))
        y[:inputs] = vectors[:, k]
        found.append(equations.state(y, [], []))
    return found


def _solved(problem: Problem, equations: Equations, states: list[State], shares: list[float], warning: str) -> Solved:
    order = sorted(range(len(states)), key=lambda k: (round(states[k].loss, 10), -shares[k]))
    states, shares = [states[k] for k in order], [shares[k] for k in order]
    nodes = (len(problem.shape.level_of), problem.shape.nodes)
    weights = len(equations.like.vector)
    rates = np.full((len(states), weights), np.nan)
    arrays: dict[str, Any] = {name: np.full((len(states), *nodes), np.nan) for name in ("selectivity", "correlation")}
    for k, state in enumerate(states):
        rates[k, : len(state.rates)] = state.rates
        found = equations.tables.forward(equations.like.like(state.y), state.gates or None)
        moments = equations.tables.moments(found)
        arrays["selectivity"][k], arrays["correlation"][k] = moments.selectivity, moments.correlation
    arrays |= {
        "state": np.arange(1, len(states) + 1),
        "loss": np.array([state.loss for state in states]),
        "weights": np.array([state.y for state in states]).reshape(len(states), weights),
        "rates": rates,
        "stability": np.array([_stability(state) for state in states], dtype=np.int8),
        "share": np.array(shares),
    }
    for name in ("growing", "flat", "orbit", "dead"):
        arrays[name] = np.array([getattr(state, name) for state in states], dtype=float)
    arrays["kinks"] = np.array([len(state.held) for state in states], dtype=float)
    return Solved("network_states", arrays | latent_coordinates(problem.shape), warning=warning)


def _stability(state: State) -> int:
    """Code of the stability apart from symmetries: marginal where more directions are flat than they make so."""
    if state.growing:
        return verdict_of(1.0, 0.0)
    return verdict_of(0.0, 1.0) if state.flat > state.orbit else verdict_of(-1.0, 0.0)


def _warning(problem: Problem, directions: bool, moving: int, at_zero: int, complete: bool) -> str:
    said = []
    if directions:
        said.append("weights grow without bound, and states are directions of all weights")
    if not complete:
        said.append(
            "states are searched for from random networks, and the list is not known to be complete: unstable states "
            "at kinks are not looked for, and others with small regions may be missing; raise stationary.starts"
        )
    if moving:
        said.append(f"{moving} of {problem.stationary.starts} random networks came to no rest that was found")
    if at_zero:
        said.append(
            f"of these {at_zero} lead an output to 0, where with network.epsilon = 0 its direction turns or jumps at "
            "once and has no gradient (latent_tree.md, 3.6); give network.epsilon, such as 0.1, and use the method "
            "'population'"
        )
    return "; ".join(said)
