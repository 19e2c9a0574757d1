"""All stationary states of two channels under any prior: a search on coarse cells, and levels of finer ones.

Starts are the fixed points of the overlaps under linear priors, and those of a closure in which the weights stay
Gaussian under the prior at hand, with random ones besides. Channels that coincide have no density in the plane: a pair
that differs a little takes their place. Where it has no stationary law its difference runs away, and the state of equal
channels attracts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.states.analysis import arrangement_of
from meanfield.families.contrastive.channels.states.field import COINCIDING, SmoothField, random_state
from meanfield.families.contrastive.channels.states.search import ChannelStates
from meanfield.families.contrastive.channels.states.symmetry import Symmetries, coincidences
from meanfield.families.contrastive.channels.stationary.cells import Cells
from meanfield.families.contrastive.channels.stationary.equations import APART, ROOT, PlaneEquations, PlaneState
from meanfield.families.contrastive.channels.stationary.motion import Motion
from meanfield.families.contrastive.channels.stationary.stability import Spectrum, spectrum
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.numerics.extrapolation import extrapolation_weights
from meanfield.numerics.growth_rates import ComplexArray, sorted_rates, verdict_of
from meanfield.problems.problem_keys import with_value
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved
from meanfield.results.states import stacked
from meanfield.several_vectors.densities import NODE_SCALE, single_arrays
from meanfield.several_vectors.display import CELLS, COMBINATIONS, reach_of, singles_given_u
from meanfield.typing import FloatArray

LEVELS = (32, 48, 64)
"""Cells of an axis of 12 standard deviations."""

SEARCH_SCALE = 0.2
"""Factor on the default number of nodes in the search, whose roots are starts on more of them."""

RANDOM_STARTS = 40
"""Random starts of Newton's method on the coarsest cells, besides the states of the two closures."""

USUAL_WIDTH, MOST_WIDTH = 6.0, 24.0
"""Half-width of the cells, in standard deviations given u, and the largest one: weights that condense reach farther."""

NOT_LOOKED_FOR = (
    "states of channels that coincide, w_1 = +-w_2, are in the list only where channels that differ a little have a "
    "law: those from which they part at once are missing, and nothing proves that no others are"
)
"""Sentence about what the list does not hold."""


