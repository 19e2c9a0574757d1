"""Steppers of hidden-manifold SGD, one class for each kind of step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from meanfield.ensembles.arrays import Array, State
from meanfield.ensembles.averages import averaging
from meanfield.ensembles.ensemble import MakeStepper
from meanfield.ensembles.phases import Phased
from meanfield.ensembles.stepper import Stepper, replica_generator
from meanfield.ensembles.streams import stream_key
from meanfield.families.hidden_manifold.particles.chain import chain_steps
from meanfield.families.hidden_manifold.particles.eigenspaces import covariates_of, draw_gram, spaces_of
from meanfield.families.hidden_manifold.particles.fresh_samples import FreshSamples, draw_fresh, measured_errors
from meanfield.families.hidden_manifold.particles.latents import mixture_of
from meanfield.families.hidden_manifold.particles.measurement import (
    Fields,
    Overlaps,
    fields_of,
    gaussian_errors,
    rows_of,
)
from meanfield.families.hidden_manifold.particles.networks import (
    STEPS_AT_ONCE,
    Networks,
    count_samples,
    networks_of,
    numbers_of_steps,
)
from meanfield.families.hidden_manifold.particles.plain import inputs_of, plain_steps
from meanfield.families.hidden_manifold.particles.start import (
    gaussian_means,
    mean_coefficients,
)
from meanfield.families.hidden_manifold.particles.uneven_inputs import (
    OwnMoments,
    own_moments,
    standardisation,
)
from meanfield.families.hidden_manifold.particles.vectors import eigenvectors_of, vectors_of
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.variables import AVERAGE_ROWS
from meanfield.numerics.compiled.matrix_products import unpack
from meanfield.problems.base import schedules_of
from meanfield.problems.phases import pieces_of
from meanfield.results.initial_state import seed_of
from meanfield.typing import FloatArray


class InTime(Stepper):
    """Replicas of a problem whose numbers of training may change from step to step."""

    def __init__(self, problem: Problem, replicas: range) -> None:
        super().__init__(replicas)
        self._problem = problem
        self._key = stream_key(seed_of(problem))
        self._networks = networks_of(problem)
        self._changes = bool(schedules_of(problem))
        self._sampled = 0, 0

    def advance(self, first: int, steps: int) -> None:
        """See `Stepper.advance`."""
        end, networks = first + steps, self._networks
        for step in range(first, end, STEPS_AT_ONCE if self._changes else steps):
            if self.reached.max() < step:
                return
            last = min(step + STEPS_AT_ONCE, end) if self._changes else end
            if self._changes:
                numbers = numbers_of_steps(self._problem, np.arange(step, last))
                networks = networks._replace(steps=numbers, first=step)
            start = self._samples_before(step)
            self.take(networks, step, start, self._samples_before(last))

    def _samples_before(self, step: int) -> int:
        """Number of samples of all steps before one; after a restart they are counted anew."""
        known, samples = self._sampled if self._sampled[0] <= step else (0, 0)
        self._sampled = step, samples + count_samples(self._problem, known, step)
        return self._sampled[1]

    def enter_phase(self, number: int) -> None:
        """Draw from the streams of a phase, from its first step on."""
        self._key = stream_key(seed_of(self._problem), number)

    @abstractmethod
    def take(self, networks: Networks, first: int, start: int, stop: int) -> None:
        """Take steps from `first` on with the samples from `start` to `stop` - 1."""


class Plain(InTime):
    """Replica with its features and weights (see `meanfield.families.hidden_manifold.particles.plain`)."""

    kept = ("_W", "_v", "_velocity")

    def __init__(self, problem: Problem, replicas: range) -> None:
        super().__init__(problem, replicas)
        (self._replica,) = replicas
        F, self._blocks, self._teacher, directions, W, v = vectors_of(problem, self._replica)
        (D, N), columns = F.shape, np.hstack([self._teacher, directions])
        self._mean = mean_coefficients(problem) @ columns.T / np.sqrt(D)
        self._gaussian_means = gaussian_means(problem) @ columns.T / D
        self._W, self._v = np.array(W, order="C"), np.array(v)  # which steps change in place
        self._velocity = np.zeros((problem.students, N + 1 if problem.training.remembers else 0))
        self._mixture = mixture_of(problem, self._mean)
        self._own = own_moments(problem, self._mixture, F) if problem.inputs.is_uneven else None
        self._inputs = inputs_of(problem, F, *standardisation(problem, self._own))
        self._factors = np.ascontiguousarray(self._teacher.T / np.sqrt(D))

    def take(self, networks: Networks, first: int, start: int, stop: int) -> None:
        """See `InTime.take`."""
        self.reached[0] = plain_steps(
            networks, self._inputs, self._mixture, self._factors, self._key, self._replica, first, start, stop,
            self._W, self._v, self._velocity,
        )  # fmt: skip

    def restore(self, state: State) -> None:
        """See `Stepper.restore`; a phase with momentum begins at rest after one without."""
        at_rest = self._velocity
        super().restore(state)
        if self._velocity.shape != at_rest.shape:
            self._velocity = at_rest

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        return self._rows_of(self._W, self._v)

    @property
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`: W with v beside it, shape (1, students, N + 1)."""
        return np.column_stack([self._W, self._v])[None]

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`."""
        W, v = np.ascontiguousarray(average[0, :, :-1]), average[0, :, -1]
        rows = {f"{name}_average": row for name, row in self._rows_of(W, v).items()}
        rows["generalisation_error_average_error"] = rows.pop("generalisation_error_error_average")
        rows["overlap_average"] = (self._W @ W.T / W.shape[1])[None]
        return {name: rows[name] for name in AVERAGE_ROWS}

    def _rows_of(self, W: FloatArray, v: FloatArray) -> Mapping[str, FloatArray]:
        """Order parameters of a student, and its generalisation error."""
        problem = self._problem
        S = self._seen(W)
        N, D = W.shape[1], len(self._teacher)
        mean = S @ self._gaussian_means.T
        constant = W.sum(axis=1) / np.sqrt(N)
        each = (W @ W.T / N, S @ S.T / D, S @ self._teacher / D, mean, constant, v)
        overlaps = Overlaps(*(array[None] for array in each))
        fields = fields_of(problem, overlaps) if self._own is None else self._uneven_fields(W, self._own)
        rows = rows_of(problem, overlaps, fields)
        return {**rows, **measured_errors(problem, self._fresh, W, v)}

    @property
    def snapshot(self) -> Mapping[str, Array]:
        """See `Stepper.snapshot`: components along eigenvectors of F F^T/N."""
        rho, vectors = self._eigenvectors
        S, teacher = self._seen(self._W), self._teacher
        if vectors is not None:
            S, teacher = S @ vectors, vectors.T @ teacher
        return {"S": S[None], "teacher_components": teacher[None], "rho_of_coordinate": rho[None]}

    @cached_property
    def _fresh(self) -> FreshSamples:
        return draw_fresh(self._problem, self._inputs, self._mixture, self._factors, self._key, self._replica)

    @cached_property
    def _eigenvectors(self) -> tuple[FloatArray, FloatArray | None]:
        """Eigenvalues of F F^T/N, and eigenvectors in columns; None if these are the axes."""
        N, D = self._W.shape[1], len(self._teacher)
        F = unpack(self._inputs.panels, N)  # divided by sqrt(D)
        return eigenvectors_of(F, D / N, self._blocks)

    def _uneven_fields(self, W: FloatArray, own: Sequence[OwnMoments]) -> Fields:
        """Law of the fields of weights and inputs whose means differ, in each of the Gaussians that latents are."""
        N, D = W.shape[1], len(self._teacher)
        shift, factor = self._inputs.shift, self._inputs.factor
        Q, R, mean, teacher_mean = [], [], [], []
        for latent, moments in own:
            noise = factor**2 * (moments.square - moments.mean**2 - moments.slope**2)
            S = self._seen(W * (factor * moments.slope)) / latent.deviation
            seen = S * latent.variance
            Q.append((W * noise) @ W.T / N + seen @ S.T / D)
            R.append(seen @ self._teacher / D)
            mean.append(W @ (factor * (moments.mean - shift)) / np.sqrt(N))
            teacher_mean.append(latent.mean @ self._teacher / np.sqrt(D))
        return Fields(*(np.array(values)[None] for values in (Q, R, mean, teacher_mean)))

    def _seen(self, W: FloatArray) -> FloatArray:
        """W F^T/sqrt(N), shape (students, D)."""
        panels, N = self._inputs.panels, W.shape[1]
        padded = np.zeros((len(W), panels.shape[0] * panels.shape[2]))
        padded[:, :N] = W
        several = padded.reshape(len(W), panels.shape[0], -1).transpose(1, 2, 0)
        products = np.matmul(panels, several).sum(axis=0).T  # with F/sqrt(D)
        return np.asarray(products * np.sqrt(panels.shape[1] / N))


class Chain(InTime):
    """Replicas by their Gram matrices alone (see `meanfield.families.hidden_manifold.particles.chain`)."""

    kept = ("_gram", "_v")

    def __init__(self, problem: Problem, replicas: range) -> None:
        super().__init__(problem, replicas)
        self._spaces = spaces_of(problem)
        self._covariates = covariates_of(problem, self._spaces)
        generators = [replica_generator(problem.particles.seed, replica) for replica in replicas]
        self._gram = np.stack([draw_gram(problem, self._spaces, rng) for rng in generators])
        self._v = np.tile(np.array(problem.student.output_weights, dtype=float), (len(replicas), 1))

    def take(self, networks: Networks, first: int, start: int, stop: int) -> None:
        """See `InTime.take`."""
        chain_steps(
            networks, self._covariates, self._key, self.replicas.start, first, start, stop, self._gram, self._v,
            self.reached,
        )  # fmt: skip

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        problem = self._problem
        K = self._problem.students
        N = self._covariates.inputs
        D, rho = self._covariates.latents, self._spaces.rho
        Omega = self._gram[:, :, :K, :K].sum(axis=1) / N
        Sigma = np.einsum("j,rjkl->rkl", rho / D, self._gram[:, :, :K, :K])
        others = np.einsum("j,rjkm->rkm", np.sqrt(rho) / D, self._gram[:, :, :K, K:])
        mean = others @ gaussian_means(problem).T
        constant = np.zeros(self._v.shape)
        overlaps = Overlaps(Omega, Sigma, others[:, :, : problem.teachers], mean, constant, self._v)
        fields = fields_of(problem, overlaps)
        return {**rows_of(problem, overlaps, fields), **gaussian_errors(problem, self._v, fields)}


STEPPERS: dict[str, type[Plain] | type[Chain]] = {"plain": Plain, "chain": Chain}
"""Classes of steppers by their names in problem files."""


def prepare_steppers(problem: Problem, method: str) -> MakeStepper:
    """Function that makes steppers by one of `STEPPERS`, of all phases."""
    pieces = pieces_of(problem)
    a, N = problem.training.average_rate, problem.particles.dimension
    makers = [
        averaging(a, N, partial(_of_phase, STEPPERS[method], piece.problem, number))
        for number, piece in enumerate(pieces)
    ]
    if len(makers) == 1:
        return makers[0]
    return partial(Phased, makers, [round(piece.stop * N) for piece in pieces])


def _of_phase(kind: type[Plain] | type[Chain], problem: Problem, number: int, replicas: range) -> InTime:
    """Stepper with the streams of a phase."""
    stepper = kind(problem, replicas)
    stepper.enter_phase(number)
    return stepper
