"""Averages of expectations over the stationary law of the fast chain, by many chains that go along with the overlaps.

Chains come in groups, each with overlaps of its own: by how much groups differ is the error of averages. At new
overlaps chains first take some steps for their law to follow, in units of the relaxation time, which is found from how
long they remember what moves overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.streams import stream_key
from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.order_parameters.averaging.fast_chain import Law, Sums, advance, no_sums
from meanfield.families.hidden_manifold.order_parameters.legs import Leg
from meanfield.families.hidden_manifold.order_parameters.rates import Fields, fields_at, rates_of_expectations
from meanfield.families.hidden_manifold.order_parameters.system import System, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.schedules.shapes import CHECKED_TIMES
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.numerics.exact_products import root
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray

GROUPS, CHAINS = 16, 8
"""Number of groups that are followed together, and of chains in each."""

STARTS = 8192
"""Number of fields at t = 0 in each group, where there are no steps yet to average over."""

FOLLOWING, AVERAGING = 4, 16
"""Relaxation times that chains take to follow the overlaps, which leaves 2 % of what the law changed by, and over which
they are averaged then."""

RECORDS = 32
"""Records during averaging, two per relaxation time, from which the next relaxation time is found."""

SLOWEST = 0.01
"""Least learning rate of chains, relative to the largest of a leg: on the way to 0 they would need ever more steps, and
their law tends to a limit, from which a hundredth of the rate is as far as a hundredth of its noise."""

LEAST_STRIDE = 32
"""Least number of samples between two records: a thousand samples of each chain, however fast it forgets."""

MOST_STEPS = 2**17
"""Number of steps of averaging after which a chain counts as one that does not come to rest."""


NO_VARIANCE = 1e-12
"""Variance of functions of order 1 that do not vary."""


class Averages(NamedTuple):
    """Averages over the stationary law at some overlaps.

    Parameters
    ----------
    rates : ndarray, shape (groups, n)
        dy/dt.
    errors : ndarray, shape (groups,)
        Generalisation error.
    speed : float
        Largest rate of relaxation of the overlaps, roughly.
    field_means : ndarray, shape (samples, components, students)
        Means of the student's fields.
    """

    rates: FloatArray
    errors: FloatArray
    speed: float
    field_means: FloatArray


class FastChains:
    """Groups of chains, with the streams of a batch.

    Parameters
    ----------
    problem : Problem
        Of the whole run.
    leg : Leg
        The first one.
    start : ndarray, shape (n,)
        State at t = 0, at which omega is normal, with the products Omega of the students' weights.
    batch : int
        Batches are independent.

    Attributes
    ----------
    largest : ndarray, shape (5,)
        Largest numbers of the training in the leg.
    relaxation : float
        Steps that chains remember, as the last averages showed it.
    """

    def __init__(self, problem: Problem, leg: Leg, start: FloatArray, batch: int) -> None:
        self._pieces, self._end = pieces_of(problem), problem.time.stop
        self._key = stream_key(problem.particles.seed)
        self._first_stream = batch * GROUPS * STARTS
        self._taken = 0
        times = np.linspace(0.0, self._end, CHECKED_TIMES)
        noisy = any(piece.problem.training.limits_at(times)[3].any() for piece in self._pieces)
        self._normals = problem.students + problem.teachers + noisy
        numbers = np.random.default_rng([problem.particles.seed, batch])
        normals = numbers.standard_normal((GROUPS, STARTS, problem.students))
        self._omega = normals @ root(unpacked(leg.system, start).Omega)
        self.relaxation = math.nan
        self._begin(leg)

    def _begin(self, leg: Leg) -> None:
        self._leg, self._system = leg, leg.system
        self._problem = next(each.problem for each in self._pieces if leg.start < each.stop)
        own, teacher = self._problem.student.activation_functions, self._problem.teacher.activation_functions
        self._student = own
        self._functions = np.array([*own.addresses, *teacher.addresses], dtype=np.int64)
        self._cumulated = np.cumsum(leg.system.chance)
        self._cumulated[-1] = 2.0  # no uniform number is above it, whatever rounding did to the sum
        times = np.linspace(leg.start, min(leg.stop, self._end), CHECKED_TIMES)
        self.largest = self.training_at(times).max(axis=1)
        self._batch_size = int(self.largest[2])
        self._stride = math.ceil(LEAST_STRIDE / self._batch_size)

    def training_at(self, times: FloatArray) -> FloatArray:
        """Training at some times of the leg, shape (5, times); at its end what it was until then."""
        before = np.clip(times, self._leg.start, np.nextafter(self._leg.stop, self._leg.start))
        return self._problem.training.limits_at(before)

    def enter(self, leg: Leg, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Go on to the next leg, with the fields of the last averages; see `settle`."""
        self._omega = self._path.swapaxes(1, 2).reshape(GROUPS, -1, leg.system.students)
        self._begin(leg)
        return self.settle(states)

    def settle(self, states: FloatArray, longest: int = MOST_STEPS) -> tuple[FloatArray, FloatArray]:
        """Generalisation errors and fields' means as a leg begins; then steps until averages are over many relaxations.

        Parameters
        ----------
        states : ndarray, shape (groups, n)
        longest : int
            Most steps between two records, for a trial: `relaxation` says how many there should be.

        Raises
        ------
        BlowUpError
            If chains run away or do not come to rest.
        """
        time = self._leg.start
        laws = [fields_at(self._system, y) for y in states]
        errors = np.empty(GROUPS)
        records = np.empty((GROUPS, 1, *self._omega.shape[1:]))
        # Eight samples or more for each of the fields at t = 0, and as many in all at other times.
        stride = math.ceil(8 * STARTS / self._omega.shape[1] / self._batch_size)
        for i, (sums, _) in enumerate(self._steps(time, laws, 0.0, stride, records)):
            errors[i] = 0.5 * self._system.chance @ (sums.square / sums.samples)
        self._omega, before = self._omega[:, :CHAINS].copy(), 0
        means = self._means(laws, records)
        while self._stride > before:
            before = self._stride
            self.averages(time, states)
            self._stride = min(self._stride, longest)
        return errors, means.reshape(-1, *means.shape[-2:])

    def averages(self, time: float, states: FloatArray) -> Averages:
        """Averages at the overlaps of each group, shape (groups, n).

        Raises
        ------
        BlowUpError
            If chains run away or do not come to rest.
        """
        system = self._system
        system.training[:] = self.training_at(np.array([time]))[:, 0]
        laws = [fields_at(self._system, y) for y in states]
        rates = np.empty(states.shape)
        errors = np.empty(GROUPS)
        speed = 0.0
        omegas = np.empty((GROUPS, RECORDS, *self._omega.shape[1:]))
        eta = max(float(system.training[0]), SLOWEST * self.largest[0])
        for _ in self._steps(time, laws, eta, self._stride * RECORDS * FOLLOWING // AVERAGING, omegas[:, :1]):
            pass
        for i, (sums, (C, m, u)) in enumerate(self._steps(time, laws, eta, self._stride, omegas)):
            A, H, G, D, squares = _expectations(sums, C, u)
            rates_of_expectations(system, states[i], C, m, A, H, G, D, rates[i])
            errors[i] = 0.5 * system.chance @ squares
            speed = max(speed, _speed(system, self.largest, A))
        means = self._means(laws, omegas)
        self._path = omegas
        if eta > 0.0:
            self._adapt(time, self._observables(laws, means))
        return Averages(rates, errors, speed, means.reshape(-1, *means.shape[-2:]))

    def _steps(
        self, time: float, laws: list[Fields], eta: float, stride: int, path: FloatArray
    ) -> Iterator[tuple[Sums, Fields]]:
        """Take steps of all groups, with a record of omega after each stride, and yield the sums of each group."""
        system = self._system
        for i, (C, m, u) in enumerate(laws):
            roots = np.array([root(covariance) for covariance in C])
            noise = math.sqrt(system.training[3])
            law = Law(
                self._functions, self._cumulated, system.constant, roots, m, u, eta, self._batch_size, noise,
                self._normals,
            )  # fmt: skip
            sums = no_sums(len(C), system.students, len(u))
            stream = self._first_stream + i * STARTS
            if not advance(law, self._key, stream, self._taken, stride, self._omega[i], path[i], sums):
                raise _runs_away(time)
            yield sums, laws[i]
        self._taken += stride * path.shape[1] * self._batch_size

    def _means(self, laws: list[Fields], omegas: FloatArray) -> FloatArray:
        """Means of the student's fields, shape (groups, records, chains, components, students)."""
        means = np.array([m[:, : self._system.students] for _, m, _ in laws])
        return means[:, None, None] + self._system.constant[:, None] * omegas[..., None, :]

    def _adapt(self, time: float, seen: FloatArray) -> None:
        """Choose the next stride by how long chains remember, from observables, shape (groups, records, chains, n)."""
        seen = seen - seen.mean(axis=(0, 1, 2))
        variance = (seen**2).mean(axis=(0, 1, 2))
        varies = variance > NO_VARIANCE
        relaxation = 0.0
        for lag in range(1, RECORDS // 2 + 1):
            products = (seen[:, :-lag] * seen[:, lag:]).mean(axis=(0, 1, 2))
            correlation = float((products[varies] / variance[varies]).max(initial=0.0))
            if lag > 1 and correlation < 0.2:  # noise is far below
                break
            relaxation = lag * self._stride / -math.log(min(max(correlation, 1e-3), 1.0 - 1e-3))
        self.relaxation = relaxation
        least = math.ceil(LEAST_STRIDE / self._batch_size)
        self._stride = max(math.ceil(relaxation * AVERAGING / RECORDS), least)
        if self._stride * RECORDS > MOST_STEPS:
            raise BlowUpError(
                time,
                f"the means of the fields do not come to rest within {MOST_STEPS:,} steps of SGD, so that there is no "
                "law of them to average over",
                "set inputs.centered to true, change training.learning_rate, or solve by particles",
            )

    def _observables(self, laws: list[Fields], means: FloatArray) -> FloatArray:
        """Functions of the fields' means that chains have to forget: the student's output, and the means themselves.

        Where fields and their negatives are alike, chains may keep signs for ever, and nothing depends on them: sizes
        count. Of linear units the output alone is felt.
        """
        mean = means[..., np.argmax(np.abs(self._system.constant)), :]
        value, slope = (evaluate(function, mean) for function in (self._student.value, self._student.slope))
        v = np.array([u[: mean.shape[-1]] for _, _, u in laws])
        output = np.einsum("gsck,gk->gsc", value, v)[..., None]
        if slope.std() <= NO_VARIANCE:
            return np.asarray(output)
        alike = not any(m.any() for _, m, _ in laws) and np.array_equal(evaluate(self._student.value, -mean), -value)
        return np.concatenate([output, np.abs(mean) if alike else mean], axis=-1)


def _runs_away(time: float) -> BlowUpError:
    return BlowUpError(
        time,
        "steps of SGD along the mean of inputs overshoot, and the means of the fields grow without limit",
        "lower training.learning_rate, or set inputs.centered to true",
    )


def _expectations(sums: Sums, C: FloatArray, u: FloatArray) -> tuple[FloatArray, ...]:
    """A, H, G, D and E[Delta^2] in each component (hidden_manifold.md, section 2)."""
    K = sums.force.shape[1]
    slopes, noise, force, moment, output, square = (
        part / sums.samples.reshape(-1, *[1] * (part.ndim - 1))
        for part in (sums.slopes, sums.noise, sums.force, sums.moment, sums.output, sums.square)
    )
    v = u[:K]
    A = v[:, None] * u * slopes
    variance = np.einsum("qkk->qk", C)[:, :K]
    left = moment - np.einsum("a,qka,qka->qk", u, C[:, :K], slopes)  # Stein's lemma in place of a second derivative
    curvature = np.divide(left, variance, out=np.zeros(left.shape), where=variance > 0.0)
    A[:, range(K), range(K)] += v * curvature
    return A, v[:, None] * v * noise, v * force, output, square


def _speed(system: System, training: FloatArray, A: FloatArray) -> float:
    """Largest rate at which students relax along an eigenvector."""
    K, (eta, eta_v, _, _, weight_decay) = system.students, training
    along = system.rest[:, None] * system.aspect_ratio + system.slope[:, None] ** 2 * system.rho
    size = np.abs(A[:, :, :K]).sum(axis=2).max(axis=1)
    own = eta / system.aspect_ratio * (system.chance * size @ along).max()
    return float(own + eta_v + eta * weight_decay)
