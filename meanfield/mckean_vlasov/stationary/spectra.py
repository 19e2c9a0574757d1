"""Stationary states where the noise of coordinates has variances rho of a spectrum (update_rules.md, section 11).

Given rho the density is that of one variance, with g + rho g', rho Lambda and G - rho h for g, Lambda and
G. The densities of all rho meet in averages alone: E[u w], E[rho u w], E[rho w^2] and E[w^2].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.coordinates import Coordinates, MixedCoordinates, Tilts
from meanfield.mckean_vlasov.stationary.effort import REPORTED_ACCURACY, Accuracy, Effort
from meanfield.mckean_vlasov.stationary.equations import Check, StationaryEquations
from meanfield.mckean_vlasov.stationary.panels import CROWDED
from meanfield.mckean_vlasov.stationary.state import Coefficients, Member, State, coefficients
from meanfield.mckean_vlasov.stationary.unit_norm import Norm, Scale, multiplier
from meanfield.mckean_vlasov.stationary.unknowns import by_averages, is_inside, norm_at, overlap_at, weighted_at
from meanfield.typing import FloatArray

LEAST_NOISE = 1e-10
"""Variance of the noise that stands for none: densities take some."""


def equations_of(
    limit: Limit,
    coordinates: Coordinates | None = None,
    accuracy: Accuracy = REPORTED_ACCURACY,
    effort: Effort | None = None,
) -> StationaryEquations:
    """Equations of a limit; see `StationaryEquations`."""
    kind = StationaryEquations if limit.spectrum is None else MixedEquations
    return kind(limit, coordinates, accuracy, effort)


def given_variance(c: Coefficients, rho: float) -> Coefficients:
    """Coefficients of coordinates whose noise has a variance."""
    d1 = len(c.g) // 2
    g, g_slope = (part[:d1] + rho * part[d1:-1] for part in (c.g, c.g_slope))
    slope = -rho * c.g_slope[-1] + (0.0 if c.growth_slope is None else c.growth_slope)
    return Coefficients(g, rho * c.diffusion, g_slope, rho * c.diffusion_slope, c.growth - rho * c.g[-1], slope)


class MixedState(NamedTuple):
    """Densities of all variances that may be stationary; see `State`.

    Parameters
    ----------
    x, q, norm, G, coefficients
        See `State`; coefficients are those of all variances.
    weighted : ndarray, shape (d1 + 1,)
        E[rho u w] and E[rho w^2].
    members : list of Member
        Each state with coefficients of its own, and G less rho h.
    """

    x: FloatArray
    q: FloatArray
    norm: float
    G: float
    coefficients: Coefficients
    weighted: FloatArray
    members: list[Member]

    @property
    def averages(self) -> tuple[FloatArray, FloatArray]:
        """E[u w] and E[w^2], and both weighted with rho, shape (2, d1 + 1), of members with their shares."""
        rows = [
            member.share * np.append(member.state.tilts.mean.T @ member.state.moments[:, 0], member.state.second)
            for member in self.members
        ]
        rho = [member.rho for member in self.members]
        return np.sum(rows, axis=0), np.asarray(rho @ np.array(rows))

    @property
    def is_free(self) -> bool:
        """Whether the norm is."""
        return self.coefficients.growth_slope is not None

    @property
    def spread(self) -> float:
        """Unit of F/V, which is F itself."""
        return 1.0

    @property
    def residual(self) -> FloatArray:
        """F: E[u w] and E[rho u w] less what they should be, in units of the norms, and logarithms of their ratios."""
        plain, weighted = self.averages
        d1, size = len(self.q), self.weighted[-1]
        found = [(plain[:d1] - self.q) / math.sqrt(self.norm), (weighted[:d1] - self.weighted[:d1]) / math.sqrt(size)]
        logs = [math.log(weighted[-1] / size), *([math.log(plain[-1] / self.norm)] if self.is_free else [])]
        return np.concatenate([*found, logs])

    @property
    def by_averages(self) -> Coefficients:
        """Coefficients with derivatives by E[u w], E[rho u w], E[rho w^2] and, where it is free, E[w^2]."""
        d1, slopes = len(self.q), np.zeros((len(self.x), len(self.x)))
        plain = [*range(d1), *([len(self.x) - 1] if self.is_free else [])]
        for own, norm in ((plain, self.norm), ([*range(d1, 2 * d1 + 1)], float(self.weighted[-1]))):
            slopes[np.ix_(own, own)] = by_averages(self.x[own], d1, norm)
        return self.coefficients.through(slopes)

    @property
    def overlaps(self) -> FloatArray:
        """See `State.overlaps`."""
        return np.append(self.q, self.weighted)


class MixedEquations(StationaryEquations):
    """F(x), see `MixedState.residual`, with its Jacobian; see `StationaryEquations`."""

    coordinates: MixedCoordinates

    def state(self, x: FloatArray) -> MixedState | None:  # type: ignore[override]
        """Densities of the norm at a place; None where there are none, or no weights have such overlaps."""
        limit = self.limit
        if not is_inside(limit, x):
            return None
        c = coefficients(limit, x, self._accuracy.one_sided)
        if not c.diffusion > 0.0:
            return None
        q, norm, rho = overlap_at(limit, x), norm_at(limit, x), self.coordinates.variances.rho
        rhos, statuses = np.maximum(rho, LEAST_NOISE), set[int]()
        own = [given_variance(c, rho) for rho in rhos]
        tilts = [self.coordinates.tilts(each.g) for each in own]

        def members_at(G: float) -> list[Member]:
            """Densities given each variance at G = g_w; none where one of them has none."""
            found = []
            weights = self.coordinates.variances.weight.tolist()
            for rho, share, each, there in zip(rhos.tolist(), weights, own, tilts, strict=True):
                inner = G - rho * float(c.g[-1])
                moments, status = self._moments(inner, each.diffusion, there.tilt)
                statuses.add(status)
                if status != 0:
                    return []
                found.append(Member(rho, share, State(x, q, norm, inner, each, there, moments)))
            return found

        if limit.free_norm:
            G = c.growth - self.shift
            members = members_at(G) if self._holds(G, c, rhos, tilts) else []
        else:
            G, members = self._multiplier(x, c, norm, float(np.min(rhos * c.g[-1])), members_at)
        self.effort.crowded |= not members and CROWDED in statuses
        return MixedState(x, q, norm, G, c, weighted_at(limit, x), members) if members else None

    def _multiplier(
        self, x: FloatArray, c: Coefficients, norm: float, lowest: float, members_at: Callable[[float], list[Member]]
    ) -> tuple[float, list[Member]]:
        """G at which E[w^2] is the norm that is kept, and the densities there."""

        def average(G: float) -> Norm:
            found = members_at(G)
            if not found:
                return Norm(math.inf, math.nan, found)
            values = sum(share * each.second for _, share, each in found)
            slopes = sum(share * _by_G(each) for _, share, each in found)
            return Norm(values / norm, slopes / norm, found)

        scale = Scale(self.highest + lowest, c.diffusion / norm)
        guess = self._typical_work / norm - 0.5 * c.diffusion * self.limit.mean_variance / norm
        if self.hint is not None:
            guess = scale.extrapolated(self.hint[1], float(self.hint[2] @ (x - self.hint[0])))
        found = multiplier(average, guess, scale, self._accuracy.norm)
        return found if found else (math.nan, [])

    def _holds(self, G: float, c: Coefficients, rhos: FloatArray, tilts: list[Tilts]) -> bool:
        """Whether no tail may be so heavy that E[w^2] is infinite."""
        last = [Scale(self.highest, rho * c.diffusion).last for rho in rhos]
        pushes = [float(np.abs(each.tilt).max()) for each in tilts]
        return all(
            G - rho * c.g[-1] <= most or push < self._pull_far_out
            for rho, most, push in zip(rhos, last, pushes, strict=True)
        )

    def slopes(self, state: MixedState) -> FloatArray:  # type: ignore[override]
        """Derivatives of F by x, and a row that stands for those of V; see `StationaryEquations.slopes`."""
        d1, n = len(state.q), len(state.x)
        by_x, by_G, rows = np.zeros((2, d1 + 1, n)), np.zeros((2, d1 + 1)), [*range(d1), d1 + 1]
        for rho, share, each in state.members:
            own_x, own_G = (part[rows] for part in self._derivatives(each))
            assert each.coefficients.growth_slope is not None  # see `given_variance`
            own_x = own_x + own_G[:, None] * each.coefficients.growth_slope
            by_x += share * np.array([own_x, rho * own_x])
            by_G += share * np.array([own_G, rho * own_G])
        if not state.is_free:
            G_slope = -by_x[0, -1] / by_G[0, -1]
            self.hint = state.x, state.G, G_slope
            by_x += by_G[:, :, None] * G_slope
        found, averages = [], state.averages
        logs = (n - 1 if state.is_free else None, 2 * d1)
        for k, (log, norm) in enumerate(zip(logs, (state.norm, float(state.weighted[-1])), strict=True)):
            part = by_x[k, :d1] / math.sqrt(norm) - np.eye(n)[k * d1 : (k + 1) * d1]
            if log is not None:
                part[:, log] -= 0.5 * averages[k][:d1] / math.sqrt(norm)
            found.append(part)
        for k, log in ((1, logs[1]), (0, logs[0])):
            if log is not None:
                found.append(by_x[k, -1:] / averages[k][-1] - np.eye(n)[log : log + 1])
        return np.vstack([*found, np.zeros((1, n))])

    def given(self, state: Any, rho: float) -> Any:
        """See `StationaryEquations.given`."""
        own = given_variance(state.coefficients, max(rho, 1e-10))
        return state._replace(G=state.G - rho * state.coefficients.g[-1], coefficients=own)

    def on_a_line(self, state: MixedState, positive: bool = False) -> MixedState:  # type: ignore[override]
        """See `StationaryEquations.on_a_line`."""
        fewer = super().on_a_line
        members = [each._replace(state=fewer(each.state, positive)) for each in state.members]
        return state._replace(members=members)

    def check(self, state: MixedState) -> Check:  # type: ignore[override]
        """Put a state into its equations with other nodes, of variances too, and with narrower panels in w."""
        other = self.like(self.coordinates.other, REPORTED_ACCURACY._replace(fineness=2.0)).state(state.x)
        if other is None:
            return Check(math.inf, math.inf)
        there = other.residual
        step = np.linalg.lstsq(self.slopes(state)[:-1], -there, rcond=None)[0]
        return Check(float(np.abs(there).max()), float(np.linalg.norm(step)))


def _by_G(state: State) -> float:
    """Derivative of E[w^2] by G."""
    m = state.moments.T
    return float(state.tilts.weight @ (m[3] - m[1] ** 2)) / state.coefficients.diffusion
