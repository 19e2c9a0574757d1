"""Averages over (Theta1, Theta2) in coordinates in which their density is a product.

D = Theta1 - Theta2 = zeta1 - zeta2 has variance v11 + v22 - 2 v12. X = alpha Theta1 + (1 - alpha) Theta2 with
alpha = (v22 - v12)/var D is B plus a Gaussian variable that is independent of D, of variance det V / var D. So
Theta1 = X + (1 - alpha) D, Theta2 = X - alpha D, the density is f(x) phi(d), and d/dTheta1 + d/dTheta2 is d/dX. Both
variables run over Gauss-Legendre panels that end wherever an activation has a kink; a singular V is no special case.
"""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from tests.oracles.laws import PANEL, TAIL, Hidden, gauss_legendre, march, normal_density

SMALLEST = 1e-5
"""Below this standard deviation of X given c the density is not resolved: then X is a point given c."""

STEIN = 0.01
"""Standard deviation below which <df/dX> = <f times score> loses more than 1e-12 to rounding, which the score
multiplies by 1/s^2."""

NO_NOISE = 1e-11
"""Standard deviation of a noise that changes nothing but the 1/s at a kink; it could not be resolved around x = 1."""


def _within(x, centre, deviation):
    """Whether a Gaussian at `centre` matters right of x."""
    return -TAIL * deviation * (1 + 1e-9) <= x - centre < TAIL * deviation * (1 - 1e-9)


