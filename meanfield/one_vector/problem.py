"""Problems in which one vector of weights is trained along one direction: their base, and their family."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.ingredients.activations import NamesActivation
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate, GaussianResidual, ResidualLaw
from meanfield.ingredients.part import after_fields
from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov import declarations
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.problems.base import Problem, Time
from meanfield.problems.family import Family, Method
from meanfield.typing import FloatArray

HERE = "meanfield.one_vector"


class Neuron(NamesActivation):
    """Activation of the neuron, and its learning rate."""

    learning_rate: float = Field(gt=0, le=1e6, description="tau, the step size of SGD, for instance 0.02")


class VectorProblem(Problem):
    """Training of one vector w of N weights, |w|^2 = N, that may find a direction U, |U|^2 = N.

    A family derives its problem from this class, adds what data are made of, and writes `closure` and `step`. The
    density, order parameters and SGD follow; see `vector_family`.
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

    @after_fields
    def _times_fit_steps(self) -> None:
        self.particles.check_times(self.time)

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """See `meanfield.Problem.coordinates`."""
        return (self.coordinate,)

    @property
    def start(self) -> FloatArray:
        """Overlap q(0) as a vector, shape (1,)."""
        return np.array([self.initial_overlap])

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        return {"feature": 1}

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        return {"dimension": self.particles.dimension, "learning_rate": self.model.learning_rate}


def vector_family(name: str, title: str, problem: str, example: str) -> Family:
    """Family of problems derived from `VectorProblem`, with a density, order parameters and SGD.

    Parameters
    ----------
    name : str
        The word in problem files.
    title : str
        A line about it.
    problem : str
        "module:class" of its problems, a subclass of `VectorProblem`.
    example : str
        "module:file" of a problem that every method solves within a second, beside the module.

    Returns
    -------
    Family
        `dataclasses.replace` gives it further variables, kinds or methods.
    """
    in_time = tuple(declarations.REDUCTIONS)
    return Family(
        name=name,
        title=title,
        problem=problem,
        example=example,
        variables=declarations.VARIABLES,
        kinds=declarations.KINDS,
        methods={
            "density": Method("density", f"{HERE}.methods:solve_density", ("density",), keep=in_time),
            "order_parameters": Method(
                "order parameters",
                f"{HERE}.methods:solve_order_parameters",
                ("order_parameters",),
                check=f"{HERE}.methods:check_order_parameters",
                keep=in_time,
            ),
            "particles": Method(
                "particles",
                f"{HERE}.methods:simulate_sgd",
                ("particles", "ensemble"),
                check=f"{HERE}.methods:simulation_of",
                resumes=True,
                threads=True,
                keep=in_time,
            ),
        },
        distances=tuple(declarations.DISTANCES),
        measure_distances="meanfield.comparison.weights:distances",
        measure_deviations="meanfield.comparison.weights:deviations",
        reductions=declarations.REDUCTIONS,
        trials=({"particles.replicas": 16, "particles.dimension": 400},),
    )
