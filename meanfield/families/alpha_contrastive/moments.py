"""Moments of the filters of one layer and the objective of their network: numbers that a density has, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.networks import network_of
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.in_time import made_of
from meanfield.results.result import Result
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

HARMONICS = np.arange(1.0, 9.0)
"""Orders k of the moments E[cos k theta], E[sin k theta] of results."""

Objective = Callable[[FloatArray], float]
"""Function of filters, shape (filters, coordinates), that returns G of their network."""


def moment_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the moments of the filters of a problem; none but on the circle and the sphere."""
    if problem.model.layers == 2:
        return {}
    if problem.shape[2] == 2:
        return {"moment_cos": HARMONICS.shape, "moment_sin": HARMONICS.shape}
    return {"mean": (3,), "second_moment": (3, 3)} if problem.shape[2] == 3 else {}


def harmonics_of(problem: Problem) -> dict[str, FloatArray]:
    """Coordinate of the moments on the circle."""
    return {"harmonic": HARMONICS} if "moment_cos" in moment_shapes(problem) else {}


def moments(w: FloatArray, weight: FloatArray | None = None) -> dict[str, FloatArray]:
    """Moments of filters on the circle or the sphere.

    Parameters
    ----------
    w : ndarray, shape (..., filters, coordinates)
    weight : ndarray, shape (filters,), optional
        Weights that add up to 1; all alike by default.
    """
    weight = np.full(w.shape[-2], 1.0 / w.shape[-2]) if weight is None else weight
    if w.shape[-1] == 2:
        powers = (w[..., 0] + 1j * w[..., 1])[..., None] ** HARMONICS
        mean = np.einsum("f,...fk->...k", weight, powers)
        return {"moment_cos": mean.real, "moment_sin": mean.imag}
    mean = np.einsum("f,...fi->...i", weight, w)
    return {"mean": mean, "second_moment": np.einsum("f,...fi,...fj->...ij", weight, w, w)}


def objective_of(problem: Problem) -> Objective | None:
    """Objective G of networks of one layer; None where the limit of large batches has none that is a closed sum."""
    if problem.model.layers == 2:
        return None
    data = problem.data
    try:
        if isinstance(data, DiscreteLaw):
            field = discrete_field(problem, data)
            return lambda w: network_of(field, field.filter.value(w @ field.atoms.T), _alike(w)).objective
        if isinstance(data, GaussianMixture) and problem.importance.kind == "quadratic":
            closed = mixture_field(problem, data)
            return (lambda w: float(closed.energy(w).mean())) if isinstance(closed, MixtureField) else None
    except InputError:  # there is no smooth limit, or very many atoms
        pass
    return None


def of_the_best_network(result: Result) -> xr.Dataset:
    """Objective and moments of the filters of the best network, at the last time; see `Kind.at_end`.

    Where the outputs of w and -w are the same, or their opposites, moments are those of any choice of signs.
    """
    held, problem = result.dataset, result.problem
    z = np.linspace(0.1, 10.0, 100)
    ahead, behind = (problem.model.activation_functions.values(sign * z) for sign in (1.0, -1.0))
    signed = not np.allclose(np.abs(ahead), np.abs(behind))
    found = moments(held["w"].values, held["weight"].values) if signed and moment_shapes(problem) else {}
    found |= {"G": held["G"].values, "G_error": held["certificate_gap"].values}
    arrays = {name: np.asarray(values)[None] for name, values in found.items()}
    arrays |= {"time": problem.time.outputs_at[-1:], **harmonics_of(problem)}
    return build_dataset("best_network", problem, arrays, result.status, held.attrs["provenance"])


def _alike(w: FloatArray) -> FloatArray:
    return np.full(len(w), 1.0 / len(w))


def measured(problems: Sequence[Problem], w: FloatArray) -> dict[str, FloatArray]:
    """Moments and objectives of networks of one layer, shape (networks, filters, coordinates), each of a problem."""
    found = moments(w) if moment_shapes(problems[0]) else {}
    objective = made_of(objective_of, lambda each: (each.model, each.data, each.importance))
    heights = [of(each) for each, of in zip(w, map(objective, problems), strict=True) if of is not None]
    return found | {"G": np.array(heights)} if len(heights) == len(w) else found
