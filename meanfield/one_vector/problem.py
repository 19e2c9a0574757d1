"""Base of the problems in which one vector of weights is trained along one direction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.ingredients.activation_part import NamesActivation
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate, GaussianResidual, ResidualLaw
from meanfield.ingredients.prior_settings import PriorSettings
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.problems.base import BaseProblem, Time
from meanfield.typing import FloatArray


class Neuron(NamesActivation):
    """Activation of the neuron, and its learning rate."""

    learning_rate: float = Field(gt=0, le=1e6, description="tau, the step size of SGD, for instance 0.02")


class VectorProblem(BaseProblem):
    """Training of one vector w of N weights, |w|^2 = N, that may find a direction U, |U|^2 = N.

    A family derives its problem from this class, adds what data are made of, and writes `closure` and `step`. The
    density, order parameters and SGD follow; see `meanfield.one_vector.family.vector_family`.
    """

    settings: ClassVar[frozenset[str]] = frozenset({"density", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"

    model: Neuron
    coordinate: CoordinateLaw = Field(
        default=GaussianCoordinate(), description="the law of the components of U, a table with law = 'gaussian', ..."
    )
    initial_overlap: float = Field(gt=-1, lt=1, description="q(0), the overlap of weights and U at the start")
    initial_residual: ResidualLaw = Field(
        default=GaussianResidual(), description="the law of what is not along U in the initial weights"
    )
    prior: PriorSettings = PriorSettings()
    time: Time
    density: DensitySettings = DensitySettings()
    particles: EnsembleSettings = EnsembleSettings()

    @abstractmethod
    def closure(self) -> Callable[[FloatArray], tuple[FloatArray, float]]:
        """Coefficients of the limit, as a function of the overlap.

        Returns
        -------
        callable
            q, shape (1,), to g, shape (1,), and Lambda of dw = (G w - u g(q) - tau phi(w)) dt + sqrt(Lambda(q)) dB. In
            time t = k/N, a step k of SGD changes w_i by -u_i g/N on average, but for what is proportional to w_i, with
            the variance Lambda/N.
        """

    @abstractmethod
    def step(self, w: FloatArray, u: FloatArray, rng: Generator) -> FloatArray:
        """Weights after a step of SGD on new data, but for the force of the prior and the return to |w|^2 = N.

        Parameters
        ----------
        w : ndarray, shape (N,)
        u : ndarray, shape (N,)
            The direction.
        rng : Generator
            Source of the data.
        """

    @model_validator(mode="after")
    def _times_fit_steps(self) -> Self:
        self.particles.check_times(self.time)
        return self

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """See `BaseProblem.coordinates`."""
        return (self.coordinate,)

    @property
    def start(self) -> FloatArray:
        """Overlap q(0) as a vector, shape (1,)."""
        return np.array([self.initial_overlap])

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `BaseProblem.fixed_dims`."""
        return {"feature": 1}

    @property
    def labels(self) -> dict[str, float]:
        """See `BaseProblem.labels`."""
        return {"dimension": self.particles.dimension, "learning_rate": self.model.learning_rate}
