"""Interface of the exact drift of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.problem import Problem


@dataclass(frozen=True)
class Found:
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

    def __call__(self, weights: Weights) -> Found:
        """Energy and slope at some weights."""


def share_of_pairs(problem: Problem) -> float:
    """Share of the pairs of a batch that are not of a sample with itself; 1 for large batches."""
    return 1.0 - 1.0 / problem.training.batch_size if problem.population.finite_batch else 1.0
