"""Field of a filter on the sphere for Gaussian mixtures, any importance and any activation.

Given its component, a sample is x = mu + (S w/s^2)(u - w.mu) + r with u = w.x of variance s^2 = w.S w, and r is
independent of u. So averages over pairs are double sums over nodes in u, which are those of Gauss and Legendre between
the kinks of the activation (alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.pairs import Pairs, half_squares, of_views
from meanfield.typing import FloatArray, IntArray

REACH = 8.5
"""Standard deviations on each side of a mean beyond which there are no samples."""

PANEL_NODES = 20
"""Gauss-Legendre nodes of a panel."""

KINK_WEIGHT = 1e-150
"""Weight of the nodes at kinks, which are there to have their pull looked at."""

_X, _WEIGHT = np.polynomial.legendre.leggauss(PANEL_NODES)


@dataclass(frozen=True)
class Nodes:
    """Nodes for one filter.

    Parameters
    ----------
    weight, output, slope, curvature : ndarray, shape (nodes,)
        Probability, h, h' and h''.
    x : ndarray, shape (nodes, coordinates)
        Mean of samples at a node.
    component : ndarray of int, shape (nodes,)
    rest : ndarray, shape (components, coordinates, coordinates)
        Covariance of samples at a node.
    kinks : list of (int, float)
        Nodes at kinks, and jumps of h' times the density of u there.
    """

    weight: FloatArray
    output: FloatArray
    slope: FloatArray
    curvature: FloatArray
    x: FloatArray
    component: IntArray
    rest: FloatArray
    kinks: list[tuple[int, float]]

    def second(self, by: FloatArray) -> FloatArray:
        """Sum over nodes of E[x x^T] at the node, times numbers, shape (coordinates, coordinates)."""
        rest = np.bincount(self.component, by, len(self.rest))
        return self.x.T @ (by[:, None] * self.x) + np.tensordot(rest, self.rest, 1)

    def covariance(self, M: FloatArray) -> FloatArray:
        """C[h' x] for weights M of pairs of nodes, shape (coordinates, coordinates)."""
        g = self.slope[:, None] * self.x
        return self.second(M.sum(axis=1) * self.slope**2) - g.T @ M @ g


@dataclass(frozen=True)
class KernelMixtureField:
    """Field of filters for a Gaussian mixture, by quadrature.

    Parameters
    ----------
    weight : ndarray, shape (components,)
    mean : ndarray, shape (components, coordinates)
    covariance : ndarray, shape (components, coordinates, coordinates)
    pairs : Pairs
        Importance; its probabilities are not used.
    filter : Filter
    width : float
        Length in u on which the importance varies.
    augments : bool
        Whether views share the component alone.
    """

    weight: FloatArray
    mean: FloatArray
    covariance: FloatArray
    pairs: Pairs
    filter: Filter
    width: float
    augments: bool = False

    @property
    def amplification(self) -> float:
        """See `DiscreteField.amplification`; sums over nodes round more."""
        return 10.0

    @property
    def size(self) -> int:
        """Number of nodes of a filter."""
        return len(self.weight) * sum(1 if flat else self._panels * PANEL_NODES for _, _, flat in self._pieces)

    @cached_property
    def _panels(self) -> int:
        """Panels of a piece between kinks, for the broadest component in any direction."""
        s = np.sqrt(max(np.linalg.eigvalsh(S)[-1] for S in self.covariance))
        narrowest = np.sqrt(min(np.linalg.eigvalsh(S)[0] for S in self.covariance))
        # 4.5 times what the integrand varies on.
        return int(np.ceil(2.0 * REACH * s / (4.5 * min(self.width, narrowest))))

    @cached_property
    def _pieces(self) -> list[tuple[float, float, bool]]:
        """Pieces between kinks, and whether h is constant there."""
        ends = [-np.inf, *sorted(self.filter.kinks), np.inf]
        pieces = []
        for low, high in pairwise(ends):
            start = max(low, min(high, 0.0) - 10.0)
            stop = min(high, max(low, 0.0) + 10.0)
            inside = start + (stop - start) * (np.arange(17) + 0.5) / 17
            pieces.append((low, high, not self.filter.slope(inside).any()))
        return pieces

    def nodes(self, w: FloatArray) -> Nodes:
        """Nodes for a filter."""
        v = self.covariance @ w
        variance, centre = v @ w, self.mean @ w
        s = np.sqrt(variance)
        u, weight, component = (np.concatenate(part) for part in zip(*self._rules(centre, s), strict=True))
        at = np.array([kink for kink in self.filter.kinks for _ in s])
        owner = np.tile(np.arange(len(s)), len(self.filter.kinks))
        jump = np.array([float(np.diff(self.filter.slope(kink + np.array([-1e-9, 1e-9])))[0]) for kink in at])
        density = self.weight[owner] * np.exp(-0.5 * ((at - centre[owner]) / s[owner]) ** 2)
        density /= np.sqrt(2.0 * np.pi) * s[owner]
        kinks = [(len(u) + k, float(jump[k] * density[k])) for k in range(len(at))]
        u = np.append(u, at)
        component = np.append(component, owner).astype(int)
        x = self.mean[component] + v[component] * ((u - centre[component]) / variance[component])[:, None]
        rest = self.covariance - v[:, :, None] * v[:, None] / variance[:, None, None]
        slope, curvature = self.filter.slope(u), self.filter.curvature(u)
        if kinks:
            slope[-len(at) :] = curvature[-len(at) :] = 0.0
        weight = np.append(weight, np.full(len(at), KINK_WEIGHT))
        return Nodes(weight, self.filter.value(u), slope, curvature, x, component, rest, kinks)

    def _rules(self, centre: FloatArray, s: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Nodes u, their probabilities, and their components, piece by piece."""
        for c, (m, width) in enumerate(zip(centre, s, strict=True)):
            for low, high, flat in self._pieces:
                if flat:
                    inside = np.clip(m, low + 1e-3, high - 1e-3) if high - low > 2e-3 else 0.5 * (low + high)
                    share = ndtr((high - m) / width) - ndtr((low - m) / width)
                    yield np.array([inside]), self.weight[c] * np.array([share]), np.array([c])
                    continue
                start, stop = (np.clip(end, m - REACH * width, m + REACH * width) for end in (low, high))
                edges = np.linspace(start, stop, self._panels + 1)
                half = 0.5 * np.diff(edges)[:, None]
                u = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * _X).ravel()
                density = np.exp(-0.5 * ((u - m) / width) ** 2) / (np.sqrt(2.0 * np.pi) * width)
                yield u, self.weight[c] * density * (half * _WEIGHT).ravel(), np.full(len(u), c)

    def _pairs(self, nodes: Nodes) -> tuple[Pairs, FloatArray, FloatArray]:
        """Importance of pairs of nodes, distances, and M."""
        views = of_views(nodes.component, nodes.weight) if self.augments else None
        pairs = replace(self.pairs, probability=nodes.weight, diagonal=True, views=views)
        D = half_squares(nodes.output)
        return pairs, D, pairs.importance(D, with_itself=True)

    def _pull(self, nodes: Nodes) -> tuple[FloatArray, Pairs, FloatArray, FloatArray]:
        pairs, D, M = self._pairs(nodes)
        return M.sum(axis=1) * nodes.output - M @ nodes.output, pairs, D, M

    def field(self, w: FloatArray) -> FloatArray:
        """F, not projected, shape (filters, coordinates)."""
        rows = np.empty_like(w)
        for k, each in enumerate(w):
            nodes = self.nodes(each)
            rows[k] = (self._push(nodes) * nodes.slope) @ nodes.x
        return rows

    def _push(self, nodes: Nodes) -> FloatArray:
        """Derivative of the objective by the output at each node."""
        if self.pairs.uniform:
            part, h = nodes.weight * nodes.output, nodes.output
            if self.augments:
                h = (np.bincount(nodes.component, part) / np.bincount(nodes.component, nodes.weight))[nodes.component]
            return np.asarray(nodes.weight * (h - part.sum()))
        return self._pull(nodes)[0]

    def energy(self, w: FloatArray) -> FloatArray:
        """E_alpha(w) = C_alpha[h(w.x)]/2, shape (filters,)."""
        found = []
        for each in w:
            nodes = self.nodes(each)
            found.append(0.5 * float(nodes.output @ self._push(nodes)))
        return np.array(found)

    def objective(self, w: FloatArray) -> FloatArray:
        """G of a network of this filter alone, shape (filters,)."""
        return np.array([float(pairs.objective(D)) for pairs, D, _ in (self._pairs(self.nodes(each)) for each in w)])

    def height_and_field(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Objective and field of filters, at little more than the cost of one of them."""
        rows, heights = np.empty_like(w), np.empty(len(w))
        for k, each in enumerate(w):
            nodes = self.nodes(each)
            if self.pairs.uniform:
                push = self._push(nodes)
                heights[k] = 0.5 * float(nodes.output @ push)
            else:
                push, pairs, D, _ = self._pull(nodes)
                heights[k] = float(pairs.objective(D))
            rows[k] = (push * nodes.slope) @ nodes.x
        return heights, rows

    def matrix(self, w: FloatArray) -> FloatArray:
        """A(w) = C_alpha[h'(w.x) x], shape (coordinates, coordinates)."""
        nodes = self.nodes(w)
        return nodes.covariance(self._pairs(nodes)[2])

    def jacobians(self, w: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Jacobians of the field of a filter on a subspace of its tangent space; see `DiscreteField.jacobians`."""
        return self.field_and_jacobians(w, basis)[1:]

    def field_and_jacobians(self, w: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Field of a filter with its Jacobians, from the same nodes."""
        nodes = self.nodes(w)
        pull, pairs, D, M = self._pull(nodes)
        H = nodes.covariance(M) + nodes.second(pull * nodes.curvature)
        for node, jump in nodes.kinks:
            x = nodes.x[node]
            rest = nodes.rest[int(nodes.component[node])]
            H += jump * pull[node] / KINK_WEIGHT * (np.outer(x, x) + rest)
        force = (pull * nodes.slope) @ nodes.x
        radial = float(force @ w)
        held = basis.T @ H @ basis - radial * np.eye(basis.shape[1])
        return force, held + basis.T @ self._response(nodes, pairs, D) @ basis, held

    def _response(self, nodes: Nodes, pairs: Pairs, D: FloatArray) -> FloatArray:
        """Answer of the importance to a filter that moves: -R, shape (coordinates, coordinates)."""
        d = self.mean.shape[1]
        if pairs.uniform:
            return np.zeros((d, d))
        if pairs.kernel is not None:
            return nodes.covariance(pairs.weight * pairs.kernel.slope(D) * 2.0 * D)
        share = pairs.shares(D)
        apart = nodes.output[:, None] - nodes.output
        both = nodes.weight[:, None] * share * 2.0 * D
        own = np.sum(share * apart, axis=1)
        g = nodes.slope[:, None] * nodes.x
        mean = own[:, None] * g - (share * apart) @ g
        rest = np.bincount(nodes.component, nodes.weight * (own * nodes.slope) ** 2, len(nodes.rest))
        products = mean.T @ (nodes.weight[:, None] * mean) + np.tensordot(rest, nodes.rest, 1)
        total = nodes.covariance(both + both.T) - products
        return np.asarray(-0.5 / pairs.normalised * total)
