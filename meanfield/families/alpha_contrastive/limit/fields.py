"""Fields of the filters of a problem, in the limit of large batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.pairs import check_views, make_pairs, of_views
from meanfield.families.alpha_contrastive.problem import Problem

AnyField = DiscreteField | MixtureField | KernelMixtureField
"""Field of a filter at data of any law."""

LONGEST = np.pi / 4
"""Longest interval of angles on which a field of a mild problem varies once."""

MOST_AMPLIFIED = 1e6
"""Largest squared output, relative to the temperature, at which shares of pairs have digits left."""

MOST_NODES = 2000
"""Largest number of nodes of the quadrature over a mixture, of which all pairs are looked at."""

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
    if data.sample_of is not None:
        check_views(problem.importance)
        pairs = replace(pairs, diagonal=True, views=of_views(data.sample_of, data.weights))
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


def mixture_field(problem: Problem, data: GaussianMixture) -> MixtureField | KernelMixtureField:
    """Field for a Gaussian mixture, in closed form where there is one.

    Raises
    ------
    InputError
        If the importance has no smooth limit, or needs very many nodes.
    """
    pairs = make_pairs(problem.importance, data.weights)
    functions = Filter(problem.model.activation_functions)
    if data.augmentation:
        check_views(problem.importance)
    if pairs.uniform and functions.straight is not None:
        return MixtureField(data.weights, data.centres, data.covariances, *functions.straight, data.augmentation)
    width = _width_in_output(problem, functions, data)
    field = KernelMixtureField(data.weights, data.centres, data.covariances, pairs, functions, width, data.augmentation)
    if field.size > MOST_NODES:
        raise InputError(
            f"importance.temperature = {problem.importance.temperature:g} needs {field.size} nodes of quadrature for "
            f"the broadest component, and {MOST_NODES} are allowed; raise it, or lower data.covariance"
        )
    return field


def _width_in_output(problem: Problem, functions: Filter, data: GaussianMixture) -> float:
    """Change of w.x in which an importance varies."""
    if problem.importance.kind == "quadratic":
        return np.inf
    temperature = 1.0 if problem.importance.kind == "tuplet" else problem.importance.temperature
    spread = float(np.sqrt(max(np.linalg.eigvalsh(S)[-1] for S in data.covariances)))
    reach = float(np.linalg.norm(data.centres, axis=1).max()) + 4.0 * spread
    slope = float(np.abs(functions.slope(np.linspace(-reach, reach, 65))).max())
    return float(np.sqrt(temperature)) / max(slope, 1e-12)


def scale_of_angles(problem: Problem) -> float:
    """Longest interval of angles on which the field on the circle varies no more than once."""
    data, importance = problem.data, problem.importance
    if isinstance(data, GaussianMixture):
        width = np.sqrt(min(np.linalg.eigvalsh(S)[0] for S in data.covariances))
        size = float(np.linalg.norm(data.centres, axis=1).max()) + 1e-300
        width = min(width, _width_in_output(problem, Filter(problem.model.activation_functions), data))
    else:
        assert isinstance(data, DiscreteLaw)
        if importance.kind == "quadratic":
            return LONGEST
        reach = float(np.linalg.norm(data.atoms, axis=1).max())
        slope = Filter(problem.model.activation_functions).slope(np.linspace(-reach, reach, 65))
        width = np.sqrt(importance.temperature)
        size = 2.0 * reach * max(float(np.abs(slope).max()), 1e-12)
    # Four widths of what is sharp; a field sharper than 1e-4 is resolved by halving where it is seen.
    return float(np.clip(4.0 * width / size, 1e-4, LONGEST))
