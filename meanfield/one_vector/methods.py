"""Methods of all problems in which one vector is trained: density, order parameters, SGD."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.ensembles.arrays import Array, Record, identity_of
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation
from meanfield.ensembles.stepper import PythonStepper, replica_generator
from meanfield.mckean_vlasov.density.solver import density_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import check_linear, order_parameters_of
from meanfield.one_vector.problem import VectorProblem
from meanfield.one_vector.start import orthogonal_columns, weights_with_overlap
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


def limit_of(problem: VectorProblem) -> Limit:
    """Limit of a problem as N grows, with the coefficients that its `closure` gives."""
    return Limit.of(problem, problem.closure(), problem.start)


@solver
def solve_density(problem: VectorProblem) -> Solved:
    """Density of weights given the components of the direction."""
    return density_of(limit_of(problem), problem.density, problem.particles.dimension)


def check_order_parameters(problem: VectorProblem) -> None:
    """Refuse priors under which the overlap obeys no differential equation.

    Raises
    ------
    InputError
    """
    check_linear(problem.prior, "the density or SGD")


@solver
def solve_order_parameters(problem: VectorProblem) -> Solved:
    """Overlap in time, where the prior is linear."""
    check_order_parameters(problem)
    return order_parameters_of(limit_of(problem))


class Replicas(PythonStepper):
    """SGD by the `step` of the problem, with the prior and the return to |w|^2 = N.

    Parameters
    ----------
    problem : VectorProblem
    replicas : range
    """

    kept = ("w", "rngs")

    def __init__(self, problem: VectorProblem, replicas: range) -> None:
        super().__init__(replicas)
        self.problem, N = problem, problem.particles.dimension
        self.rngs = [replica_generator(problem.particles.seed, replica) for replica in replicas]
        self.U = np.stack([orthogonal_columns(problem.coordinates, N, rng) for rng in self.rngs])
        starts = zip(self.U, self.rngs, strict=True)
        draw = problem.initial_residual.sample
        self.w = np.stack([weights_with_overlap(U, problem.start, draw(rng, len(U))) for U, rng in starts])

    def step(self, k: int) -> None:
        """See `PythonStepper.step`."""
        pull = self.problem.model.learning_rate / self.w.shape[1] * self.problem.prior.force(self.w)
        for i, rng in enumerate(self.rngs):
            w = self.problem.step(self.w[i], self.U[i, :, 0], rng) - pull[i]
            self.w[i] = w * np.sqrt(len(w) / (w @ w))

    @property
    def rows(self) -> dict[str, FloatArray]:
        """See `Stepper.rows`."""
        q = np.einsum("rik,ri->rk", self.U, self.w) / self.w.shape[1]
        return {"q": q, "r": (self.w * self.problem.prior.force(self.w)).mean(axis=1)}

    @property
    def snapshot(self) -> dict[str, Array]:
        """See `Stepper.snapshot`."""
        return {"weights": self.w, "U": self.U}


def simulation_of(problem: VectorProblem) -> Simulation:
    """Simulation that a problem describes.

    Raises
    ------
    InputError
        If a step of the prior is longer than a weight.
    """
    N = problem.particles.dimension
    problem.prior.check_pull(N, problem.model.learning_rate)
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        rows={"q": (1,), "r": ()},
        snapshots={"weights": (N,)},
        constants={"U": (N, 1)},
        quantiles=("q",),
        working_set=8 * 8 * N,  # bytes of some eight vectors of doubles
    )


@solver
def simulate_sgd(problem: VectorProblem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of SGD at finite N."""
    return run_ensemble(simulation_of(problem), lambda: partial(Replicas, problem), workers, record)
