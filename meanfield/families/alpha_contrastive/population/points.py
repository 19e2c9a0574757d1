"""Exact drift of one layer of filters on data of finitely many atoms (alpha_contrastive.md, sections 3 and 4)."""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.laws import DiscreteLaw
from meanfield.families.alpha_contrastive.limit.fields import discrete_field
from meanfield.families.alpha_contrastive.limit.networks import network_of, with_importance
from meanfield.families.alpha_contrastive.population.drift import Found, share_of_pairs
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.problem_keys import with_value


class PointDrift:
    """Drift of the filters of one layer, all of which decide the importance.

    Samples of a batch are drawn independently, so that other samples may be at the same atom: sums over a batch become
    averages over all atoms.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.data, DiscreteLaw)
        self._field = discrete_field(with_value(problem, "importance.diagonal", "include"), problem.data)
        self._share = share_of_pairs(problem)

    def __call__(self, weights: Weights) -> Found:
        """See `Drift.__call__`."""
        w, field = weights.filters[0], self._field
        outputs = field.filter.value(w @ field.atoms.T)
        network = network_of(field, outputs, np.full(len(w), 1.0 / len(w)))
        energy = self._share * network.mean_energy
        slope = self._share * with_importance(field, network).field(w)
        return Found(energy, 2.0 * energy, Weights(slope[None], np.zeros_like(weights.top)))
