"""Scores of the filters of two layers: which tokens they match, and how many directions they span."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.typing import FloatArray

PROBES = np.array([0.3, 0.9, 1.7])
"""Points at which an activation is seen to be odd or even."""


def has_no_sign(h: Filter) -> bool:
    """Whether h is odd or even, so that a filter and its opposite do the same."""
    up, down = h.value(PROBES), h.value(-PROBES)
    return np.array_equal(up, -down) or np.array_equal(up, down)


def matches(filters: FloatArray, data: Tokens, h: Filter) -> dict[str, FloatArray]:
    """Scores chi_+ and chi_- of filters (paper, equations 16 and 181).

    A token of a place is matched by the largest coordinate along it of a filter of length 1 there, in size where h is
    odd or even. chi_+ is the mean over tokens that some generator puts there, chi_- over the others, and both are means
    over places that have such tokens.

    Parameters
    ----------
    filters : ndarray, shape (..., places, filters, tokens)

    Returns
    -------
    dict of ndarray, shape (...)
        `chi_plus` and `chi_minus`; NaN where no place has such tokens.
    """
    length = np.sqrt(np.sum(filters * filters, axis=-1, keepdims=True))
    along = np.divide(filters, length, out=np.zeros_like(filters), where=length > 0.0)
    best = (np.abs(along) if has_no_sign(h) else along).max(axis=-2)  # (..., places, tokens)
    found = {}
    for name, chosen in (("chi_plus", data.marked), ("chi_minus", ~data.marked)):
        counts = chosen.sum(axis=1)
        there = counts > 0
        sums = np.sum(best * chosen, axis=-1)[..., there] / counts[there]
        found[name] = sums.mean(axis=-1) if there.any() else np.full(filters.shape[:-3], np.nan)
    return found


def scores_of(problems: Sequence[Problem], filters: FloatArray) -> dict[str, FloatArray]:
    """Scores of networks, shape (networks, places, filters, tokens), each of a problem; none if not all see tokens."""
    found: dict[str, list[FloatArray]] = {"chi_plus": [], "chi_minus": []}
    for _, group in itertools.groupby(range(len(problems)), lambda i: id(problems[i].data)):
        alike = list(group)
        problem = problems[alike[0]]
        if not isinstance(problem.data, Tokens):
            return {}
        for name, score in matches(filters[alike], problem.data, Filter(problem.model.activation_functions)).items():
            found[name].append(score)
    return {name: np.concatenate(scores) for name, scores in found.items()}


def effective_rank(matrices: FloatArray) -> FloatArray:
    """Effective rank (sum s^2)^2 / sum s^4 from singular values s of matrices in the last two dims; 0 of a zero one."""
    gram = matrices @ np.swapaxes(matrices, -1, -2)
    trace = np.trace(gram, axis1=-2, axis2=-1)
    square = np.sum(gram * gram, axis=(-1, -2))
    return np.asarray(np.divide(trace * trace, square, out=np.zeros_like(trace), where=square > 0.0))
