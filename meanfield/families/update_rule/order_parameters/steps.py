"""Covariance of a step of the order parameters, from the rule alone (update_rules.md, section 6).

A sample adds X/N to the order parameters, and X is what their rates are with the terms of that sample in the place of
averages. Fields that the rule does not read have a scatter of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.families.update_rule.averages import Averages, components_of, moves_of
from meanfield.families.update_rule.draws import Draw
from meanfield.families.update_rule.rates import packed, rates_of
from meanfield.families.update_rule.system import System
from meanfield.numerics.gaussian_moments.kernel import Nodes
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.typing import FloatArray

ROWS = 4096
"""Number of samples that are evaluated together."""

NEGLIGIBLE = 1e-10
"""Weight of nodes that are left out, relative to the largest: more than half of those in four directions."""


def covariance_of_step(system: System, G: FloatArray, constants: FloatArray, rules: Sequence[Rule]) -> FloatArray:
    """Covariance of X over a step, shape (numbers, numbers), in the order of `rates.packed`.

    Parameters
    ----------
    system : System
    G : ndarray, shape (vectors, vectors)
    constants : ndarray
        See `System.constants`.
    rules : sequence of Rule
        Rules of quadrature for products of four values of each draw.
    """
    along = _changes(system, G)
    parts = [
        _scatter(draw, len(system.side), G, constants, rule, along) / draw.batch_size
        for draw, rule in zip(system.draws, rules, strict=True)
    ]
    return np.asarray(sum(parts))


def _changes(system: System, G: FloatArray) -> FloatArray:
    """What each entry of the terms of a sample adds to the order parameters, shape (numbers, entries)."""
    n, K = system.vectors, system.students
    shapes = [(n, K), (n, K), (K, K), (len(system.side),)]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    columns = []
    for unit in np.eye(ends[-1]):
        parts = np.split(unit, ends[:-1])
        terms = Averages(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))
        columns.append(packed(rates_of(terms, G, system.features, 0.0, system.constraints)))
    return np.stack(columns, axis=1)


def _scatter(draw: Draw, side: int, G: FloatArray, constants: FloatArray, rule: Rule, along: FloatArray) -> FloatArray:
    """Covariance of X over samples of a draw, each of which counts as a step."""
    program, L, K, n = draw.update, draw.inputs, draw.students, draw.vectors
    fields = slice(draw.first_field, draw.width)
    of_E = along[:, : n * K]
    mean, square = np.zeros(len(along)), np.zeros((len(along),) * 2)
    for given in components_of(draw.laws(G, program.reads), program.reads):
        regression, (z, weights) = given.regression[fields], _likely(rule.nodes(given.law))
        products = np.zeros((L * K, L * K))
        for first in range(0, len(weights), ROWS):
            at, w = z[:, first : first + ROWS].T, given.probability * weights[first : first + ROWS]
            values = program.call(given.law.mean + at @ given.law.factor.T, constants)
            psi = (given.law.mean[fields] + at @ regression.T).reshape(-1, L, n)
            X = _terms(draw, values, psi, side, given.noise) @ along.T
            mean += w @ X
            square += (w * X.T) @ X
            products += (w * values[:, : L * K].T) @ values[:, : L * K]
        rest = (given.covariance[fields, fields] - regression @ regression.T).reshape(L, n, L, n)
        of_unread = np.einsum("lkmj,lamb->akbj", products.reshape(L, K, L, K), rest).reshape(n * K, n * K)
        square += of_E @ of_unread @ of_E.T
    return square - np.outer(mean, mean)


def _likely(nodes: Nodes) -> Nodes:
    """Nodes whose weights are not negligible."""
    kept = np.flatnonzero(nodes.weights > NEGLIGIBLE * nodes.weights.max())
    return Nodes(nodes.z[:, kept], nodes.weights[kept])


def _terms(draw: Draw, values: FloatArray, psi: FloatArray, side: int, noise: float) -> FloatArray:
    """Terms of samples of which `Averages` are the means, side by side, shape (samples, entries).

    Parameters
    ----------
    values : ndarray, shape (samples, outputs)
    psi : ndarray, shape (samples, inputs, vectors)
        Means of the fields, given what is read.
    side : int
        Number of side variables.
    noise : float
        Factor of the variance of the noise.
    """
    L, K, last = draw.inputs, draw.students, values.shape[1] - side
    F = values[:, : L * K].reshape(-1, L, K)
    E = psi.swapaxes(1, 2) @ F
    B = moves_of(draw, values[:, L * K : last])
    Lambda = np.einsum("lm,clk,cmj->ckj", noise * draw.covariance, F, F) / draw.batch_size
    return np.concatenate([each.reshape(len(values), -1) for each in (E, B, Lambda, values[:, last:])], axis=1)
