"""Kinds of samples of a step as arrays side by side, which compiled code takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meanfield.families.update_rule.draws import Draw
from meanfield.families.update_rule.kinds import Kind
from meanfield.numerics.gaussian_moments.kernel import semidefinite_factor
from meanfield.typing import FloatArray, IntArray

MOST_SCALES = 2
"""Largest number of variables by which the noise of a sample is multiplied: that of its class, and a scale."""


class Draws(NamedTuple):
    """Kinds of samples of a step, side by side, for compiled code.

    Parameters
    ----------
    batch_size, inputs : ndarray of int, shape (draws,)
    update, outputs : ndarray of int, shape (draws,)
        Address of the functions of a row, and number of their values.
    variables, sources, moves, normals, tossed : ndarray of int, shape (draws + 1,)
        Where each draw begins among hidden variables, sources of noise, values of B, normal numbers and coins.
    coins : ndarray, shape (coins,)
        Probabilities.
    together : ndarray of int, shape (draws,)
        Number of samples that functions see at once: an input has the hidden variables of its own.
    along : ndarray of int, shape (hidden variables,)
        Vector that each multiplies; -1 for one that multiplies none.
    loading : ndarray, shape (sources, inputs)
        Standard deviation of each source in each input of its draw.
    projected : ndarray of bool, shape (sources,)
        Whether a source has no part along features.
    covariance : ndarray, shape (draws, inputs, inputs)
        Of what a sample adds to a coordinate, in units of the first input of the first draw.
    vector, student : ndarray of int, shape (values of B,)
        What each moves, and along which vector.
    observed : ndarray, shape (draws, inputs)
        Share of the coordinates of each input that its mask keeps.
    masks : ndarray of int, shape (draws, inputs)
        Numbers of these masks.
    samples_masks : ndarray of int, shape (draws,)
        How many a sample has.
    scales_noise, scales_signal : ndarray of int, shape (draws, most)
        Columns of a row by whose product the noise, or the signal, is multiplied; -1 where there are fewer.
    """

    batch_size: IntArray
    inputs: IntArray
    update: IntArray
    outputs: IntArray
    variables: IntArray
    sources: IntArray
    moves: IntArray
    normals: IntArray
    tossed: IntArray
    coins: FloatArray
    together: IntArray
    along: IntArray
    loading: FloatArray
    projected: NDArray[np.bool_]
    covariance: FloatArray
    vector: IntArray
    student: IntArray
    observed: FloatArray
    masks: IntArray
    samples_masks: IntArray
    scales_noise: IntArray
    scales_signal: IntArray


def side_by_side(draws: Sequence[Draw], kinds: Sequence[Kind]) -> Draws:
    """Draws for compiled code; the addresses are those of functions that are compiled now."""
    most = max(draw.inputs for draw in draws)
    sources = [_sources(draw) for draw in draws]
    moves = [move for draw in draws for move in draw.moves]
    unit, first = draws[0].noise_covariance[0, 0], draws[0].batch_size
    covariance = np.zeros((len(draws), most, most))
    for place, draw in zip(covariance, draws, strict=True):
        place[: draw.inputs, : draw.inputs] = draw.noise_covariance / unit * (first / draw.batch_size) ** 2
    return Draws(
        batch_size=np.array([draw.batch_size for draw in draws]),
        inputs=np.array([draw.inputs for draw in draws]),
        update=np.array([draw.update.call.address for draw in draws]),
        outputs=np.array([draw.update.call.outputs for draw in draws]),
        variables=_starts([kind.variables for kind in kinds]),
        sources=_starts([len(loading) for loading, _ in sources]),
        moves=_starts([len(draw.moves) for draw in draws]),
        normals=_starts([draw.normals for draw in draws]),
        tossed=_starts([len(draw.coins) for draw in draws]),
        coins=np.concatenate([draw.coins for draw in draws]),
        together=np.array([kind.samples for kind in kinds]),
        along=np.concatenate(
            [np.tile(filled(kind.along, kind.variables // kind.samples), kind.samples) for kind in kinds]
        ),
        loading=_stacked([loading for loading, _ in sources], most),
        projected=np.concatenate([projected for _, projected in sources]),
        covariance=covariance,
        vector=np.array([vector for vector, _ in moves], dtype=np.int64),
        student=np.array([student for _, student in moves], dtype=np.int64),
        observed=np.stack([np.pad(draw.observed, (0, most - draw.inputs)) for draw in draws]),
        masks=np.stack([np.pad(draw.masks, (0, most - draw.inputs)) for draw in draws]),
        samples_masks=np.array([1 + max(draw.masks) for draw in draws]),
        scales_noise=np.stack([filled(draw.scales_noise, MOST_SCALES) for draw in draws]),
        scales_signal=np.stack([filled(draw.scales_signal, MOST_SCALES) for draw in draws]),
    )


def _stacked(loadings: Sequence[FloatArray], most: int) -> FloatArray:
    """Loadings of all draws, 0 in inputs that one does not have."""
    found = np.zeros((sum(map(len, loadings)), most))  # whose layout in memory compiled code knows
    first = 0
    for each in loadings:
        found[first : first + len(each), : each.shape[1]] = each
        first += len(each)
    return found


def filled(numbers: Sequence[int], count: int) -> IntArray:
    """Numbers as an array, with -1 at its end."""
    return np.array([*numbers, *[-1] * (count - len(numbers))], dtype=np.int64)


def _sources(draw: Draw) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Loadings of independent sources of noise in the inputs of a draw, and whether each is projected."""
    loadings = [semidefinite_factor(np.ascontiguousarray(each.covariance)).T for each in draw.noise]
    projected = [np.full(len(loading), each.projected) for loading, each in zip(loadings, draw.noise, strict=True)]
    return np.concatenate(loadings), np.concatenate(projected)


def _starts(sizes: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
