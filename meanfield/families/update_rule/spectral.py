"""Coordinates of different variance: fields and overlaps at each eigenvalue (update_rules.md, section 11).

Noise moves a coordinate in proportion to its variance rho, while signals and moves along vectors do not know it. So
overlaps are followed at quadrature nodes of the spectrum.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.update_rule.draws import Draw
from meanfield.ingredients.spectra import Nodes
from meanfield.typing import FloatArray


class Grams:
    """Gram matrices of all coordinates, from those at nodes of the spectrum, if there is one.

    Parameters
    ----------
    at : ndarray, shape (vectors, vectors) or (nodes, vectors, vectors)
    nodes : Nodes, optional

    Attributes
    ----------
    total : ndarray, shape (vectors, vectors)
        Plain one.
    weighted : ndarray, shape (vectors, vectors), or None
        Weighted with the variances of the noise of coordinates.
    """

    def __init__(self, at: FloatArray, nodes: Nodes | None = None) -> None:
        self.at, self.nodes, self.total, self.weighted = at, nodes, at, None
        if nodes is not None:
            self.total = np.tensordot(nodes.weight, at, 1)
            self.weighted = np.tensordot(nodes.weight * nodes.rho, at, 1)


def noise_at_nodes(draw: Draw, grams: Grams) -> FloatArray:
    """Covariance of noise in fields at nodes with that in all fields, shape (nodes, inputs, vectors, inputs vectors).

    Fields at a node are those of its coordinates, per share of them, so that fields are their average over nodes.
    """
    assert grams.nodes is not None
    assert grams.weighted is not None
    M, (both, square, own) = draw.features, draw.kept
    at, beside = grams.at, draw.beside_features(grams.total)
    white = grams.nodes.rho[:, None, None] * at
    orthogonal = (white - at[:, :, :M] @ grams.weighted[:M]) @ beside
    found = np.zeros((len(at), draw.inputs, draw.vectors, draw.inputs, draw.vectors))
    for each in draw.noise:
        C = each.covariance
        found += np.einsum("lm,bij->blimj", C * (own if each.projected else both), white)
        if each.projected:
            found += np.einsum("lm,bij->blimj", C * square, orthogonal)
    return found.reshape(*found.shape[:3], -1)
