"""Starts of two results, which decide a difference of theirs where they are not the same weights or of one law.

A run of SGD, or the exact flow of a network, starts with weights that are drawn once; a density starts with their law.
The scatter of runs that each draw their own start has that of the start in it, so that these are held against the law.
Where all runs share one draw it hides in no scatter: they are held against what starts with the same draw.
"""

from __future__ import annotations

import numpy as np

from meanfield.problems.family import resolve
from meanfield.results.result import Result


def different_starts(first: Result, second: Result) -> str:
    """Why two results start differently, and what to change, in a sentence or two; empty if they do not."""
    if not first.family.start:
        return ""
    start_of = resolve(first.family.start)
    starts = [start_of(result) for result in (first, second)]
    if all(start is None for start in starts) or any(start is not None and not len(start) for start in starts):
        return ""
    if all(start is not None for start in starts):
        return "" if np.array_equal(*starts) else f"They start with other weights: {_same_seed(first)}."
    shares, draws = (first, second) if starts[1] is None else (second, first)
    if shares.is_prediction and draws.is_prediction:
        return (
            "One starts with weights that are drawn once, the other with their law: hold each against runs of SGD, the "
            "first with particles.common_start = true, the second with false."
        )
    if shares.is_prediction:
        return (
            "The prediction starts with one draw of the weights, and each run with its own: set particles.common_start "
            f"= true, and {_same_seed(first)}."
        )
    return (
        "All runs start with one draw of the weights, whose distance from their law is in no scatter: set "
        "particles.common_start = false."
    )


def _same_seed(result: Result) -> str:
    return f"give both the same {result.problem.seed_key or 'start'}"
