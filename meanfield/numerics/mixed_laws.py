"""Laws of w that are added up, kept in blocks of neighbours: a fine rule has thousands of them, most of them narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanfield.typing import FloatArray


class Block(NamedTuple):
    """Distribution functions of some laws at neighbouring edges: 0 at edges to the left, 1 at edges to the right.

    Parameters
    ----------
    first : int
        Number of the first of these edges.
    F : ndarray, shape (laws, edges of the block)
    """

    first: int
    F: FloatArray


@dataclass(frozen=True)
class Mixture:
    """Laws of w at the nodes of a rule in u that is fine enough to add them up.

    Parameters
    ----------
    u, weight : ndarray, shape (nodes,)
        Nodes and weights that add up to one.
    average : ndarray, shape (edges,)
        Distribution function of the mixture at cell edges.
    blocks : sequence of Block
        Laws at the nodes, in their order: fine rules have thousands of narrow ones.
    error : float
        Estimated L1 error of the density of the mixture by interpolation in u.
    """

    u: FloatArray
    weight: FloatArray
    average: FloatArray
    blocks: Sequence[Block]
    error: float = 0.0

    @classmethod
    def of(cls, u: FloatArray, weight: FloatArray, F: FloatArray, error: float = 0.0) -> Mixture:
        """Mixture of laws with distribution functions F, shape (nodes, edges)."""
        return cls(u, weight, np.asarray(weight @ F), [Block(0, F)], error)

    @property
    def F(self) -> FloatArray:
        """Distribution functions at cell edges, shape (nodes, edges)."""
        F, row = np.zeros((len(self.u), len(self.average))), 0
        for first, values in self.blocks:
            laws, edges = values.shape
            F[row : row + laws, first : first + edges] = values
            F[row : row + laws, first + edges :] = 1.0
            row += laws
        return F


def distance(first: Mixture, second: Mixture) -> float:
    """L1 distance of the densities of two mixtures."""
    return float(np.abs(np.diff(first.average - second.average)).sum())
