"""Covariance of one step of the overlaps q and M of several channels, and of their fluctuations of order 1/sqrt(N).

In the limit a step adds X/N to the overlaps, with averages over its batch

    a_fk = (1/m) sum_b [alpha_k (c + eta_1) + beta_k (c + eta_2)]_f,   d_kl = (1/m) sum_b [alpha_k Theta_1,l + ...],
    s_kl = S_kl/m^2,   n_k = tau d_kk + tau^2 s_kk/2,
    X = { tau a_fk - q_fk n_k ;  tau (d_kl + d_lk) + tau^2 s_kl - M_kl (n_k + n_l) }

so that <X> is the velocity of the overlaps, and Cov[(q, M)] = C/N with dC/dt = J C + C J^T + Cov(X), as for one
channel. X is the mean over the batch of functions h of a sample and of the sums T of products of outputs over the
others. For the square penalty h is a polynomial in T, of degree 2, and

    m Cov(X) = <h h^T> + (m-1) <h(1) h(2)^T> - m <X> <X>^T

is exact at every m: the sums of two samples are those of the m - 2 others, and the product of each other's outputs.
Source: several_channels.md, section 4.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations_with_replacement, product
from math import comb
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import (
    OneSample,
    Rule,
    covariance_factor,
    fill_nodes,
    fill_outputs,
)
from meanfield.families.contrastive.channels.rules import one_sample_of, rules_for
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray, IntArray

Exponents = tuple[int, ...]

MOST_NUMBERS = 2**24
"""Largest number of values of h at the nodes of one sample: 128 MB."""


class Monomials:
    """Monomials of sums over other samples up to degree 4, and how averages over two samples are made of them.

    Parameters
    ----------
    count : int
        Number of sums T.

    Attributes
    ----------
    all, low : list of tuple of int
        Exponents of all monomials, and of those up to degree 2, which come first.
    product : ndarray of int, shape (low, low)
        Places of the products of the latter.
    """

    def __init__(self, count: int) -> None:
        by_degree = [
            [tuple(chosen.count(i) for i in range(count)) for chosen in combinations_with_replacement(range(count), d)]
            for d in range(5 if count else 1)
        ]
        self.all = [exponents for degree in by_degree for exponents in degree]
        self.low = [exponents for exponents in self.all if sum(exponents) <= 2]
        place = {exponents: i for i, exponents in enumerate(self.all)}
        self.degree = np.array([float(sum(exponents)) for exponents in self.all])
        self._factorial = np.array([np.prod([[1, 1, 2, 6, 24][e] for e in exponents]) for exponents in self.all])
        self._parts = [_parts(exponents, place) for exponents in self.all]
        self.product = np.array([[place[tuple(map(sum, zip(a, b, strict=True)))] for b in self.low] for a in self.low])
        self._shared = [
            (t, j, u, i, _choose(self.low[t], self.low[i]) * _choose(self.low[u], self.low[j]), place[rest])
            for t, j, u, i in product(range(len(self.low)), repeat=4)
            if (rest := _rest(self.low[t], self.low[u], self.low[i], self.low[j])) is not None
        ]

    def of_sums(self, one: FloatArray, others: int) -> FloatArray:
        """Moments of sums over some samples from those of one sample, shape (monomials,); see `polynomials`."""
        a = one / self._factorial
        f = np.zeros_like(a)
        f[0] = 1.0
        for whole, (part, rest) in enumerate(self._parts):
            if whole:
                share = (others + 1.0) * self.degree[part] / self.degree[whole] - 1.0
                f[whole] = np.sum(share * a[part] * f[rest])
        return np.asarray(f * self._factorial)

    def of_two(self, moments: FloatArray) -> FloatArray:
        """Coefficients w with <h(1) h(2)> = sum w[t, j, u, i] <h_t p^j> <h_u p^i>, by moments over the others."""
        size = len(self.low)
        result = np.zeros((size, size, size, size))
        for t, j, u, i, factor, rest in self._shared:
            result[t, j, u, i] = factor * moments[rest]
        return result


def _parts(whole: Exponents, place: dict[Exponents, int]) -> tuple[list[int], list[int]]:
    """Places of the monomials other than 1 that divide one, and of what is left."""
    parts = [part for part in product(*(range(e + 1) for e in whole)) if any(part)]
    rests = [tuple(e - p for e, p in zip(whole, part, strict=True)) for part in parts]
    return [place[part] for part in parts], [place[rest] for rest in rests]


def _choose(whole: Exponents, part: Exponents) -> int:
    return int(np.prod([comb(e, p) for e, p in zip(whole, part, strict=True)], dtype=int))


def _rest(t: Exponents, u: Exponents, i: Exponents, j: Exponents) -> Exponents | None:
    """Exponents t + u - i - j where i divides t and j divides u, else None."""
    left = [(a - c, b - d) for a, b, c, d in zip(t, u, i, j, strict=True)]
    return tuple(x + y for x, y in left) if all(x >= 0 and y >= 0 for x, y in left) else None


class SampleNodes(NamedTuple):
    """Values and weights at the nodes of one sample.

    Parameters
    ----------
    weight : ndarray, shape (n,)
    component : ndarray of int, shape (n,)
    products : ndarray, shape (T, n)
        What one sample adds to the sums T.
    theta, x : ndarray, shapes (views, d2, n) and (views, d1, n)
    gains : ndarray, shape (views, d2, 1 + T, n)
        The sensitivities as polynomials of degree 1 in the sums.
    """

    weight: FloatArray
    component: IntArray
    products: FloatArray
    theta: FloatArray
    x: FloatArray
    gains: FloatArray


class StepCovariance:
    """Covariance Cov(X) of one step of the overlaps q and M of several channels, N times.

    Parameters
    ----------
    problem : Problem
        Without batch centring.
    linear : bool
        Whether the penalty is C itself, as |C| is where outputs are never negative, and not its square.
    noisy : bool
        Whether the noise of views changes in time.
    """

    def __init__(
        self, problem: Problem, law: OneSample, rule: Rule | PanelRule, linear: bool = False, noisy: bool = False
    ) -> None:
        self._problem, self._noisy = problem, noisy
        self._model = problem.model
        self._law = law
        self._rule = rule
        self._linear = linear
        self._strength = problem.decorrelation_strength
        self._d1, self._d2 = len(problem.features), problem.model.channels
        channels = range(self._d2)
        some = self._strength > 0 and not linear
        self._pairs = [(k, j) for k in channels for j in channels if some and (k < j or (k > j and law.views == 2))]
        self._monomials = Monomials(len(self._pairs))
        self.size = self._d1 * self._d2 + self._d2 * (self._d2 - 1) // 2

    def at(self, problem: Problem) -> StepCovariance:
        """The same of a problem with other rates, strengths, noise or moments; see `ChannelClosure.at`."""
        step = copy(self)
        if (problem.augmentation, problem.hidden_laws) != (self._problem.augmentation, self._problem.hidden_laws):
            step._law = one_sample_of(problem, 2.0, self._noisy)
        step._model, step._strength = problem.model, problem.decorrelation_strength
        return step

    def numbers(self, q: FloatArray, M: FloatArray) -> int:
        """Number of values of h at the nodes of one sample."""
        rule, shared = self._rule.at(self._law, q, M), isinstance(self._rule, Rule)
        return rule.weights.size * (len(self._law.probability) if shared else 1) * self.size * len(self._monomials.low)

    def __call__(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Cov(X) of the packed overlaps, shape (d1 d2 + d2 (d2 - 1)/2,) twice."""
        return self.moments(q, M)[1]

    def moments(self, q: FloatArray, M: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Velocity <X> of the packed overlaps, and Cov(X)."""
        return self._covariance(self._nodes(q, M), q, M)

    def _nodes(self, q: FloatArray, M: FloatArray) -> SampleNodes:
        law, d2 = self._law, self._d2
        rule = self._rule.at(law, q, M)
        weight, theta, x = fill_nodes(law, rule, q, M)
        y, s = (
            values.reshape(law.views, d2, -1)
            for values in fill_outputs(self._model.activation_functions.addresses, theta)
        )
        if self._model.centering == "population":
            y = y - (y @ weight)[..., None]
        sizes = np.full(len(law.probability), rule.weights.size) if rule.ends.size == 2 else np.diff(rule.ends)
        component = np.repeat(np.arange(len(law.probability)), sizes)
        products = np.array([y[0, k] * y[-1, j] for k, j in self._pairs]).reshape(len(self._pairs), weight.size)
        return SampleNodes(
            weight, component, products, theta.reshape(law.views, d2, -1), x.reshape(law.views, self._d1, -1),
            self._gains(y, s, products),
        )  # fmt: skip

    def _gains(self, y: FloatArray, s: FloatArray, products: FloatArray) -> FloatArray:
        """s_k sum_j A_kj y_j with A_kk = 1, A_kj = -2 lambda (p_kj + T_kj)/m, or -lambda."""
        views, d2, count = y.shape
        gains = np.zeros((views, d2, 1 + len(self._pairs), count))
        slope = -2.0 * self._strength / self._model.batch_size
        for view in range(views):
            other = y[views - 1 - view]
            gains[view, :, 0] = other
            for k, j in product(range(d2), repeat=2):
                if k == j or self._strength == 0.0:
                    continue
                if self._linear:
                    gains[view, k, 0] -= self._strength * other[j]
                    continue
                pair = (k, j) if view == 0 else (j, k)
                place = self._pairs.index(pair if views == 2 else (min(pair), max(pair)))
                gains[view, k, 0] += slope * products[place] * other[j]
                gains[view, k, 1 + place] += slope * other[j]
        return gains * s[:, :, None]

    def _covariance(self, nodes: SampleNodes, q: FloatArray, M: FloatArray) -> tuple[FloatArray, FloatArray]:
        m = self._model.batch_size
        basis = self._monomials
        weight = nodes.weight
        monomials = np.array([np.prod(nodes.products.T ** np.array(e), axis=1) for e in basis.all])
        one = monomials @ weight
        others = basis.of_sums(one, m - 1)
        h = self._functions(nodes, q, M)
        unknowns, terms, count = h.shape
        flat = h.reshape(-1, count)
        of_one = ((flat * weight) @ flat.T).reshape(unknowns, terms, unknowns, terms)
        square = np.einsum("atbu,tu->ab", of_one, others[basis.product])
        mean = (h @ weight) @ others[: len(basis.low)]
        square += self._unseen(nodes, q, M, others)
        if m > 1 and self._pairs:
            low = monomials[: len(basis.low)]
            F = ((flat * weight) @ low.T).reshape(unknowns, terms, -1)
            mixed = np.einsum("atj,bui,tjui->ab", F, F, basis.of_two(basis.of_sums(one, m - 2)), optimize=True)
        else:
            mixed = np.outer(mean, mean)
        return mean, (square + (m - 1) * mixed) / m - np.outer(mean, mean)

    def _functions(self, nodes: SampleNodes, q: FloatArray, M: FloatArray) -> FloatArray:
        """Functions h of the packed overlaps as polynomials in the sums, shape (unknowns, monomials, n)."""
        tau, m, d1, d2 = self._model.rate, self._model.batch_size, self._d1, self._d2
        law = self._law
        gains = nodes.gains
        size = 1 + len(self._pairs)
        twice = 2.0 / law.views
        factors = 1.0 + law.noise if law.views == 2 else np.array([[(1.0 + law.noise).sum()]])
        terms, count = len(self._monomials.low), nodes.weight.size
        a, d = np.zeros((d1, d2, terms, count)), np.zeros((d2, d2, terms, count))
        a[:, :, :size] = twice * np.einsum("vktn,vfn->fktn", gains, nodes.x)
        d[:, :, :size] = twice * np.einsum("vktn,vln->kltn", gains, nodes.theta)
        s = np.zeros((d2, d2, terms, count))
        for t, u in product(range(size), repeat=2):
            place = self._monomials.product[t, u]
            s[:, :, place] += np.einsum("vkn,wln,vw->kln", gains[:, :, t], gains[:, :, u], factors)
        s *= tau**2 / m
        own = tau * np.einsum("kktn->ktn", d) + 0.5 * np.einsum("kktn->ktn", s)
        of_q = tau * a - q[:, :, None, None] * own
        of_M = tau * (d + d.swapaxes(0, 1)) + s - M[:, :, None, None] * (own[:, None] + own)
        return np.concatenate([of_q.reshape(d1 * d2, terms, count), of_M[np.triu_indices(d2, 1)]])

    def _unseen(self, nodes: SampleNodes, q: FloatArray, M: FloatArray, others: FloatArray) -> FloatArray:
        """Share in <h h^T> of c + eta given the pre-activations, about its mean."""
        law, d1, d2 = self._law, self._d1, self._d2
        size = 1 + len(self._pairs)
        powers = others[self._monomials.product[:size, :size]]
        result = np.zeros((self.size, self.size))
        noise = law.noise[: law.views, : law.views]
        for c in range(len(law.probability)):
            known = covariance_factor(law, c, q, M)[law.views * d2 :]
            whole = np.kron(np.ones_like(noise), np.diag(law.variance[c])) + np.kron(noise, np.eye(d1))
            left = (whole - known @ known.T).reshape(law.views, d1, law.views, d1)
            here = nodes.component == c
            gains = nodes.gains[..., here]
            squares = np.einsum("vktn,wlun,n,tu->vkwl", gains, gains, nodes.weight[here], powers, optimize=True)
            share = np.einsum("vkwl,vfwg->fkgl", squares, left) * (2.0 / law.views * self._model.rate) ** 2
            result[: d1 * d2, : d1 * d2] += share.reshape(d1 * d2, d1 * d2)
        return result


def step_covariance_of(closure: ChannelClosure) -> StepCovariance:
    """Covariance of a step of a problem, by the first rule for one sample that a finer one does not change.

    Raises
    ------
    InputError
        If samples of a batch depend on each other otherwise than by sums of products, a hidden law lacks the moments,
        or no rule is accurate.
    """
    problem = closure.problem
    _check_polynomial(closure)
    law, before = one_sample_of(problem, 2.0, closure.noisy), None
    for rule in rules_for(law, closure.kinks):
        step = StepCovariance(problem, law, rule, closure.linear, closure.noisy)
        states = closure.states(collapsed=False)
        if max(step.numbers(q, M) for q, M in states) > MOST_NUMBERS:
            break
        values = [step(q, M) for q, M in states]
        if before is not None:
            coarser, others = before
            changes = [np.abs(b - a).max() / np.abs(a).max() for b, a in zip(others, values, strict=True)]
            # The next order in 1/N is larger at any N that is simulated.
            if max(changes) <= 1e-4:
                return coarser
        before = step, values
    raise InputError(
        f"model.activation = '{problem.model.activation}': fluctuations of the overlaps are not resolved by "
        f"{MOST_NUMBERS:,} numbers; use fewer channels or features, no augmentation, or SGD"
    )


def _check_polynomial(closure: ChannelClosure) -> None:
    """Refuse problems whose batches are not those of sums of products; see `step_covariance_of`."""
    settings = closure.problem.decorrelation
    if closure.problem.model.centering == "batch":
        raise InputError(
            "model.centering = 'batch': fluctuations of the overlaps are known where no batch centres the outputs; "
            "set it to 'none' or 'population', or use SGD"
        )
    if settings is not None and settings.strength > 0 and settings.penalty != "square" and not closure.linear:
        raise InputError(
            f"decorrelation.penalty = '{settings.penalty}': fluctuations of the overlaps are known for 'square'; take "
            "it, or use SGD"
        )
