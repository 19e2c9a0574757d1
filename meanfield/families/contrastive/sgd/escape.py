"""Escape of a replica from small overlaps, and the feature that wins."""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray, IntArray


def escape_level(problem: Problem) -> float:
    """Square of the overlap that counts as escape; infinite if the problem names none."""
    overlap = problem.particles.escape_overlap
    return math.inf if overlap is None else overlap * overlap


def initial_escape(q: FloatArray, level: float) -> IntArray:
    """0 for the replicas whose overlap begins at the level or above, else -1."""
    return np.asarray(np.where(np.einsum("rk,rk->r", q, q) >= level, 0, -1))


def winners(q: FloatArray, escape: IntArray) -> IntArray:
    """Winning feature of each replica: the one with the largest |q_k| at the end, if |q| has escaped by then.

    Right after the escape the order may still change: the replica may have to pass a saddle between recovery states.

    Parameters
    ----------
    q : ndarray, shape (replicas, d1)
        Overlaps at the end; NaN where they are not finite.
    escape : ndarray of int, shape (replicas,)
        The step of the escape, or -1.

    Returns
    -------
    ndarray of int, shape (replicas,)
        Index of the feature; -1 where there is none.
    """
    decided = (escape >= 0) & np.isfinite(q).all(axis=1)
    return np.asarray(np.where(decided, np.abs(q).argmax(axis=1), -1))
