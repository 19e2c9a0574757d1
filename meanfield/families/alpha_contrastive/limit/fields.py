"""Fields of the filters of a problem, in the limit of large batches."""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.pairs import make_pairs
from meanfield.families.alpha_contrastive.problem import Problem

LONGEST = np.pi / 4
"""Longest interval of angles on which a field of a mild problem varies once."""

WIDTHS = 4.0
"""Length of such intervals where the importance or the data are sharp, in units of their width."""

SHORTEST = 1e-4
"""Shortest such interval: a sharper field is resolved by halving where it is seen."""

MOST_AMPLIFIED = 1e6
"""Largest squared output, relative to the temperature, at which shares of pairs have digits left."""

MOST_PAIRED = 400
"""Largest number of atoms of which all pairs are looked at."""


def discrete_field(problem: Problem, data: DiscreteLaw) -> DiscreteField:
    """Field for data of finitely many atoms.

    Raises
    ------
    InputError
        If the importance has no smooth limit, or there are too many atoms for it.
    """
    pairs = make_pairs(problem.importance, data.weights)
    if not pairs.uniform and len(data.weights) > MOST_PAIRED:
        raise InputError(
            f"data have {len(data.weights)} atoms, and importance.kind = '{problem.importance.kind}' looks at all "
            f"pairs of at most {MOST_PAIRED}; take fewer, or 'quadratic'"
        )
    field = DiscreteField(data.atoms, pairs, Filter(problem.model.activation_functions))
    if not field.amplification <= MOST_AMPLIFIED:
        raise InputError(
            f"importance.temperature = {problem.importance.temperature:g} is {1.0 / field.amplification:.1g} of the "
            f"largest squared output, so that shares of pairs are rounding; raise it until that is "
            f"{1.0 / MOST_AMPLIFIED:g} or more, or scale the data down"
        )
    return field


def mixture_field(problem: Problem, data: GaussianMixture) -> MixtureField:
    """Field for a Gaussian mixture.

    Raises
    ------
    InputError
        If the importance or the activation has no closed averages.
    """
    if problem.importance.kind != "quadratic":
        raise InputError(
            f"importance.kind = '{problem.importance.kind}' has no closed averages over data.law = 'gaussian_mixture'; "
            "take 'quadratic', or data.law = 'points'"
        )
    straight = Filter(problem.model.activation_functions).straight
    if straight is None:
        raise InputError(
            f"model.activation = '{problem.model.activation}' has no closed averages over data.law = "
            "'gaussian_mixture'; take relu, leaky_relu, abs or linear, or data.law = 'points'"
        )
    return MixtureField(data.weights, data.centres, data.covariances, *straight)


def scale_of_angles(problem: Problem) -> float:
    """Longest interval of angles on which the field on the circle varies no more than once."""
    data, importance = problem.data, problem.importance
    if isinstance(data, GaussianMixture):
        width = np.sqrt(min(np.linalg.eigvalsh(S)[0] for S in data.covariances))
        size = float(np.linalg.norm(data.centres, axis=1).max()) + 1e-300
    else:
        assert isinstance(data, DiscreteLaw)
        if importance.kind == "quadratic":
            return LONGEST
        reach = float(np.linalg.norm(data.atoms, axis=1).max())
        slope = Filter(problem.model.activation_functions).slope(np.linspace(-reach, reach, 65))
        width, size = np.sqrt(importance.temperature), 2.0 * reach * max(float(np.abs(slope).max()), 1e-12)
    return float(np.clip(WIDTHS * width / size, SHORTEST, LONGEST))
