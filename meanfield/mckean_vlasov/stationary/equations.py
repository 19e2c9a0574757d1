"""Equations of stationary states: E[u w] = q under the explicit density, and the norm's rule (theory.md, section 6).

At fixed (q, G) the stationary density is P(w|u) = exp(E)/Z with

    E = (2/Lambda) [G w^2/2 - u.g w - tau Phi(w)].

E[w^2] grows with G, because its derivative is a variance. So G is a function of q where the norm is kept, found first,
and the equations that remain are F(q) = E[u w] - q = 0, as many as there are features. Where the norm is free G is that
of the closure, and E[w^2] is one more unknown with an equation of its own (update_rules.md, section 5). All derivatives
of averages are covariances; only those of the closure are differences.

Where the noise is small, w given u is close to -u.g/|g|: E[u w] turns around near every zero of g, and Newton's method
finds no root there but from a start that is very close. F/V with V = E[Var(w|u)] has the same roots, and is as smooth
as g: by linear response E[u w] = -(2 V/Lambda) g for small g. Searches therefore solve F/V = 0.

Under a linear phi w given u is Gaussian with a mean proportional to u, so that averages need the second moments of u
alone, which are those of u = +-1: no law needs more nodes than these two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from meanfield.ingredients.laws.coordinate import RademacherCoordinate
from meanfield.ingredients.priors import Prior, potential_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.coordinates import Coordinates, Layers, MixedCoordinates, Tilts, farthest_tilt
from meanfield.mckean_vlasov.stationary.effort import REPORTED_ACCURACY, Accuracy, Effort
from meanfield.mckean_vlasov.stationary.interpolation import FEWEST, at_many, resolved_pieces
from meanfield.mckean_vlasov.stationary.panels import CROWDED, DECAY_DISTANCE, ODD_MOMENTS, tilted_moments
from meanfield.mckean_vlasov.stationary.state import Coefficients, State, coefficients
from meanfield.mckean_vlasov.stationary.unit_norm import Norm, Scale, multiplier
from meanfield.mckean_vlasov.stationary.unknowns import is_inside, norm_at, overlap_at
from meanfield.numerics.compiled.scalar_functions import compile_scalar, evaluate
from meanfield.typing import FloatArray

CUTS_OF_PIECES = 2
"""Number of panels in u on each piece on which averages over w are resolved, as polynomials of degree 19."""

PROBES = np.geomspace(1e-3, 100.0, 97)
"""Values of w at which the prior's force is compared with its mirror image."""


class Check(NamedTuple):
    """Largest of |E[u w] - q| and |E[w^2] - 1| in finer quadrature with its rounding, and the error of x it shows.

    Both are in units of the norm.
    """

    residual: float
    error: float


def _is_even(prior: Prior) -> bool:
    """Whether Phi is even, by its kinks and phi at many points between them."""
    return {-x for x in prior.kinks} == set(prior.kinks) and np.array_equal(
        prior.forces(PROBES), -prior.forces(-PROBES)
    )


def _growth(prior: Prior) -> float:
    """Limit of 2 Phi(w)/w^2 far out: times tau it is the G from which on no density can be normalised."""
    far = np.array([-1.0, -0.5, 0.5, 1.0]) * DECAY_DISTANCE
    left, left_half, right_half, right = map(float, evaluate(potential_of(prior), far))
    # parts of Phi that grow like |w| cancel, and leave constants and rounding; where Phi overflows, it is all there is
    bends = [end if math.isinf(end) else end - 2.0 * half for end, half in ((left, left_half), (right, right_half))]
    growth = 4.0 * min(bends) / DECAY_DISTANCE**2
    return math.inf if growth > DECAY_DISTANCE else growth if growth > 1.0 / DECAY_DISTANCE else 0.0


def coordinates_of(limit: Limit, rung: int = 0) -> Coordinates:
    """Nodes in u, and of variances, that the equations of a limit need."""
    laws = [RademacherCoordinate() for _ in limit.coordinates] if limit.prior.functions.linear else limit.coordinates
    return Coordinates(laws, rung) if limit.spectrum is None else MixedCoordinates(laws, rung, limit.spectrum)