class Grid:
    """Nodes and weights of X and D, and the density of X with its moments.

    Parameters
    ----------
    tables : list of dict, or dict
        Hidden laws.
    q : ndarray, shape (d1,)
    v : ndarray, shape (2, 2)
    kinks : tuple of float
    growth : int
        Of the activation.

    Attributes
    ----------
    f, score : ndarray, shape (X,)
        Weights times the density, and times minus its derivative.
    f_c, f_e : ndarray, shape (d1, X), (X,)
        Weights times E[c_k; x] and E[e; x].
    """

    def __init__(self, tables, q, v, kinks, growth):
        self.q, self.kinks = q, kinks
        width = 3.0 if growth == 0 else np.inf  # oscillations need narrow panels
        difference = (v[0, 0] - v[0, 1]) + (v[1, 1] - v[0, 1])
        if difference <= max(1e-14 * np.trace(v), NO_NOISE**2):  # both views are the same
            self.deviation, self.alpha, common = 0.0, 0.5, v[0, 0]
        else:
            own1, own2 = v[0, 0] - v[0, 1], v[1, 1] - v[0, 1]
            self.deviation, self.alpha = np.sqrt(difference), own2 / difference
            if min(abs(self.alpha), abs(1 - self.alpha)) * self.deviation < NO_NOISE:
                self.alpha = round(self.alpha)
            common = v[0, 1] + own1 * own2 / difference  # det V / difference, also where V is nearly singular
            common = common if common > 1e-14 * np.trace(v) else 0.0
        squared = max(1 - q @ q, 0.0)
        self.s = np.sqrt(squared + common)  # Gaussian part of X at given c
        self.hidden = Hidden(tables, growth, fine=PANEL * self.s / max(np.abs(q).max(), 1e-3))
        # The average over D smooths the kink of a view over its share of D.
        shares = {abs(share) * self.deviation for share in (self.alpha, 1 - self.alpha)} - {0.0}
        rounded = [(k, share) for k in kinks for share in shares]
        self.breaks = {self.alpha * j + (1 - self.alpha) * k for j in kinks for k in kinks}
        self.breaks |= {k + side * TAIL * share for k, share in rounded for side in (-1, 1)}
        self.activation_width = lambda x: min(
            [1.5 + abs(x) / 4, width, *(PANEL * share for k, share in rounded if _within(x, k, share))]
        )
        smallest = self.hidden.deviations(q, self.s).min()
        self.on_the_sphere, self.by_stein = smallest < SMALLEST, smallest > STEIN
        if self.on_the_sphere:
            self.x, self.f, self.f_c = self._points()
        else:
            self.x, w = gauss_legendre(self._edges())
            self.f, self.score, *f_c = w * self.hidden.densities(self.x, q, self.s)
            self.f_c = np.array(f_c)
            self.f_e = np.sqrt(squared) * self.score
        self.d, self.phi = self._differences(self.x)
        self.theta1 = self.x[:, None] + (1 - self.alpha) * self.d
        self.theta2 = self.x[:, None] - self.alpha * self.d

    def _edges(self):
        """Edges for X: as wide as the activation and the density there allow."""
        hidden, q = self.hidden, self.q
        deviation = hidden.deviations(q, self.s)
        centres = hidden.mean @ q
        zones = list(zip(centres, deviation, strict=True))
        reach, law_width = 0.0, lambda x: np.inf
        if hidden.density is not None:
            overlap, law = q[hidden.special], hidden.density
            reach = abs(overlap) * law.reach
            if overlap:
                zones = [(m + overlap * b, s) for m, s in zones for b in law.breaks]
                law_width = lambda x: abs(overlap) * min(law.width((x - m) / overlap) for m in centres[:20])  # noqa: E731
        low, high = (centres - TAIL * deviation).min() - reach, (centres + TAIL * deviation).max() + reach
        if len(zones) > 20:  # points that stand for a density: no structure but their common width
            zones, narrow = [(0.5 * (low + high), (high - low) / TAIL)], PANEL * deviation.min()
        else:
            narrow = 0.0
        breaks = {m + side * TAIL * s for m, s in zones for side in (-1, 1)} | self.breaks

        def width(x):
            near = [PANEL * s for m, s in zones if _within(x, m, s)]
            smooth = max(law_width(x), PANEL * deviation.min())
            return min([self.activation_width(x), narrow or min([smooth, *near])])

        return march(low, high, breaks, width)

    def _points(self):
        """Nodes where X given c is a point, or Gaussian in some components: x, weights, E[c_k; x] times weights."""
        hidden, q = self.hidden, self.q
        x, f, c = [], [], []
        for p, mean, variance, s in zip(
            hidden.probability, hidden.mean, hidden.variance, hidden.deviations(q, self.s), strict=True
        ):
            along, weights, direction = np.zeros(1), np.ones(1), np.zeros_like(q)
            if hidden.density is not None:
                assert s < SMALLEST, "a density and a Gaussian part are not needed here"
                law, overlap = hidden.density, q[hidden.special]
                breaks = {*law.breaks, *((b - mean @ q) / overlap for b in self.breaks)}
                step = lambda c, law=law, k=overlap: min(law.width(c), self.activation_width(c * k) / abs(k))  # noqa: E731
                along, weights = gauss_legendre(march(-law.reach, law.reach, breaks, step))
                weights, direction = weights * law.p(along), np.eye(q.size)[hidden.special]
            elif s > SMALLEST:
                breaks = {(b - mean @ q) / s for b in self.breaks}
                step = lambda e, s=s, m=mean @ q: min(PANEL, self.activation_width(m + s * e) / s)  # noqa: E731
                along, weights = gauss_legendre(march(-TAIL, TAIL, breaks, step))
                weights, direction = weights * normal_density(along), variance * q / s
            points = mean + np.outer(along, direction)  # E[c | x] is linear in x
            x.append(points @ q)
            f.append(p * weights)
            c.append(p * weights * points.T)
        return np.concatenate(x), np.concatenate(f), np.concatenate(c, axis=1)

    def _differences(self, x):
        """Nodes and weights of D for each x, shape (X, D)."""
        if self.deviation == 0:
            return np.zeros((x.size, 1)), np.ones((x.size, 1))
        widest = min(PANEL * self.deviation, 1.5 / max(abs(self.alpha), abs(1 - self.alpha)))
        end = TAIL * self.deviation
        edges = np.linspace(-end, end, int(np.ceil(2 * end / widest)) + 1)
        edges = [np.broadcast_to(edges, (x.size, edges.size))]
        for k in self.kinks:
            edges += [
                (shift / share)[:, None] for shift, share in ((k - x, 1 - self.alpha), (x - k, self.alpha)) if share
            ]
        d, w = gauss_legendre(np.sort(np.concatenate(edges, axis=1).clip(-end, end), axis=1))
        return d, w * self.density_of_difference(d)

    def density_of_difference(self, d):
        return normal_density(d / self.deviation) / self.deviation

    def over_d(self, values):
        """The average over D, one number per x."""
        return np.einsum("xd,xd->x", np.broadcast_to(values, self.phi.shape), self.phi)

    def __call__(self, values):
        return self.f @ self.over_d(values)

    def at_kink(self, kink, view, other):
        """<delta(Theta_view - kink) other(Theta of the other view)>."""
        share = 1 - self.alpha if view == 1 else self.alpha
        if self.deviation == 0:
            return self._density_at(kink) * other(np.array([kink]))[0]
        if share == 0:  # this view is X
            d, w = self._differences(np.array([kink]))
            return self._density_at(kink) * np.sum(w * other(kink + (d if view == 2 else -d)))
        d = (kink - self.x) / share * (1 if view == 1 else -1)
        return (self.f * self.density_of_difference(d) / abs(share)) @ other(kink + (d if view == 2 else -d))

    def _density_at(self, x):
        if not self.on_the_sphere:
            return self.hidden.densities(np.array([x]), self.q, self.s)[0, 0]
        total = 0.0
        for p, mean, s in zip(
            self.hidden.probability, self.hidden.mean @ self.q, self.hidden.deviations(self.q, self.s), strict=True
        ):
            if self.hidden.density is not None:
                overlap = self.q[self.hidden.special]
                total += p * self.hidden.density.p(np.array((x - mean) / overlap)) / abs(overlap)
            elif s > SMALLEST:
                total += p * normal_density((x - mean) / s) / s
            else:
                assert abs(x - mean) > 1e-6, "a point of B on a kink"
        return total


@lru_cache(maxsize=24)
def _grid(tables, q, v, kinks, growth):
    return Grid(json.loads(tables), np.array(q), np.array(v).reshape(2, 2), kinks, growth)


def grid(tables, q, v, activation) -> Grid:
    """The grid for an activation; others with the same kinks share it."""
    growth = activation.growth if "student_t" in json.dumps(tables) else 0
    return _grid(json.dumps(tables), tuple(map(float, q)), tuple(v.ravel()), tuple(activation.kinks), growth)
