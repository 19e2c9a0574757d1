"""Best weights of given filters: a concave function on the simplex, by Newton's method on the filters that are used."""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.limit.pairs import Pairs
from meanfield.typing import FloatArray


def best_weights(pairs: Pairs, squares: FloatArray, weight: FloatArray) -> FloatArray:
    """Weights that maximise the objective G, shape (filters,).

    Parameters
    ----------
    pairs : Pairs
    squares : ndarray, shape (filters, atoms, atoms)
        Half squared differences of the outputs of each filter.
    weight : ndarray, shape (filters,)
        Weights to start from.
    """
    if pairs.uniform:  # G is linear, and the winner takes all
        energies = 0.5 * np.einsum("kij,ij->k", squares, pairs.weight)
        return np.asarray(np.arange(len(weight)) == energies.argmax(), dtype=float)
    height = -np.inf
    for _ in range(200):  # steps of Newton's method
        D = np.tensordot(weight, squares, 1)
        M = pairs.importance(D)
        energy = 0.5 * np.einsum("kij,ij->k", squares, M)
        mean = float(energy @ weight)
        if float(energy.max()) - mean <= 1e-14 * mean:  # nothing is gained by moving weight to another filter
            break
        free = (weight > 0.0) | (energy > mean)
        step = np.zeros_like(weight)
        step[free] = _newton_step(pairs, D, squares[free], energy[free], weight[free])
        shrinking = step < 0.0
        reach = float(np.min(-weight[shrinking] / step[shrinking], initial=1.0))
        height, trial = float(pairs.objective(D)), weight
        for _ in range(40):  # halvings of a step that does not raise the objective
            trial = np.maximum(weight + reach * step, 0.0)
            trial[trial < 1e-15] = 0.0
            trial /= trial.sum()
            if float(pairs.objective(np.tensordot(trial, squares, 1))) > height:
                break
            reach *= 0.5
        else:
            break
        weight = trial
    kept = np.where(weight >= 1e-10, weight, 0.0)  # smaller weights are rounding
    return np.asarray(kept / kept.sum())


def _newton_step(
    pairs: Pairs, D: FloatArray, squares: FloatArray, energy: FloatArray, weight: FloatArray
) -> FloatArray:
    """Newton step that keeps the sum of the weights, and does not take from filters without weight."""
    H = pairs.response(D, squares[:, None], squares[None])
    ridge = 1e-11 * float(np.abs(H).max())  # for filters with the same outputs
    allowed = np.ones(len(weight), dtype=bool)
    step = np.zeros_like(weight)
    for _ in range(len(weight)):
        k = int(allowed.sum())
        system = np.zeros((k + 1, k + 1))
        system[:k, :k] = H[np.ix_(allowed, allowed)] - ridge * np.eye(k)
        system[:k, k] = system[k, :k] = 1.0
        found = np.linalg.lstsq(system, np.append(-energy[allowed], 0.0), rcond=None)[0][:k]
        step[:] = 0.0
        step[allowed] = found
        blocked = allowed & (weight == 0.0) & (step < 0.0)
        if not blocked.any():
            break
        allowed &= ~blocked
    return step