class StationaryEquations:
    """F(x), see `State.residual`, with its Jacobian.

    Parameters
    ----------
    limit : Limit
        Its start and its times do not matter.
    coordinates : Coordinates, optional
        Nodes in u; without them the fewest of the ladder.
    effort : Effort, optional
        Shared with other equations.

    Attributes
    ----------
    pull : float
        Factor tau of Phi in the exponent; 0 for a linear phi.
    highest : float
        The G from which on no density can be normalised; infinite if there is none.
    shift : float
        Multiplier of the norm less the G of states: tau phi(1) for a linear phi, otherwise 0.
    """

    def __init__(
        self,
        limit: Limit,
        coordinates: Coordinates | None = None,
        accuracy: Accuracy = REPORTED_ACCURACY,
        effort: Effort | None = None,
    ) -> None:
        self.limit = limit
        self.coordinates = coordinates or coordinates_of(limit)
        self._accuracy = accuracy
        self.effort = effort or Effort()
        prior = limit.prior.functions
        pull = limit.learning_rate * limit.prior.strength
        # A linear phi acts like G; apart they could be many digits larger than their difference.
        self.shift = pull * float(prior.forces(np.ones(1))[0]) if prior.linear else 0.0
        self.pull = 0.0 if prior.linear else pull
        self.potential = compile_scalar(potential_of(prior))
        self.highest = self.pull * _growth(prior)
        self.kinks = np.array(sorted(prior.kinks))
        typical = np.linspace(-4.0, 4.0, 81) + 0.01
        chance = np.exp(-0.5 * typical**2)
        self._typical_work = self.pull * float(chance @ (typical * prior.forces(typical)) / chance.sum())
        far = np.array([-DECAY_DISTANCE, DECAY_DISTANCE])
        # Where G is 0 a pull that does not vanish far out holds weights against tilts.
        self._pull_far_out = self.pull * float((np.sign(far) * prior.forces(far)).min() - 1e-9)
        self._even = _is_even(prior)
        self.hint: tuple[FloatArray, float, FloatArray] | None = None

    def like(
        self,
        coordinates: Coordinates | None = None,
        accuracy: Accuracy = REPORTED_ACCURACY,
        limit: Limit | None = None,
    ) -> StationaryEquations:
        """Copy with other nodes, accuracy or coefficients of the limit, with the same hint and a common effort."""
        other = type(self)(limit or self.limit, coordinates or self.coordinates, accuracy, self.effort)
        other.hint = self.hint
        return other

    def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F, shape (unknowns,), and its Jacobian, (unknowns, unknowns); NaN where there is no density of the norm."""
        state = self.state(x)
        return self.nowhere(x) if state is None else (state.residual, self.slopes(state)[:-1])

    def by_spread(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F/V, shape (unknowns,), and its Jacobian; NaN where there is no density of the norm."""
        state = self.state(x)
        return self.nowhere(x) if state is None else self.scaled(state)

    def scaled(self, state: State) -> tuple[FloatArray, FloatArray]:
        """F/V of a state, and its Jacobian, see `by_spread`; F itself, which is as smooth, where the norm is free."""
        slopes, residual, spread = self.slopes(state), state.residual, state.spread
        if state.is_free:
            return residual, slopes[:-1]
        return residual / spread, slopes[:-1] / spread - np.outer(residual, slopes[-1]) / spread**2

    @staticmethod
    def nowhere(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and a Jacobian of a place without a density."""
        return np.full(len(x), np.nan), np.full((len(x), len(x)), np.nan)

    def slopes(self, state: State) -> FloatArray:
        """Derivatives of F and V by x, shape (unknowns + 1, unknowns); that of G is kept as a hint for the next G."""
        by_x, by_G = self._relative_derivatives(state)
        d1, G_slope = len(state.q), state.coefficients.growth_slope
        if G_slope is None:
            G_slope = -by_x[-1] / by_G[-1]
            self.hint = state.x, state.G, G_slope
        slopes = by_x + np.outer(by_G, G_slope)
        slopes[:d1] -= np.eye(d1, len(state.x))
        if not state.is_free:
            return np.asarray(np.vstack([slopes[:d1], -slopes[d1]]))  # V = 1 - E[m^2]
        return np.vstack([slopes[:d1], slopes[-1] * (state.norm / state.second), slopes[-1] - slopes[d1]])

    def state(self, x: FloatArray) -> State | None:
        """Density of the norm at a place; None where there is none, or no weights have such overlaps."""
        if not is_inside(self.limit, x):
            return None
        c = coefficients(self.limit, x, self._accuracy.one_sided)
        if not c.diffusion > 0.0:
            return None
        tilts = self.coordinates.tilts(c.g)
        return self._of_free_norm(x, c, tilts) if self.limit.free_norm else self._of_its_norm(x, c, tilts)

    def _of_free_norm(self, x: FloatArray, c: Coefficients, tilts: Tilts) -> State | None:
        G, norm = c.growth - self.shift, norm_at(self.limit, x)
        if Scale(self.highest, c.diffusion / norm).last < G and self._pull_far_out <= np.abs(tilts.tilt).max():
            return None  # powers as tails, whose E[w^2] may be infinite
        moments, status = self._moments(G, c.diffusion, tilts.tilt)
        self.effort.crowded |= status == CROWDED
        return State(x, overlap_at(self.limit, x), norm, G, c, tilts, moments) if status == 0 else None

    def _of_its_norm(self, x: FloatArray, c: Coefficients, tilts: Tilts) -> State | None:
        norm, q = norm_at(self.limit, x), overlap_at(self.limit, x)
        scale = Scale(self.highest, c.diffusion / norm)
        guess = (self._typical_work - 0.5 * c.diffusion / (1.0 - float(q @ q) / norm)) / norm
        if self.hint is not None:
            near, G_there, slope = self.hint
            guess = scale.extrapolated(G_there, float(slope @ (x - near)))

        statuses: set[int] = set()

        def average(G: float) -> Norm:
            moments, status = self._moments(G, c.diffusion, tilts.tilt)
            statuses.add(status)
            if status != 0:
                return Norm(math.inf, math.nan, moments)
            slope = float(tilts.weight @ (moments[:, 3] - moments[:, 1] ** 2)) / c.diffusion
            return Norm(float(tilts.weight @ moments[:, 1]) / norm, slope / norm, moments)

        found = multiplier(average, guess, scale, self._accuracy.norm)
        # E[w^2] grows with G, so that a multiplier is right whatever was met on the way, but none may be wrong
        self.effort.crowded |= found is None and CROWDED in statuses
        return None if found is None else State(x, q, norm, found[0], c, tilts, found[1])

    def _moments(self, G: float, diffusion: float, s: FloatArray) -> tuple[FloatArray, int]:
        """Averages over w at tilts, shape (tilts, MOMENTS), and a status, 0 if all is well."""
        scale = 2.0 / diffusion
        asked, where = np.unique(np.abs(s) if self._even else s, return_inverse=True)
        constants = self.potential, scale * G, scale * self.pull

        def averages(tilts: FloatArray) -> tuple[FloatArray, int]:
            self.effort.densities += len(tilts)
            found: tuple[FloatArray, int] = tilted_moments(*constants, tilts, self.kinks, self._accuracy.fineness)
            return found

        moments, status = at_many(averages, scale * asked, self._accuracy.averages)
        if status != 0:
            return moments, status
        moments = moments[where]
        if self._even:  # densities of opposite tilts mirror each other
            moments[:, ODD_MOMENTS] *= np.where(s < 0, -1.0, 1.0)[:, None]
        return moments, status

    def _relative_derivatives(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Those of averages in units of the norm."""
        by_x, by_G = self._derivatives(state)
        d1, units = len(state.q), np.full(len(by_G), state.norm)
        units[:d1] = math.sqrt(state.norm)
        by_x, by_G = by_x / units[:, None], by_G / units
        if state.is_free:
            m = state.moments.T
            sums = [*(m[0] @ state.tilts.mean), state.tilts.weight @ m[0] ** 2, state.second]
            by_x[:, -1] -= np.array([*np.full(d1, 0.5), 1.0, 1.0]) * sums / units
        return by_x, by_G

    def _derivatives(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Derivatives of (E[u w], E[m^2], E[w^2]), m = E[w|u], by x at fixed G, (d1 + 2, unknowns), and by G."""
        m, t, c = state.moments.T, state.tilts, state.coefficients
        w_w, w_square, square_square = m[1] - m[0] ** 2, m[2] - m[0] * m[1], m[3] - m[1] ** 2
        w_potential, square_potential = m[5] - m[0] * m[4], m[6] - m[1] * m[4]
        # covariances of w and w^2 with Lambda E/2
        w_energy = 0.5 * state.G * w_square - t.tilt * w_w - self.pull * w_potential
        square_energy = 0.5 * state.G * square_square - t.tilt * w_square - self.pull * square_potential
        twice = 2.0 * m[0]  # dm^2 = 2 m dm, and the derivatives of m are the covariances with w
        by_g = -2.0 * np.vstack([np.einsum("c,ckl->kl", w_w, t.second), (twice * w_w) @ t.mean, w_square @ t.mean])
        of_means = [(twice * w_energy) @ t.weight, square_energy @ t.weight]
        by_diffusion = -2.0 / c.diffusion * np.array([*(w_energy @ t.mean), *of_means])
        by_G = np.array([*(w_square @ t.mean), (twice * w_square) @ t.weight, square_square @ t.weight])
        by_x = by_g @ c.g_slope + np.outer(by_diffusion, c.diffusion_slope)
        return by_x / c.diffusion, by_G / c.diffusion

    def given(self, state: Any, rho: float) -> Any:
        """Density of coordinates whose noise has a variance: all have one here."""
        return state

    def layers(self, states: Sequence[State]) -> Layers:
        """Coordinates with nodes that resolve averages over w in these states."""
        ends = np.unique(np.concatenate([self._pieces(state) for state in states]))
        return Layers(self.coordinates.laws, ends, CUTS_OF_PIECES, self.coordinates.rung)

    def _pieces(self, state: State) -> FloatArray:
        c = state.coefficients

        def averages(s: FloatArray) -> tuple[FloatArray, FloatArray, int]:
            moments, status = self._moments(state.G, c.diffusion, s)
            units = math.sqrt(state.norm), state.norm
            return moments[:, :2] / units, self._roundings(state, s, moments) / units, status

        reach = farthest_tilt(self.coordinates.laws, c.g) or c.diffusion  # without any tilt any pieces will do
        return resolved_pieces(averages, -reach, reach)

    def _roundings(self, state: State, s: FloatArray, moments: FloatArray) -> FloatArray:
        """Rounding errors of E[w|s] and E[w^2|s]: the error of E times their standard deviations."""
        m = moments.T
        terms = 0.5 * abs(state.G) * m[1] + np.abs(s * m[0]) + self.pull * np.abs(m[4])
        variances = np.array([m[1] - m[0] ** 2, m[3] - m[1] ** 2])
        error = 2.0 * np.finfo(float).eps / state.coefficients.diffusion * terms
        return np.asarray((error * np.sqrt(np.maximum(variances, 0.0))).T)

    def on_a_line(self, state: State, positive: bool = False) -> State:
        """State with nodes in s = u.g alone, where they are fewer, by `Tilts.on_a_line` or `Tilts.merged`."""
        if len(state.tilts.tilt) <= FEWEST:
            return state
        fewer, c = state.tilts.merged if positive else state.tilts.on_a_line, state.coefficients
        tilts = fewer(self._pieces(state))
        if len(tilts.tilt) >= len(state.tilts.tilt):
            return state
        moments, status = self._moments(state.G, c.diffusion, tilts.tilt)
        return state._replace(tilts=tilts, moments=moments) if status == 0 else state

    def check(self, state: State) -> Check:
        """Put a state into its equations with nodes in u that resolve its layers, and with narrower panels in w.

        The error of x is that of one Newton step from there, at best a bound.
        """
        tilt, weight, mean = self._finest(state)
        finer = self.like(accuracy=REPORTED_ACCURACY._replace(fineness=2.0))
        moments, status = finer._moments(state.G, state.coefficients.diffusion, tilt)
        if status != 0:
            return Check(math.inf, math.inf)
        size, d1, c = math.sqrt(state.norm), len(state.q), state.coefficients
        rounded = self._roundings(state, tilt, moments).T
        rounding = max(*(np.abs(mean.T) @ rounded[0] / size), float(weight @ rounded[1]) / state.norm)
        here = np.array([*state.residual[:d1], state.second / state.norm - 1.0])
        there = np.array([*((mean.T @ moments[:, 0] - state.q) / size), weight @ moments[:, 1] / state.norm - 1.0])
        by_x, by_G = self._relative_derivatives(state)
        if c.growth_slope is None:
            slopes = np.column_stack([by_x, by_G])[[*range(d1), -1]]
            # G is measured in units in which its column is as large as the others.
            slopes[:-1, :-1] -= np.eye(d1)
            slopes[:, -1] /= np.linalg.norm(slopes[:, -1])
        else:
            slopes = (by_x + np.outer(by_G, c.growth_slope))[[*range(d1), -1]]
            slopes[:d1, :d1] -= np.eye(d1)
        step = np.linalg.lstsq(slopes, there - here, rcond=None)[0]
        return Check(float(np.abs(there).max()) + rounding, float(np.linalg.norm(step[: len(state.x)])))

    def _finest(self, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes that share nothing with those of the state, with their weights and means, see `Tilts`."""
        tilts, g = state.tilts, state.coefficients.g
        if not self.coordinates.exact:
            if not self.coordinates.takes_layers:
                return self.coordinates.law_of_tilt(g, self._pieces(state))
            other = self.coordinates.rung - 1 if self.coordinates.rung else 1
            tilts = Layers(self.coordinates.laws, self._pieces(state), 2 * CUTS_OF_PIECES, other).tilts(g)
        return tilts.tilt, tilts.weight, tilts.mean

    def node_error(self, x: FloatArray) -> float:
        """Error of a solution x as `check` shows it; infinite where x has no state."""
        state = self.state(x)
        return math.inf if state is None else self.check(state).error
