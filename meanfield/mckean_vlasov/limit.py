"""Limit of training as N grows, for the density and stationary solvers of any family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from meanfield.ingredients.laws import CoordinateLaw, ResidualLaw
    from meanfield.ingredients.priors import PriorSettings
    from meanfield.mckean_vlasov.drive import Drive
    from meanfield.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Limit:
    """McKean-Vlasov equation of one weight w given its feature coordinates u.

    dw = (G w - u.g(q) - tau phi(w)) dt + sqrt(Lambda(q)) dB with q = E[u w] and the multiplier G that keeps
    E[w^2] = 1 (theory.md, section 2).

    Parameters
    ----------
    closure : callable
        q, shape (d1,) with |q| <= 1, to g, shape (d1,), and Lambda.
    learning_rate : float
        tau, the factor of the prior's force.
    prior : PriorSettings
        phi with its strength, and differences of its potential.
    coordinates : tuple of CoordinateLaw
        Laws of the feature coordinates u, one for each feature.
    initial_overlap : ndarray, shape (d1,)
        q(0).
    initial_residual : ResidualLaw
        Law of the part of a weight that is not along the features at t = 0.
    times : ndarray, shape (outputs,)
        Output times, increasing from 0.
    remedy_if_too_fast : str
        Advice of messages about dynamics that is too fast: a family names its keys.
    remedy_if_norm_drifts : str
        Advice of messages about E[w^2] far from 1: a family names its keys.
    schedules : Drive, optional
        Factors in time on g, Lambda and phi, which are those of the largest rate and strength then.

    Notes
    -----
    A density asks for g and Lambda thousands of times; `meanfield.mckean_vlasov.closures` says how they are compiled.
    Limits are equal if they are one object, by which solvers keep what they have made of it.
    """

    closure: Callable[[FloatArray], tuple[FloatArray, float]]
    learning_rate: float
    prior: PriorSettings
    coordinates: tuple[CoordinateLaw, ...]
    initial_overlap: FloatArray
    initial_residual: ResidualLaw
    times: FloatArray
    remedy_if_too_fast: str = "lower the learning rate"
    remedy_if_norm_drifts: str = "lower the learning rate or the noise"
    schedules: Drive | None = None

    @cached_property
    def drive(self) -> Drive:
        """Factors on g, Lambda and phi in time."""
        from meanfield.mckean_vlasov.drive import steady_drive  # which imports numba

        return self.schedules or steady_drive(float(self.times[-1]))

    @property
    def factors_on_closure(self) -> FloatArray:
        """Factors of g and of Lambda at the output times, shape (outputs, d1 + 1)."""
        of_g, of_diffusion, _ = self.drive.at(self.times).T
        return np.column_stack([*[of_g] * len(self.coordinates), of_diffusion])

    @property
    def learning_rates(self) -> FloatArray:
        """Factor of the prior's force at the output times, with the prior's largest strength, shape (outputs,)."""
        return np.asarray(self.learning_rate * self.drive.at(self.times)[:, 2])

    @classmethod
    def of(
        cls,
        problem: Any,
        closure: Callable[[FloatArray], tuple[FloatArray, float]],
        initial_overlap: FloatArray,
        besides: str = "",
    ) -> Limit:
        """Limit of a problem in whose files the learning rate is `model.learning_rate`.

        Parameters
        ----------
        problem : Problem
            With the tables `model`, `prior`, `time` and the laws of coordinates and of the initial residual.
        closure : callable
        initial_overlap : ndarray, shape (d1,)
        besides : str
            What else helps where E[w^2] drifts from 1.
        """
        remedy = "lower model.learning_rate"
        return cls(
            closure,
            problem.model.learning_rate,
            problem.prior,
            problem.coordinates,
            initial_overlap,
            problem.initial_residual,
            problem.time.outputs_at,
            remedy,
            f"{remedy}{besides}",
        )
