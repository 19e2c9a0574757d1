"""Averages over a sample that the limit of an update rule needs, from the rule alone (update_rules.md, section 2).

No derivative of the rule occurs, so that rules may jump. Fields that a rule does not read enter by their regression on
those that it reads, so that the dimension of an integral is the rank of the covariance of what is read.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.draws import Draw, Program
from meanfield.families.update_rule.laws import Laws, factor_of, regression_on
from meanfield.families.update_rule.spectral import Grams, noise_at_nodes
from meanfield.ingredients.spectra import Nodes
from meanfield.numerics.gaussian_moments.kernel import Law, Moments
from meanfield.numerics.gaussian_moments.rules import Averager
from meanfield.typing import FloatArray


class Averages(NamedTuple):
    """Averages of a step over samples, at fixed G.

    Parameters
    ----------
    E : ndarray, shape (vectors, students)
        <psi F^T>, summed over inputs. With a spectrum that of the fields at each node, (nodes, vectors, students).
    B : ndarray, shape (vectors, students)
        Mean step along vectors.
    Lambda : ndarray, shape (students, students)
        Diffusion of a coordinate.
    H : ndarray, shape (side variables,)
        Mean steps of side variables.
    """

    E: FloatArray
    B: FloatArray
    Lambda: FloatArray
    H: FloatArray


class Given(NamedTuple):
    """Row of a draw given one of the Gaussian components of its law.

    Parameters
    ----------
    probability : float
    law : Law
        Of what is read: other rows of its factor are 0.
    regression : ndarray, shape (width, rank)
        Covariance of all columns with z.
    covariance : ndarray, shape (width, width)
    signal, noise : float
        See `Laws`.
    """

    probability: float
    law: Law
    regression: FloatArray
    covariance: FloatArray
    signal: float
    noise: float


def components_of(laws: Laws, reads: tuple[int, ...]) -> list[Given]:
    """Components of the law of a row, by standard normal variables for what is read."""
    columns = np.array(reads, dtype=np.int64)
    found: list[Given] = []
    for probability, mean, covariance, signal, noise in zip(*laws, strict=True):
        if found and np.array_equal(covariance, found[-1].covariance):  # as that of all values of a discrete law
            law = Law(mean, found[-1].law.factor)
            found.append(found[-1]._replace(probability=float(probability), law=law, signal=signal, noise=noise))
            continue
        factor = factor_of(covariance, columns)
        regression = regression_on(factor, covariance)
        found.append(Given(float(probability), Law(mean, factor), regression, covariance, signal, noise))
    return found


def averages_of(
    draw: Draw, side: int, G: FloatArray, constants: FloatArray, rule: Averager, nodes: Nodes | None = None
) -> Averages:
    """Averages of the steps of a draw at a Gram matrix.

    Parameters
    ----------
    draw : Draw
    side : int
        Number of side variables.
    G : ndarray, shape (vectors, vectors)
        With nodes (nodes, vectors, vectors), per coordinate of a node.
    constants : ndarray
        See `System.constants`.
    rule : Averager
        Rule of quadrature for `draw.update`.
    nodes : Nodes, optional
        Nodes of the spectrum, if variances of coordinates differ.

    Notes
    -----
    Source: update_rules.md, eq-rule-averages and section 11.
    """
    grams = Grams(G, nodes)
    between = None if nodes is None else noise_at_nodes(draw, grams)
    return sum_of(
        (given.probability, averages_in(draw, side, given, fields_in(draw, given, G, between), found))
        for given, found in moments_of(draw, draw.update, grams.total, constants, rule, grams.weighted)
    )


class Fields(NamedTuple):
    """Fields given one component, by the standard normal variables of what is read.

    Parameters
    ----------
    mean : ndarray, shape (inputs, vectors)
        With a spectrum those of its nodes, (nodes, inputs, vectors).
    regression : ndarray, shape (inputs, vectors, rank)
        Covariance with z; with a spectrum (nodes, inputs, vectors, rank).
    """

    mean: FloatArray
    regression: FloatArray


def fields_in(draw: Draw, given: Given, G: FloatArray, between: FloatArray | None) -> Fields:
    """Fields given one component.

    Parameters
    ----------
    draw : Draw
    given : Given
    G : ndarray
        See `averages_of`.
    between : ndarray, optional
        From `noise_at_nodes`, where there is a spectrum.
    """
    L, n, fields = draw.inputs, draw.vectors, slice(draw.first_field, draw.width)
    if between is None:
        return Fields(given.law.mean[fields].reshape(L, n), given.regression[fields].reshape(L, n, -1))
    variables = draw.signal.shape[2]
    kept = np.array(draw.observed)[:, None, None] * given.signal
    along = kept * np.einsum("bij,ljv->bliv", G, draw.signal)
    covariance = along @ given.covariance[:variables]
    covariance[..., fields] += given.noise * between
    regression = regression_on(given.law.factor, covariance.reshape(-1, draw.width))
    return Fields(along @ given.law.mean[:variables], regression.reshape(*along.shape[:-1], -1))


def averages_in(draw: Draw, side: int, given: Given, fields: Fields, found: Moments) -> Averages:
    """Averages of the steps of a draw given one component, which are linear functions of the moments."""
    L, K = draw.inputs, draw.students
    gains, last = L * K, len(found.first) - side
    F, along = found.first[:gains].reshape(L, K), found.along[:, :gains].reshape(-1, K)
    regression = fields.regression.swapaxes(-3, -2).swapaxes(-2, -1)  # (..., vectors, rank, inputs)
    products = found.products[:gains, :gains].reshape(L, K, L, K)
    return Averages(
        fields.mean.swapaxes(-1, -2) @ F + regression.reshape(*regression.shape[:-2], -1) @ along,
        moves_of(draw, found.first[gains:last]),
        given.noise / draw.batch_size * np.einsum("lm,lkmj->kj", draw.covariance, products),
        found.first[last:],
    )


def moments_of(
    draw: Draw,
    program: Program,
    G: FloatArray,
    constants: FloatArray,
    rule: Averager,
    weighted: FloatArray | None = None,
) -> Iterator[tuple[Given, Moments]]:
    """Gaussian components of a draw with the moments of a program there; see `Draw.laws` for Gram matrices."""
    components = components_of(draw.laws(G, program.reads, weighted), program.reads)
    found = rule.averages(program.call, constants, [given.law for given in components])
    yield from zip(components, found, strict=True)


def sum_of(parts: Iterable[tuple[float, Averages]]) -> Averages:
    """Averages of a step of some draws or components, with their weights."""
    weights, averages = zip(*parts, strict=True)
    return Averages(*(sum(map(operator.mul, weights, each)) for each in zip(*averages, strict=True)))


def moves_of(draw: Draw, values: FloatArray) -> FloatArray:
    """B of samples, shape (..., vectors, students), from values of the program, of which there may be none."""
    B = np.zeros((*values.shape[:-1], draw.vectors, draw.students))
    for number, (vector, student) in enumerate(draw.moves):
        B[..., vector, student] += values[..., number]
    return B


def mean_of(
    program: Program,
    draw: Draw,
    G: FloatArray,
    constants: FloatArray,
    rule: Averager,
    weighted: FloatArray | None = None,
) -> FloatArray:
    """Means of the values of a program over a draw, shape (outputs,); see `Draw.laws` for Gram matrices."""
    mean = np.zeros(program.call.outputs)
    for given, found in moments_of(draw, program, G, constants, rule, weighted):
        mean += given.probability * found.first
    return mean
