"""Filters and weights that maximise the objective of a network: Frank-Wolfe steps with weights corrected in full.

The objective is concave in the law of the filters. Each round holds the importance fixed, adds all filters that are
local maxima of E_alpha, and solves for the weights; it ends where no filter is above the average, which is the
certificate (alpha_contrastive.md, section 4).

The weights maximise a concave function on the simplex, by Newton's method on the filters that are used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.critical_points.enumeration import enumerated_points
from meanfield.families.alpha_contrastive.critical_points.solver import check_critical_points
from meanfield.families.alpha_contrastive.critical_points.sphere import sphere_points
from meanfield.families.alpha_contrastive.laws import DiscreteLaw
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, scale_of_angles
from meanfield.families.alpha_contrastive.limit.networks import Network, best_on_circle, network_of, with_importance
from meanfield.families.alpha_contrastive.limit.pairs import Pairs, half_squares
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

CERTIFIED = 1e-9
"""Certificate, relative to G, with which the search ends."""

MOST_ROUNDS = 100
"""Largest number of rounds."""

Search = Callable[[Network], tuple[FloatArray, FloatArray]]
"""Function of a network that returns local maxima of E_alpha and their energies."""


def check_optimal_filters(problem: Problem) -> None:
    """Refuse problems whose best networks are not known, at no cost."""
    check_critical_points(problem)
    if not isinstance(problem.data, DiscreteLaw):
        raise InputError(
            f"data.law = '{problem.data.law}' is of no finite number of atoms, whose distances are optimised; take "
            "'points'; with the uniform importance a single filter, the best of 'critical_points', is optimal"
        )


@solver
def find_optimal_filters(problem: Problem) -> Solved:
    """Filters and weights with the largest objective G, as many as needed.

    Parameters
    ----------
    problem : Problem
        With one layer, and data of finitely many atoms.

    Returns
    -------
    xarray.Dataset
        Filters `w` with their `weight`, the objective `G`, and `certificate_gap`, by which no other network is better:
        in the plane the maxima of E_alpha are enumerated, so that this is a bound; with more coordinates they are
        searched for.

    Raises
    ------
    InputError
        If the method does not apply to the problem.

    Notes
    -----
    Source: alpha_contrastive.md, section 4.
    """
    check_optimal_filters(problem)
    data = problem.data
    assert isinstance(data, DiscreteLaw)
    field = discrete_field(problem, data)
    search = _search_of(problem, field)
    w, weight, network, gap, rounds = _optimised(field, search)
    w, weight, network, gap = _merged(field, search, w, weight, network, gap)
    order = np.argsort(-weight, kind="stable")
    arrays = {
        "w": w[order],
        "weight": weight[order],
        "G": np.array(network.objective),
        "certificate_gap": np.array(gap),
    }
    warning = ""
    if gap > CERTIFIED * abs(network.objective):
        warning = f"another network may be better by {gap:.2g}: the search ended after {rounds} rounds"
    if data.dimension > 2 and enumerated_points(with_importance(field, network))[1] != "complete":
        warning = f"{warning}; {_SEARCHED}" if warning else _SEARCHED
    return Solved("optimal_filters", arrays, warning=warning, effort={"rounds": rounds})


_SEARCHED = (
    "the best filter is not enumerated but searched for from random ones, so that the certificate is no proof; raise "
    "critical_points.starts"
)


def _search_of(problem: Problem, field: DiscreteField) -> Search:
    if field.atoms.shape[1] == 2:
        longest = scale_of_angles(problem)
        return lambda network: best_on_circle(with_importance(field, network), longest)

    def search(network: Network) -> tuple[FloatArray, FloatArray]:
        frozen = with_importance(field, network)
        settings = problem.critical_points
        points, _ = sphere_points(frozen, settings.starts, settings.seed)
        w = np.array([point.w for point in points if point.rate < 0])
        w = w.reshape(-1, field.atoms.shape[1])
        return w, frozen.energy(w)

    return search


def _optimised(field: DiscreteField, search: Search) -> tuple[FloatArray, FloatArray, Network, float, int]:
    """Filters, their weights, the network, its certificate and the number of rounds."""
    # Random filters whose network decides the first round.
    even = np.random.default_rng(0).standard_normal((64, field.atoms.shape[1]))
    even /= np.linalg.norm(even, axis=1, keepdims=True)
    first = network_of(field, field.filter.value(even @ field.atoms.T), np.full(len(even), 1.0 / len(even)))
    w, _ = search(first)
    if not len(w):  # importances of all pairs underflow
        w = even
    w, weight, network = _with_best_weights(field, w, np.full(len(w), 1.0 / max(len(w), 1)))
    gap, rounds = np.inf, 1
    with progress_bar(MOST_ROUNDS, "optimal filters", "round") as bar:
        while True:
            maxima, energy = search(network)
            gap = max(float(energy.max(initial=-np.inf)) - network.mean_energy, 0.0)
            if gap <= CERTIFIED * abs(network.objective) or rounds >= MOST_ROUNDS:
                return w, weight, network, gap, rounds
            # Maxima with less energy than the average, by up to 1e-3 of it, are looked at.
            new = maxima[energy > network.mean_energy - 1e-3 * abs(network.mean_energy)]
            trial = _with_best_weights(field, *_moved(w, weight, new))
            if trial[2].objective <= network.objective:  # moving filters to their maxima went too far
                trial = _with_best_weights(field, np.concatenate([w, new]), np.append(weight, np.zeros(len(new))))
            w, weight, network = trial
            rounds += 1
            bar.update(1)


def _moved(w: FloatArray, weight: FloatArray, maxima: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Filters with those close to a maximum of E_alpha moved there."""
    apart = np.linalg.norm(w[:, None] - maxima[None], axis=2)
    # Filters move to a maximum of E_alpha as close as that.
    nearest, moves = apart.argmin(axis=1), apart.min(axis=1) < 0.1
    gained = np.bincount(nearest[moves], weight[moves], len(maxima))
    return np.concatenate([w[~moves], maxima]), np.append(weight[~moves], gained)


