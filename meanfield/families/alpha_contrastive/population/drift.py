"""Exact drift of a network: its interface, and averages over the points of a discrete law."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture
from meanfield.families.alpha_contrastive.limit.activation import Rounded
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.families.alpha_contrastive.limit.networks import network_of, with_importance
from meanfield.families.alpha_contrastive.problem import Problem

MOST_CARRIED = 3
"""Largest number of coordinates in which filters are carried across and along walls; in more, kinks are rounded."""


@dataclass(frozen=True)
class EnergyAndSlope:
    """Energy of a network, and its slope with the importances held fixed.

    Parameters
    ----------
    energy : float
        E_alpha.
    covariance_trace : float
        Trace of C_alpha of what the top layer reads.
    slope : Weights
        Derivative of the energy by all weights, times the number of filters for one layer.
    """

    energy: float
    covariance_trace: float
    slope: Weights


class Drift(Protocol):
    """Exact averages over the data."""

    @property
    def is_rounded(self) -> bool:
        """Whether kinks are rounded, so that filters slide along walls by themselves."""

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """Energy and slope at some weights."""


def decides_drift(problem: Problem) -> tuple[object, ...]:
    """What the drift depends on of all that may change in time."""
    return problem.model, problem.data, problem.importance, problem.training.batch_size


def share_of_pairs(problem: Problem) -> float:
    """Share of the pairs of a batch that are not of a sample with itself; 1 for large batches."""
    return 1.0 - 1.0 / problem.training.batch_size if problem.population.finite_batch else 1.0


class MixtureDrift:
    """Drift of the filters of one layer on a mixture of Gaussians under the uniform importance, each by itself."""

    is_rounded = False

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.data, GaussianMixture)
        self._field, self._share = mixture_field(problem, problem.data), share_of_pairs(problem)

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """See `Drift.__call__`."""
        w = weights.filters[0]
        energy = self._share * float(self._field.energy(w).mean())
        slope = self._share * self._field.field(w)
        return EnergyAndSlope(energy, 2.0 * energy, Weights(slope[None], np.zeros_like(weights.top)))


class PointDrift:
    """Drift of the filters of one layer, all of which decide the importance.

    Samples of a batch are drawn independently, so that other samples may be at the same atom: sums over a batch become
    averages over all atoms.
    """

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.data, DiscreteLaw)
        field = discrete_field(problem, problem.data)
        self.field = replace(field, pairs=replace(field.pairs, diagonal=True))
        if self.field.filter.kinks and problem.data.dimension > MOST_CARRIED:
            self.field = replace(self.field, filter=Rounded(problem.model.activation_functions))
        self.share = share_of_pairs(problem)

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return isinstance(self.field.filter, Rounded)

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """See `Drift.__call__`."""
        w, field = weights.filters[0], self.field
        outputs = field.filter.value(w @ field.atoms.T)
        network = network_of(field, outputs, np.full(len(w), 1.0 / len(w)))
        energy = self.share * network.mean_energy
        slope = self.share * with_importance(field, network).field(w)
        return EnergyAndSlope(energy, 2.0 * energy, Weights(slope[None], np.zeros_like(weights.top)))
