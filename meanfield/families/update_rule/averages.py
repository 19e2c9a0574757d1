"""Averages over a sample that the limit of an update rule needs, from the rule alone (update_rules.md, section 2).

No derivative of the rule occurs, so that rules may jump. Fields that a rule does not read enter by their regression on
those that it reads, so that the dimension of an integral is the rank of the covariance of what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from meanfield.families.update_rule.draws import Draw, Laws, Program
from meanfield.numerics.gaussian_moments.kernel import Moments, semidefinite_factor
from meanfield.numerics.gaussian_moments.rules import Law, Rule
from meanfield.typing import FloatArray


class Averages(NamedTuple):
    """Averages of a step over samples, at fixed G.

    Parameters
    ----------
    E : ndarray, shape (vectors, students)
        <psi F^T>, summed over inputs.
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
    columns = list(reads)
    found: list[Given] = []
    for probability, mean, covariance, signal, noise in zip(*laws, strict=True):
        if found and np.array_equal(covariance, found[-1].covariance):  # as that of all values of a discrete law
            law = Law(mean, found[-1].law.factor)
            found.append(found[-1]._replace(probability=float(probability), law=law, signal=signal, noise=noise))
            continue
        inner = semidefinite_factor(np.ascontiguousarray(covariance[np.ix_(columns, columns)]))
        factor = np.zeros((len(mean), inner.shape[1]))
        factor[columns] = inner
        regression = regression_on(factor, covariance)
        found.append(Given(float(probability), Law(mean, factor), regression, covariance, signal, noise))
    return found


def regression_on(factor: FloatArray, covariance: FloatArray) -> FloatArray:
    """Covariance with z of variables whose covariance with all columns is known, shape (variables, rank).

    Parameters
    ----------
    factor : ndarray, shape (width, rank)
        Of what is read.
    covariance : ndarray, shape (variables, width)
    """
    pivots = [int(np.flatnonzero(column)[0]) for column in factor.T]  # rows of which each adds a direction
    return np.asarray(np.linalg.solve(factor[pivots], covariance[:, pivots].T).T)


def averages_of(draw: Draw, side: int, G: FloatArray, constants: FloatArray, rule: Rule) -> Averages:
    """Averages of the steps of a draw at a Gram matrix.

    Parameters
    ----------
    draw : Draw
    side : int
        Number of side variables.
    G : ndarray, shape (vectors, vectors)
    constants : ndarray
        See `System.constants`.
    rule : Rule
        Rule of quadrature for `draw.update`.

    Notes
    -----
    Source: update_rules.md, eq-rule-averages.
    """
    K, n = draw.students, draw.vectors
    E, B, Lambda, H = np.zeros((n, K)), np.zeros((n, K)), np.zeros((K, K)), np.zeros(side)
    for given, found in moments_of(draw, draw.update, G, constants, rule):
        step = step_of(draw, side, given, found)
        for number in range(draw.inputs):
            fields = draw.fields(number)
            E += given.probability * (
                np.outer(given.law.mean[fields], step.F[number]) + given.regression[fields] @ step.along[:, number]
            )
        Lambda += given.probability * step.Lambda
        B += given.probability * step.B
        H += given.probability * step.H
    return Averages(E, B, Lambda, H)


def moments_of(
    draw: Draw,
    program: Program,
    G: FloatArray,
    constants: FloatArray,
    rule: Rule,
    weighted: FloatArray | None = None,
) -> Iterator[tuple[Given, Moments]]:
    """Gaussian components of a draw with the moments of a program there; see `Draw.laws` for Gram matrices."""
    for given in components_of(draw.laws(G, program.reads, weighted), program.reads):
        yield given, rule.moments(program.call, constants, given.law)


class Step(NamedTuple):
    """Moments of a step given one component, in their places.

    Parameters
    ----------
    F : ndarray, shape (inputs, students)
    along : ndarray, shape (rank, inputs, students)
        <z F>.
    B, Lambda, H : ndarray
        See `Averages`.
    """

    F: FloatArray
    along: FloatArray
    B: FloatArray
    Lambda: FloatArray
    H: FloatArray


def step_of(draw: Draw, side: int, given: Given, found: Moments) -> Step:
    """Moments of a step, of which `side` is the number of side variables."""
    L, K, last = draw.inputs, draw.students, len(found.first) - side
    gains = L * K
    products = found.products[:gains, :gains].reshape(L, K, L, K)
    return Step(
        found.first[:gains].reshape(L, K),
        found.along[:, :gains].reshape(-1, L, K),
        moves_of(draw, found.first[gains:last]),
        given.noise / draw.batch_size * np.einsum("lm,lkmj->kj", draw.covariance, products),
        found.first[last:],
    )


T = TypeVar("T", bound=tuple[FloatArray, ...])


def sum_of(parts: Sequence[T]) -> T:
    """Averages of a step of several independent draws."""
    return type(parts[0])(*(np.sum(each, axis=0) for each in zip(*parts, strict=True)))


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
    rule: Rule,
    weighted: FloatArray | None = None,
) -> FloatArray:
    """Means of the values of a program over a draw, shape (outputs,); see `Draw.laws` for Gram matrices."""
    mean = np.zeros(program.call.outputs)
    for given, found in moments_of(draw, program, G, constants, rule, weighted):
        mean += given.probability * found.first
    return mean
