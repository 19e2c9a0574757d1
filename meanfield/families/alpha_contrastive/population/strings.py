"""Exact covariances on tokens by all strings: any importance with a smooth limit, of views or sources.

A string is a generator with a filling of the places that it does not mark. In large batches the contrastive covariance
is that of pairs of strings with the weights

    M_ij = p_i p_j K_ij - [same generator] (r_i q_j + r_j q_i)/2,   r_i = p_i sum_j p_j K_ij,

where p are probabilities, q those given the generator, K importances, divided by their mean over j where the loss is,
and symmetrised: the second term is that of two views. An importance of sources is averaged over pairs of strings of
two generators, because views are drawn beside them; without augmentation there is no second term
(alpha_contrastive.md, section 6).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.limit.pairs import laplacian, make_pairs
from meanfield.families.alpha_contrastive.population.drift import EnergyAndSlope
from meanfield.families.alpha_contrastive.population.gaussians import GaussianInputs
from meanfield.families.alpha_contrastive.population.inputs import PlacesLaw, places_of
from meanfield.families.alpha_contrastive.population.tables import Tables, by_places, flat
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.networks.normalisation import Normalisation
from meanfield.typing import FloatArray, IntArray

MOST_STRINGS = 2000
"""Largest number of strings, of which all pairs are looked at in each evaluation of the flow."""


class StringDrift:
    """Drift of two layers on tokens, from all pairs of strings."""

    def __init__(self, problem: Problem) -> None:
        law = places_of(problem.data)
        self._tables = Tables(problem, law)
        self._outputs = Normalisation(problem.model.normalise_outputs)
        atoms, generator, self._given = strings_of(law)
        self._atoms = np.eye(law.chance.shape[2])[atoms.T]  # (places, strings, atoms)
        self._of_generator = np.eye(len(law.probability))[generator]  # (strings, generators)
        probability = self._given * law.probability[generator]
        self._pairs = replace(make_pairs(problem.importance, probability), diagonal=True)
        self._augments = law.augments
        self._of_sources = problem.importance.argument == "source"

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return self._tables.is_rounded

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """See `Drift.__call__`."""
        table = self._tables.table(weights.filters)
        V = by_places(weights.top, len(table.values))
        last = (self._atoms @ (table.values @ np.swapaxes(V, 1, 2))).sum(axis=0)  # (strings, outputs)
        y = self._outputs.value(last)
        L = self._laplacian(y)
        pull = L @ y
        hidden = np.swapaxes(self._atoms @ table.values, 0, 1).reshape(len(y), -1)
        trace = float(np.sum(hidden * (L @ hidden)))
        by_atom = np.swapaxes(self._atoms, 1, 2) @ self._outputs.back(last, pull)  # (places, atoms, outputs)
        slope = self._tables.by_filters(table, by_atom @ V), flat(np.swapaxes(by_atom, 1, 2) @ table.values)
        return EnergyAndSlope(0.5 * float(np.sum(y * pull)), trace, Weights(*slope))

    def _laplacian(self, y: FloatArray) -> FloatArray:
        """Laplacian of the weights of pairs of strings with outputs y."""
        squares = np.sum(y * y, axis=1)
        D = np.maximum(0.5 * (squares[:, None] + squares) - y @ y.T, 0.0)
        M = self._pairs.ordered(D)
        if not self._augments:
            return laplacian(0.5 * (M + M.T))
        of, given = self._of_generator, self._given
        if self._of_sources:
            M = of @ (of.T @ M @ of) @ of.T * np.outer(given, given)
        within = M.sum(axis=1)[:, None] * given * (of @ of.T)
        M -= within
        return laplacian(0.5 * (M + M.T))


def strings_of(law: PlacesLaw) -> tuple[IntArray, IntArray, FloatArray]:
    """Atoms of all strings, shape (strings, places), their generators, and probabilities given these."""
    atoms, generators, given = [], [], []
    for g in range(len(law.probability)):
        chances = law.chance[:, g]
        filled = np.array(list(product(*(np.flatnonzero(chance) for chance in chances))))
        atoms.append(filled)
        generators.append(np.full(len(filled), g))
        given.append(np.prod(chances[np.arange(len(chances)), filled], axis=1))
    return np.concatenate(atoms), np.concatenate(generators), np.concatenate(given)


def check_strings(problem: Problem, why: str) -> None:
    """Refuse problems with very many strings, or whose importance is no function of a pair of them.

    Parameters
    ----------
    why : str
        The key because of which strings are enumerated.

    Raises
    ------
    InputError
    """
    make_pairs(problem.importance, np.ones(1))
    other = "or solve by particles"
    law = places_of(problem.data)
    if isinstance(law.inputs, GaussianInputs):
        raise InputError(f"{why} has no exact averages over Gaussians; take 'quadratic', points, {other}")
    count = float(np.sum(np.prod((law.chance > 0.0).sum(axis=2, dtype=float), axis=0)))
    if count > MOST_STRINGS:
        raise InputError(
            f"{why} looks at all pairs of strings, of which there are {count:.3g}, and {MOST_STRINGS} are allowed; "
            f"lower data.vocabulary, or the numbers of points of places, or mark more of these, {other}"
        )
    if problem.population.finite_batch:
        raise InputError(f"population.finite_batch = true has no exact drift with {why}; set it to false, {other}")
    if problem.importance.kind == "modified_triplet" and law.augments and problem.importance.argument == "views":
        raise InputError(
            "importance.kind = 'modified_triplet' looks at three views at a time; set importance.argument to 'source', "
            f"take 'infonce', {other}"
        )
