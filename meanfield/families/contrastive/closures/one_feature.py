"""Averages of functions of B for a single hidden variable c, in NumPy, at many overlaps q at once.

With one feature averages are functions of q alone, and are tabulated. A few array operations for each octave of
sqrt(1 - q^2) do that, and nothing has to be compiled for them; `averages` and `sensitivities` are for several
features, of which there is no table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from meanfield.families.contrastive.closures.densities import BOX_NODES, BOX_WEIGHTS, NARROW_BOX, PIECE
from meanfield.families.contrastive.closures.fewer_points import MEAN_WIDTH
from meanfield.families.contrastive.closures.gaussian_averages import over_boxes, over_gaussians, shared_nodes
from meanfield.families.contrastive.closures.mixture import LEAST_VARIANCE, MOST_PIECES, Mixture
from meanfield.numerics.piecewise import NODES, ORDER, WEIGHTS, Table
from meanfield.typing import BoolArray, FloatArray, IntArray


def averages_at_many(table: Table, law: Mixture, q: FloatArray, root: FloatArray | None = None) -> FloatArray:
    """Averages of all rows f of a table, with moments of the hidden variable c.

    Parameters
    ----------
    law : Mixture
        Of one feature.
    q : ndarray, shape (n,)
    root : ndarray, shape (n,), optional
        sqrt(1 - q^2), where it is known to more digits than q has near 1.

    Returns
    -------
    ndarray, shape (rows, 3, n)
        <f>, <m f> and <v f>, with m the mean of c in its component (a uniform variable included) and v its variance.
        Stein's lemma makes <c f> = <m f> + q <v f'> of them. NaN where q is not finite.
    """
    result = np.full((len(table.values), 3, q.size), math.nan)
    finite = np.isfinite(q)
    q = np.where(finite, q, 0.0)
    root = np.sqrt(np.maximum(1.0 - q * q, 0.0)) if root is None else root
    deviation = np.maximum(root, math.sqrt(LEAST_VARIANCE))
    wide = law.half_width[0] * np.abs(q) > NARROW_BOX * deviation
    for boxed in (False, True):
        own = law if boxed else _with_atoms(law, BOX_NODES, BOX_WEIGHTS)
        for some in _similar(deviation, finite & (wide == boxed)):
            result[:, :, some] = _at_similar(table, own, q[some], deviation[some])
    return result


def averages_with_hidden_variable(table: Table, law: Mixture, q: FloatArray) -> FloatArray:
    """Averages of all rows f of a table, alone and with moments of X = c - q B, by the formulas of `sensitivities`.

    Parameters
    ----------
    law : Mixture
        Of one feature.
    q : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (rows, 3, n)
        <f>, <X f> and <X^2 f>.
    """
    result = np.empty((len(table.values), 3, q.size))
    deviation = np.sqrt(np.maximum(1.0 - q * q, LEAST_VARIANCE))
    for some in _similar(deviation, np.ones(q.size, dtype=bool)):
        result[:, :, some] = _with_hidden_at_similar(table, law, q[some], deviation[some])
    return result


def _similar(deviation: FloatArray, among: BoolArray) -> Iterator[IntArray]:
    """Indices of deviations within a factor of two of each other."""
    octave = np.frexp(deviation)[1]
    for each in np.unique(octave[among]):
        yield np.flatnonzero(among & (octave == each))


def _with_hidden_at_similar(table: Table, law: Mixture, q: FloatArray, deviation: FloatArray) -> FloatArray:
    """Averages with moments of X where deviations sqrt(1 - q^2) are within a factor of two."""
    least, most = float(deviation.min()), float(np.abs(q).max())
    reach = law.half_width[0] * most / least
    nodes, weights = BOX_NODES, BOX_WEIGHTS
    if reach > NARROW_BOX:
        pieces = min(math.ceil(2.0 * reach / PIECE), MOST_PIECES)
        nodes = ((2 * np.arange(pieces)[:, None] + 1 + NODES) / pieces - 1.0).ravel()
        weights = np.tile(0.5 * WEIGHTS / pieces, pieces)
    mean, variance, moments = _components(_with_atoms(law, nodes, weights), least, most)
    q = q[:, None]
    D = np.sqrt((deviation * deviation)[:, None] + q * q * variance)
    # X = (constant + y slope).z, but for what is left of c at given B, of variance v - (q v/D)^2
    nothing = np.zeros_like(D)
    parts = np.array([[-q * q * mean, nothing + 1.0, nothing], [-q * D, nothing, q / D]])
    first = np.einsum("kiqa,aij->kjqa", parts, moments)
    second = np.einsum("kjqa,ljqa->klqa", first, parts)
    left = moments[:, 0, 2] - (q / D) ** 2 * moments[:, 2, 2]
    polynomials = np.array(
        [
            [nothing + moments[:, 0, 0], nothing, nothing],
            [*first[:, 0], nothing],
            [second[0, 0] + left, second[0, 1] + second[1, 0], second[1, 1]],
        ]
    )
    gaussian = over_gaussians(table, (q * mean).ravel(), D.ravel(), powers=3)
    return np.asarray(np.einsum("ckqa,kqar->rcq", polynomials, gaussian.reshape(3, *D.shape, -1), optimize=True))


def _at_similar(table: Table, law: Mixture, q: FloatArray, deviation: FloatArray) -> FloatArray:
    """Averages at overlaps whose deviations sqrt(1 - q^2) are within a factor of two; a box must be wide."""
    mean, variance, moments = _components(law, float(deviation.min()), float(np.abs(q).max()))
    weight = moments[:, 0]
    D = np.sqrt((deviation * deviation)[:, None] + (q * q)[:, None] * variance)
    centre, shape = q[:, None] * mean, (q.size, mean.size, len(table.values))
    if law.half_width[0] == 0.0:
        averages = over_gaussians(table, centre.ravel(), D.ravel())[0].reshape(shape)
        return np.asarray(np.einsum("qar,ac->rcq", averages, weight, optimize=True))
    half_width = np.repeat(law.half_width[0] * np.abs(q), mean.size)
    averages, tilted = over_boxes(table, centre.ravel(), D.ravel(), half_width).reshape(2, *shape)
    result = np.einsum("qar,ac->rcq", averages, weight, optimize=True)
    result[:, 1] += np.einsum("qar,a->rq", tilted, weight[:, 0]) * np.copysign(law.half_width[0], q)
    return np.asarray(result)


def _with_atoms(law: Mixture, nodes: FloatArray, weights: FloatArray) -> Mixture:
    """The law with atoms in place of its box, if it has one; at nodes on [-1, 1] times the half-width."""
    if law.half_width[0] == 0.0:
        return law
    mean = np.add.outer(law.mean[:, 0], law.half_width[0] * nodes)
    return law._replace(
        probability=np.outer(law.probability, weights).ravel(),
        mean=mean.reshape(-1, 1),
        variance=np.repeat(law.variance, nodes.size, axis=0),
        half_width=np.zeros(1),
    )


def _components(law: Mixture, deviation: float, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Components without the box, no more than averages need at deviations sqrt(1 - q^2) and |q| of these sizes.

    Returns
    -------
    mean, variance : ndarray, shape (components,)
    moments : ndarray, shape (components, 3, 3)
        Probability times z z^T with z = (1, m, v).
    """
    probability, mean, variance = law.probability, law.mean[:, 0], law.variance[:, 0]
    if law.scale_probability.size:
        probability = np.outer(probability, law.scale_probability[0]).ravel()
        mean = np.repeat(mean, law.scale_variance.size)
        variance = np.add.outer(variance, law.scale_variance[0]).ravel()
    z = np.array([np.ones_like(mean), mean, variance]).T
    moments = (probability[:, None] * z)[:, :, None] * z[:, None]
    if mean.size > ORDER and size > 0.0 and np.all(variance == variance[0]):
        alone, shared = shared_nodes(mean, MEAN_WIDTH * deviation / size)
        merged = [np.tensordot(interpolate, moments[some], axes=(0, 0)) for some, _, interpolate in shared]
        moments = np.concatenate([*merged, moments[alone]])
        mean = np.concatenate([nodes for _, nodes, _ in shared] + [mean[alone]])
        variance = variance[: mean.size]
    return mean, variance, moments
