"""Networks of infinitely many filters: distances of outputs, objective, and the certificate of an optimum.

With weights of filters, D_ij = 1/2 sum of weights (h_i - h_j)^2 and G = G(D), which is concave in the weights. So
max_w E_alpha(w) - (average of E_alpha over the filters) is 0 at an optimum and bounds what is missing to it
(alpha_contrastive.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.circle import circle_points
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential, walls_of
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.pairs import laplacian
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Network:
    """State of a network that decides its importance.

    Parameters
    ----------
    distances : ndarray, shape (atoms, atoms)
        D.
    importance : ndarray, shape (atoms, atoms)
        M.
    objective : float
        G.
    """

    distances: FloatArray
    importance: FloatArray
    objective: float

    @property
    def laplacian(self) -> FloatArray:
        """L of the importance."""
        return laplacian(self.importance.copy())

    @property
    def mean_energy(self) -> float:
        """Average of E_alpha over the filters."""
        return 0.5 * float(np.sum(self.importance * self.distances))


def network_of(field: DiscreteField, outputs: FloatArray, weight: FloatArray) -> Network:
    """Network of filters with weights.

    Parameters
    ----------
    field : DiscreteField
    outputs : ndarray, shape (filters, atoms)
        h of each filter at each atom.
    weight : ndarray, shape (filters,)
        Weights that add up to 1.
    """
    centred = outputs - outputs @ field.pairs.probability[:, None]
    gram = centred.T @ (weight[:, None] * centred)
    square = np.diagonal(gram)
    D = np.maximum(0.5 * (square[:, None] + square[None]) - gram, 0.0)
    return Network(D, field.pairs.importance(D), float(field.pairs.objective(D)))


def with_importance(field: DiscreteField, network: Network) -> DiscreteField:
    """Field of a filter in a network, which does not move the importance."""
    return replace(field, frozen=network.laplacian)


def best_on_circle(field: DiscreteField, longest: float) -> tuple[FloatArray, FloatArray]:
    """Filters at all local maxima of E_alpha on the circle, the importance held fixed, and their energies.

    Returns
    -------
    w : ndarray, shape (maxima, 2)
    energy : ndarray, shape (maxima,)
    """
    walls = walls_of(field.atoms, field.filter.kinks)
    angles = [point.angle for point in circle_points(tangential(field), walls, longest) if point.attracts]
    w = on_circle(np.array(angles))
    return w, field.energy(w)
