"""A top layer that is always at its optimum, and how it modulates the places (alpha_contrastive.md, section 6).

Given the filters the energy is largest for V = v s^T with the top eigenvector s of C[f], whatever the unit vector v is.
With two generators and one filter in each place C[f] = diag(d) + p b b^T, and the flow splits into what each place does
by itself and a push along Delta_k = E[h' x_k | 1] - E[h' x_k | 0], theorem 5 of the paper:

    dw_k/dt = P (s_k^2 C[h' x_k, f_k] + delta_k b_k Delta_k),
    delta_k = p/(Z^2 (lambda - d_k)) sum_{l != k} b_l^2/(lambda - d_l),   Z^2 = sum_l b_l^2/(lambda - d_l)^2.
"""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.laws import Images
from meanfield.families.alpha_contrastive.population.drift import EnergyAndSlope
from meanfield.families.alpha_contrastive.population.gaussians import GaussianInputs, check_gaussians
from meanfield.families.alpha_contrastive.population.inputs import places_of
from meanfield.families.alpha_contrastive.population.places import PlaceDrift
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.typing import FloatArray


class FastTop:
    """Drift of the filters under a top layer of one row that is at its optimum; that of the top layer is 0."""

    def __init__(self, problem: Problem) -> None:
        self._drift = PlaceDrift(problem)

    def optimum(self, filters: FloatArray) -> tuple[FloatArray, float]:
        """Unit vector s, whose largest element is positive, and its eigenvalue."""
        values, vectors = np.linalg.eigh(self._drift.covariance(filters))
        s = vectors[:, -1]
        return s * np.sign(s[np.abs(s).argmax()]), float(values[-1])

    def top(self, weights: Weights) -> FloatArray:
        """Top layer whose first output is at its optimum, and the others 0."""
        found = np.zeros_like(weights.top)
        found[0] = self.optimum(weights.filters)[0]
        return found

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return self._drift.is_rounded

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """See `Drift.__call__`."""
        s, _ = self.optimum(weights.filters)
        found = self._drift(Weights(weights.filters, s[None]))
        slope = Weights(found.slope.filters, np.zeros_like(weights.top))
        return EnergyAndSlope(found.energy, found.covariance_trace, slope)

    def modulation(self, filters: FloatArray) -> dict[str, FloatArray]:
        """Terms of theorem 5 at some filters, shape (places, 1, coordinates), of two generators."""
        s, level = self.optimum(filters)
        of = self._drift.of_places(filters)
        b = of.means[:, 1] - of.means[:, 0]
        apart = level - of.within
        ratio, inverse = (np.divide(top, apart, out=np.zeros_like(b), where=apart > 0.0) for top in (b, 1.0))
        others = b @ ratio - b * ratio
        delta = of.share[0, 1] * inverse * others / max(float(ratio @ ratio), np.finfo(float).tiny)
        return {
            "top_eigenvalue": np.array(level),
            "top_vector": s,
            "within": of.within,
            "separation": b,
            "modulation": delta,
            "difference": of.gated[:, 1] - of.gated[:, 0],
        }


def is_modulated(problem: Problem) -> bool:
    """Whether theorem 5 has the flow of a problem: two generators, one filter in each place, and a fast top."""
    data, norm = problem.data, problem.model.batch_norm
    frozen = not (norm.active and norm.differentiate_variance)
    two = problem.population.fast_top and len(places_of(data).probability) == 2
    return two and problem.filters.count == 1 and frozen


def check_fast_top(problem: Problem) -> None:
    """Refuse problems whose top layer has no optimum of its own.

    Raises
    ------
    InputError
    """
    if problem.model.layers == 1:
        raise InputError("population.fast_top = true is for model.layers = 2; set that, or fast_top to false")
    if problem.model.normalise_outputs:
        raise InputError(
            "population.fast_top = true is for outputs that are linear in the top layer; set "
            "model.normalise_outputs or fast_top to false"
        )
    if problem.importance.kind != "quadratic":
        raise InputError(
            f"population.fast_top = true is for importance.kind = 'quadratic', under which the optimum of the top "
            f"layer is an eigenvector; take that in place of '{problem.importance.kind}', or set fast_top to false"
        )
    if isinstance(problem.data, Images):
        raise InputError(
            "population.fast_top = true needs the exact covariance of filters, which data.law = 'images' has not; take "
            "'tokens', or set fast_top to false"
        )
    law = places_of(problem.data)
    if isinstance(law.inputs, GaussianInputs):
        check_gaussians(problem, law.inputs, "or set population.fast_top to false")


def check_average_of_top(problem: Problem) -> None:
    """Refuse averages of a top layer that is put at its optimum, and does not learn."""
    a = problem.training.average_rate
    if a is not None and problem.population.fast_top:
        raise InputError(
            f"training.average_rate = {a:g} with population.fast_top = true: the top layer is a function of the "
            "filters, and an average of it is none of theirs; remove average_rate, or set fast_top to false"
        )
