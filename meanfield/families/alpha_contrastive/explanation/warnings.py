"""Warnings about problems whose keys do less than most people expect."""

from __future__ import annotations

from meanfield.explanation.prediction import Prediction
from meanfield.families.alpha_contrastive.problem import Problem

IN_SUMS = ("infonce", "soft_triplet")
"""Importances with an epsilon beside, or in front of, a sum over the batch."""


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy.

    Parameters
    ----------
    problem : Problem
    predicted : list of Prediction
        From `meanfield.explanation.prediction`.
    """
    importance = problem.importance
    if problem.model.layers == 1 and importance.kind in IN_SUMS and importance.epsilon != 0.0:
        return [
            f"importance.epsilon = {importance.epsilon:g} has no effect in the limit of large batches, in which it is "
            "beside a sum over the batch, or cancels; meanfield.contrastive_covariance takes it in for a batch"
        ]
    return []