class GaussianField(SmoothField):
    """Velocity of the overlaps of weights that would stay Gaussian given u, under any prior.

    It has the symmetries of the problem, and states near those of the density.
    """

    def __init__(self, problem: Problem, closure: ChannelClosure) -> None:
        super().__init__(problem, closure=closure)
        self._nodes = Nodes.of(problem, None, NODE_SCALE)
        z, weight = np.polynomial.hermite_e.hermegauss(40)  # starts need few digits
        self._z, self._weight = z, weight / weight.sum()

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Velocity of the vector."""
        q, M = self.unpacked(vector)
        K = M - q.T @ q
        root = np.sqrt(np.maximum(np.diag(K), 1e-12))  # a channel without a width
        u, u_weight, prior = self._nodes.u, self._nodes.u_weight, self.closure.problem.prior
        mean = u @ q
        force = prior.force(mean[:, :, None] + root[:, None] * self._z)
        plain, tilted = force @ self._weight, force @ (self._weight * self._z)
        of_u = (u * u_weight[:, None]).T @ plain
        # E[w_l phi(w_k)], rows l: a regression on w_k
        of_w = (mean * u_weight[:, None]).T @ plain + K * (u_weight @ tilted) / root
        r = np.diag(of_w)
        pull = self.closure.problem.model.rate
        change = of_u - q * r, of_w + of_w.T - M * (r[:, None] + r)
        return np.asarray(super().__call__(vector) - pull * self.packed(*change))


@dataclass(frozen=True)
class FoundState:
    """A state on the levels of cells, the coarsest first.

    Parameters
    ----------
    levels : list of PlaneState
    rates : list of Spectrum
        Of the first two.
    """

    levels: list[PlaneState]
    rates: list[Spectrum]

    @property
    def unknowns(self) -> FloatArray:
        """Unknowns on all levels, shape (levels, 2 d1 + 3)."""
        return np.array([level.unknowns for level in self.levels])


def plane_states(problem: Problem) -> Solved:
    """All stationary states of two channels that a search finds, one of each set of images by symmetries.

    Notes
    -----
    Levels of cells are extrapolated, and what the last one changes in that is `quadrature_error`. The warning says what
    is not looked for. Source: several_channels.md, section 5.
    """
    closure = ChannelClosure(problem)
    field = GaussianField(problem, closure)
    cells = Cells(LEVELS[0], USUAL_WIDTH)
    search = PlaneEquations(closure, Nodes.of(problem, problem.density.feature_nodes, SEARCH_SCALE), cells)
    equations = PlaneEquations(closure, Nodes.of(problem, problem.density.feature_nodes, NODE_SCALE), cells)
    symmetries = Symmetries(field)
    found, narrow = [], 0
    roots = roots_of(search, field, symmetries)
    with progress_bar(len(roots), "stationary states", "state") as bar:
        for y in roots:
            state = refined(equations, field, y, equations)
            narrow += state is None
            found += [] if state is None else [state]
            bar.update()
    found.sort(key=lambda state: _rates(state).growth_rate)
    rows = [state_variables(equations, symmetries, state) for state in found]
    said = [NOT_LOOKED_FOR]
    if narrow:
        said.append(f"{narrow} state(s) have tails beyond {MOST_WIDTH:g} standard deviations and are not in the list")
    status = "complete" if rows else f"failed: no stationary state was found; {NOT_LOOKED_FOR}"
    arrays = stacked(rows, "stationary", problem) | _densities(equations, found)
    return Solved("stationary", arrays, status, "; ".join(said) if rows else "")


def roots_of(equations: PlaneEquations, field: GaussianField, symmetries: Symmetries) -> list[FloatArray]:
    """Unknowns of all states on the coarsest cells, one of each set of images."""
    linear = SmoothField(with_value(equations.problem, "prior", {"name": "none"}))
    rng = np.random.default_rng(0)
    gaussian, without = ChannelStates(field), ChannelStates(linear)
    for states in (gaussian, without):
        for space in coincidences(states.field):
            states.search(space)
    gaussian.search_at_random(rng)
    starts = [*gaussian.x, *without.x, *(random_state(field, rng) for _ in range(RANDOM_STARTS))]
    known: list[FloatArray] = []
    unknowns = field.unknowns
    with progress_bar(len(starts), "search for stationary states", "start") as bar:
        for x in starts:
            q, M = field.unpacked(x)
            if abs(M[0, 1]) >= COINCIDING:
                M = np.eye(2) + (1.0 - APART) * (1.0 - np.eye(2))
                q = q[:, [0, 0]]
            y = equations.root(equations.start(q, M))
            if y is not None and not any(symmetries.same(y[:unknowns], other[:unknowns]) for other in known):
                known.append(y)
            bar.update()
    return known


def refined(
    equations: PlaneEquations, field: GaussianField, y: FloatArray, of_rates: PlaneEquations
) -> FoundState | None:
    """A state on all levels, with as many cells as its tails need; None where they reach too far.

    Parameters
    ----------
    of_rates : PlaneEquations
        Equations that growth rates are found with, which may have fewer nodes.
    """
    width = USUAL_WIDTH
    expected = float(np.linalg.eigvals(field.jacobian(y[: field.unknowns])).real.max())
    while width <= MOST_WIDTH:
        levels: list[PlaneState] = []
        rates: list[Spectrum] = []
        for cells in LEVELS:
            finer = equations.on(Cells(2 * round(0.5 * cells * width / USUAL_WIDTH), width))
            root = finer.root(y)
            state = None if root is None else finer.state(root)
            if root is None or state is None or state.rim > 1e-7:  # probability in the outermost cells
                break
            y = root
            levels.append(state)
            if len(rates) < 2:
                rough = of_rates.on(finer.cells)
                at = state if of_rates is equations else rough.state(root if (r := rough.root(root)) is None else r)
                if at is None:
                    break
                rates.append(spectrum(rough, at, expected))
        if len(levels) == len(LEVELS):
            return FoundState(levels, rates)
        width *= 1.25
    return None


class _Rates(NamedTuple):
    """Rates of a state without errors of second order in the width of cells, and what these were."""

    eigenvalues: ComplexArray
    gap: float
    error: float

    @property
    def growth_rate(self) -> float:
        """The largest rate: laws at fixed overlaps take part."""
        return max(float(self.eigenvalues[0].real), -self.gap)


def _rates(state: FoundState) -> _Rates:
    weights = extrapolation_weights(LEVELS[:2], (2,))
    values = np.array([[*each.eigenvalues, each.gap] for each in state.rates])
    best = weights @ values
    return _Rates(sorted_rates(best[:-1]), float(best[-1].real), float(np.abs(best - values[-1])[[0, -1]].max()))


def state_variables(equations: PlaneEquations, symmetries: Symmetries, state: FoundState) -> dict[str, Any]:
    """The variables of a state, but for its densities."""
    problem, rates = equations.problem, _rates(state)
    coarse, fine = (extrapolation_weights(levels, (2,)) for levels in (LEVELS[:2], LEVELS[1:]))
    y, before = fine @ state.unknowns[1:], coarse @ state.unknowns[:2]
    r = fine @ [level.work(problem.prior.force) for level in state.levels[1:]]
    q, M, n = equations.unpacked(y)
    asked = np.full(len(y), True)
    if M[0, 1] >= 1.0 - 2.0 * APART:
        M, asked[-3] = np.ones((2, 2)), False
    tau, averages = problem.model.rate, equations.closure(q, M)
    motion = Motion.of(averages, q, M, tau, n)
    residual = tau * np.diag(averages.D) + 0.5 * np.diag(averages.Lambda) - tau * r - n
    rests = [equations.on(level.cells).values_alone(y) for level in state.levels[1:]]
    return {
        "q": np.where(np.abs(q) < ROOT, 0.0, q),
        "M": np.where(np.abs(M) < ROOT, 0.0, M),
        "r": r,
        "Lambda": averages.Lambda,
        "multiplier": motion.multipliers(M),
        "multiplier_residual": residual,
        "residual": float(np.abs(fine @ rests)[asked].max()),
        "quadrature_error": float(np.abs(y - before)[: q.size].max()),
        "growth_rate": rates.growth_rate,
        "relaxation_rate": rates.gap,
        "eigenvalue_real": rates.eigenvalues.real,
        "eigenvalue_imag": rates.eigenvalues.imag,
        "stability": np.int8(verdict_of(rates.growth_rate, rates.error)),
        "arrangement": arrangement_of(q, M),
        "copies": symmetries.copies(np.append(q, M[0, 1])),
    }


def _densities(equations: PlaneEquations, found: list[FoundState]) -> dict[str, Any]:
    """Variables of the laws of single weights on the finest cells."""
    nodes, problem = equations.nodes, equations.problem
    finest = [state.levels[-1] for state in found]
    half_width = max((reach_of(state.frame) for state in finest), default=1.0)
    singles = np.empty((len(found), len(nodes.u), CELLS, len(COMBINATIONS)))
    for out, state in zip(singles, finest, strict=True):
        n = state.cells.count
        P = np.array([law.P for law in state.laws]).reshape(-1, n, n) / state.cells.h**2
        out[:] = nodes.unfolded(singles_given_u(P, state.cells.axis, state.frame, half_width), 0, 1)
    return single_arrays(problem.coordinates, (nodes.u, nodes.u_weight), singles, half_width, 2)[0]
