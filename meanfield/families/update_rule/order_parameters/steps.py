"""Covariance of a step of the order parameters, from the rule alone (update_rules.md, section 6).

A sample adds X/N to the order parameters, and X is what their rates are with the terms of that sample in the place of
averages. Fields that the rule does not read have a scatter of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.families.update_rule.averages import Averages, Given, averages_in, components_of, fields_in
from meanfield.families.update_rule.draws import Draw, Program
from meanfield.families.update_rule.rates import packed, rates_of
from meanfield.families.update_rule.system import System
from meanfield.numerics.gaussian_moments.expansion import Expansion
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.typing import FloatArray


def expansion_of(draw: Draw, program: Program, G: FloatArray, constants: FloatArray, rule: Rule) -> Expansion:
    """Averages of a program near a Gram matrix, and of products of four values there.

    Parameters
    ----------
    draw : Draw
    program : Program
    G : ndarray, shape (vectors, vectors)
    constants : ndarray
        See `System.constants`.
    rule : Rule
        Rule of quadrature for products of four values.
    """
    laws = [given.law for given in components_of(draw.laws(G, program.reads), program.reads)]
    gains = draw.inputs * draw.students if program is draw.update else 0
    places = [place for _, each in program.functions for place in each.arguments if place.constant]
    reads = sorted({column for place in places for column in place.columns})
    return Expansion(rule, program.call, constants, laws, gains, reads)


def covariance_of_step(system: System, G: FloatArray, expansions: Sequence[Expansion]) -> FloatArray:
    """Covariance of X over a step, shape (numbers, numbers), in the order of `rates.packed`.

    Parameters
    ----------
    system : System
    G : ndarray, shape (vectors, vectors)
    expansions : sequence of Expansion
        Of each draw, there.
    """
    along = _changes(system, G)
    parts = [
        _scatter(draw, len(system.side), G, expansion, along) / draw.batch_size
        for draw, expansion in zip(system.draws, expansions, strict=True)
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


def _scatter(draw: Draw, side: int, G: FloatArray, expansion: Expansion, along: FloatArray) -> FloatArray:
    """Covariance of X over samples of a draw, each of which counts as a step."""
    L, K, n = draw.inputs, draw.students, draw.vectors
    mean, square = np.zeros(len(along)), np.zeros((len(along),) * 2)
    components = components_of(draw.laws(G, draw.update.reads), draw.update.reads)
    for given, terms, first, products in zip(
        components, expansion.terms, expansion.mean, expansion.products, strict=True
    ):
        fields = fields_in(draw, given, G, None)
        columns = [averages_in(draw, side, given, fields, terms.moments(unit)) for unit in np.eye(terms.count)]
        X = along @ np.stack([np.concatenate([part.ravel() for part in column]) for column in columns], axis=1)
        mean += given.probability * (X @ first)
        square += given.probability * (X @ products @ X.T)
        of_F = terms.moments(first).products[: L * K, : L * K].reshape(L, K, L, K)
        of_unread = np.einsum("lkmj,lamb->akbj", of_F, _unread(draw, given)).reshape(n * K, n * K)
        square += given.probability * (along[:, : n * K] @ of_unread @ along[:, : n * K].T)
    return square - np.outer(mean, mean)


def _unread(draw: Draw, given: Given) -> FloatArray:
    """Covariance of fields given what is read, shape (inputs, vectors, inputs, vectors)."""
    fields = slice(draw.first_field, draw.width)
    regression = given.regression[fields]
    shape = (draw.inputs, draw.vectors) * 2
    return (given.covariance[fields, fields] - regression @ regression.T).reshape(shape)