def _with_best_weights(
    field: DiscreteField, w: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, Network]:
    """Filters that are used, with their best weights, and their network."""
    outputs = field.filter.value(w @ field.atoms.T)
    start = weight if weight.sum() > 0.0 else np.full(len(w), 1.0 / len(w))
    weight = best_weights(field.pairs, half_squares(outputs), start)
    used = weight > 0.0
    return w[used], weight[used], network_of(field, outputs[used], weight[used])


def _merged(
    field: DiscreteField, search: Search, w: FloatArray, weight: FloatArray, network: Network, gap: float
) -> tuple[FloatArray, FloatArray, Network, float]:
    """Network with filters merged that are maxima of E_alpha before it converged to the last digit."""
    groups: list[list[int]] = []
    for k in np.argsort(-weight):
        # Filters as close as that are merged.
        near = [group for group in groups if np.linalg.norm(w[group[0]] - w[k]) < 1e-3]
        near[0].append(int(k)) if near else groups.append([int(k)])
    if len(groups) == len(w):
        return w, weight, network, gap
    fewer = np.array([weight[group] @ w[group] for group in groups])
    fewer /= np.linalg.norm(fewer, axis=1, keepdims=True)
    fewer, better, merged = _with_best_weights(field, fewer, np.array([weight[group].sum() for group in groups]))
    _, energy = search(merged)
    new_gap = max(float(energy.max(initial=-np.inf)) - merged.mean_energy, 0.0)
    if new_gap > max(CERTIFIED * abs(merged.objective), gap):
        return w, weight, network, gap
    return fewer, better, merged, new_gap


def best_weights(pairs: Pairs, squares: FloatArray, weight: FloatArray) -> FloatArray:
    """Weights that maximise the objective G, shape (filters,).

    Parameters
    ----------
    squares : ndarray, shape (filters, atoms, atoms)
        Half squared differences of the outputs of each filter.
    weight : ndarray, shape (filters,)
        Weights to start from.
    """
    if pairs.uniform:  # G is linear, and the winner takes all
        energies = 0.5 * np.einsum("kij,ij->k", squares, pairs.importance(squares[0]))
        return np.asarray(np.arange(len(weight)) == energies.argmax(), dtype=float)
    height = -np.inf
    for _ in range(200):  # steps of Newton's method
        D = np.tensordot(weight, squares, 1)
        M = pairs.importance(D)
        energy = 0.5 * np.einsum("kij,ij->k", squares, M)
        mean = float(energy @ weight)
        if float(energy.max()) - mean <= 1e-14 * abs(mean):  # nothing is gained by moving weight to another filter
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
