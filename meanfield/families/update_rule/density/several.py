"""Density of several students of an update rule: of two on cells, of any number by particles of their limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.density.averages import INSTEAD, By, along_its_path, observed
from meanfield.families.update_rule.density.limit import SLOWER
from meanfield.families.update_rule.initial_state import with_errors_of_start
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE
from meanfield.families.update_rule.particles.constraints import CONSTRAINTS, constrain
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rates import State, normalisation, packed
from meanfield.mckean_vlasov.density.settings import PLANE_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.drive import STRENGTH, reference_of
from meanfield.problems.phases import piece_at
from meanfield.results.initial_state import seed_of
from meanfield.results.solved import Solved
from meanfield.several_vectors.choice import solved_by_scheme
from meanfield.several_vectors.declarations import OF_BOTH_WEIGHTS
from meanfield.several_vectors.densities import settings_of, solve_on_cells
from meanfield.several_vectors.limit import JointLimit, Motion, Words
from meanfield.several_vectors.particle_search import effort_of, particle_arrays, search_particles
from meanfield.several_vectors.plan import stiffest_rate
from meanfield.several_vectors.sample import RUNS, SINGULAR
from meanfield.typing import FloatArray

WORDS = Words("student", ("R", "Q"), "Q - R R^T", SLOWER)

MOST_FEATURES = 2
"""Largest number of features of a density on cells: each node has a plane of them."""

NAMES = {"q": "R", "M": "Q", "q_error": "R_error", "M_error": "Q_error"}
"""Names that update rules give to variables of densities."""

LEFT_OUT = ("norm",)
"""Variables of densities that results lack: Q has it."""

NO_SIDE = np.empty(0)
"""Side variables, of which there are none."""


class StudentMotion:
    """Motion of the weights of several students from one corner of a schedule or end of a phase to the next.

    Parameters
    ----------
    equations : Equations
    rules : Rules
    number : int
        Of the stretch of time.

    Attributes
    ----------
    start, prior
        See `Stretch`.
    """

    def __init__(self, equations: Equations, rules: Rules, number: int) -> None:
        self._stretch, self._averages = equations.stretches[number], equations.averages(number, rules)
        self._features = self._stretch.system.features
        self.start = float(self._stretch.times[0])
        self.prior = reference_of(piece_at(equations.problem, self.start).problem, (STRENGTH,)).prior

    def pull_at(self, time: float) -> float:
        """See `Stretch.pull_at`."""
        if self.prior.name == "none":
            return 0.0
        return float(self._stretch.at(time).prior.strength) / self.prior.strength

    def motion(self, time: float, q: FloatArray, M: FloatArray, work: FloatArray) -> Motion:
        """See `Stretch.motion`; source: update_rules.md, eq-rule-sde and section 4."""
        found, G = self._averages(time, packed(State(q.T, M, NO_SIDE)))
        # Where students are equal, the gains of least size: others act alike.
        gains = np.linalg.pinv(G, rcond=SINGULAR, hermitian=True) @ found.E + found.B
        moved = (found.E + G @ found.B)[self._features :] - self.pull_at(time) * work
        back = normalisation(self._stretch.system.constraints, moved + moved.T + found.Lambda, M)
        return Motion(gains[: self._features].T, (gains[self._features :] - back).T, found.Lambda)

    def noise_at(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """See `Stretch.noise_at`."""
        middle = 0.5 * float(self._stretch.times[0] + self._stretch.times[-1])
        return self._averages(middle, packed(State(q.T, M, NO_SIDE)))[0].Lambda

    def fastest(self, q: FloatArray, M: FloatArray) -> float:
        """Largest rate at overlaps at some times, with that of the prior where weights are twice their length."""
        length = 2.0 * float(np.sqrt(np.diag(M).max()))
        of_prior = float(np.abs(self.prior.force(np.array([length])))[0]) / length
        motions = [
            self.motion(t, q, M, np.zeros_like(M)) for t in np.linspace(self.start, float(self._stretch.times[-1]), 3)
        ]
        spread = np.linalg.pinv(M - q.T @ q, rcond=SINGULAR, hermitian=True)
        return of_prior + max(
            float(np.abs(np.concatenate([each.of_features, each.of_weights], axis=1)).max())
            + 0.5 * float(np.abs(spread @ each.noise).max())
            for each in motions
        )


def solve_several(problem: Problem) -> Solved:
    """Density of several students by the scheme of the settings; see `solve_density`."""
    settings = problem.density or DensitySettings(scheme="automatic")

    def on_cells() -> Solved:
        fitting = settings_of(settings)
        return _solved(problem, fitting.tolerance or PLANE_TOLERANCE, partial(_on_cells, settings=fitting))

    def by_particles(tolerance: float) -> Solved:
        return _solved(problem, tolerance, partial(_by_particles, tolerance=tolerance))

    return solved_by_scheme(problem, settings, partial(why_no_cells, problem), on_cells, by_particles)


def check_several(problem: Problem) -> None:
    """Refuse settings that are for one student, and problems that given cells are not for."""
    settings, K = problem.density, len(problem.students)
    if problem.data.spectrum is not None:
        raise InputError(
            f"data.spectrum with {K} students: densities of several are solved for noise of one variance; remove the "
            f"table, or {INSTEAD}"
        )
    if settings is None:
        return
    if settings.scheme in ("lagrangian", "eulerian"):
        raise InputError(
            f"density.scheme = '{settings.scheme}' with {K} students: it is for a single one; leave the key out"
        )
    if settings.half_width is not None:
        raise InputError(
            f"density.half_width = {settings.half_width:g} with {K} students: cells follow the weights; remove it"
        )
    reason = why_no_cells(problem) if settings.scheme == "finite_volumes" else ""
    if reason:
        raise InputError(
            f"density.scheme = 'finite_volumes': {reason}; set density.scheme = \"particles\", or leave the key out"
        )


def why_no_cells(problem: Problem) -> str:
    """Why finite volumes do not serve for a problem, known before a run; empty where they do."""
    K, M = len(problem.students), len(problem.features)
    if K > 2:
        return f"there are {K} students, and cells are for two"
    return f"there are {M} features, and cells are for {MOST_FEATURES} at most" if M > MOST_FEATURES else ""


def _solved(problem: Problem, tolerance: float, solve: Callable[[JointLimit, JointLimit], Solved]) -> Solved:
    """Density with coefficients that are as accurate as its own path needs, under the names that results have."""

    def with_averages(by: By[Equations], coarser: By[Equations]) -> tuple[Solved, FloatArray]:
        limit = joint_limit_of(*by)
        solved = solve(limit, joint_limit_of(*coarser))
        arrays = {NAMES.get(name, name): values for name, values in solved.arrays.items() if name not in LEFT_OUT}
        arrays |= {name: arrays[name].swapaxes(1, 2) for name in ("R", "R_error") if name in arrays}
        pulls = np.array([limit.stretch_at(time).pull_at(time) for time in limit.times])
        arrays |= {name: pulls[:, None] * arrays[name] for name in ("r", "r_error") if name in arrays}
        arrays["Lambda"] = _noise_along(limit, arrays["R"], arrays["Q"])
        return replace(solved, arrays=arrays), _packed(arrays)

    by, solved = along_its_path(Equations(problem), AVERAGE_SHARE * tolerance, with_averages)
    errors = _packed(solved.arrays, "_error") if "R_error" in solved.arrays else None
    more = observed(by, _packed(solved.arrays), errors, np.asarray)
    return replace(solved, arrays=with_errors_of_start(problem, solved.arrays | more) | problem.names)


def _packed(arrays: dict[str, FloatArray], end: str = "") -> FloatArray:
    """R and Q at output times as packed states, shape (outputs, numbers), or their errors."""
    pairs = zip(arrays[f"R{end}"], arrays[f"Q{end}"], strict=True)
    return np.array([packed(State(R, Q, NO_SIDE)) for R, Q in pairs])


def _noise_along(limit: JointLimit, R: FloatArray, Q: FloatArray) -> FloatArray:
    """Lambda at the output times, shape (outputs, students, students); NaN at those that were not reached."""
    found = np.full(Q.shape, np.nan)
    for row in np.flatnonzero(np.isfinite(Q).all(axis=(1, 2))):
        time = float(limit.times[row])
        found[row] = limit.stretch_at(time).motion(time, R[row].T, Q[row], np.zeros_like(Q[row])).noise
    return found


def _on_cells(limit: JointLimit, compared: JointLimit, settings: DensitySettings) -> Solved:
    solution = solve_on_cells(limit, settings, compared)
    alone = {name: values for name, values in solution.arrays.items() if name not in OF_BOTH_WEIGHTS}
    return Solved("density", alone | _largest(alone), solution.status, effort=solution.effort)


def _largest(arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Largest error of R, Q and r, of r relative to its size if above 1, in the place of all that are not exact.

    Entries of two extrapolations may agree by chance, of students that see nothing of each other most of all.
    """
    if "q_error" not in arrays:
        return {}
    sizes = {"q_error": np.ones(1), "M_error": np.ones(1), "r_error": np.maximum(1.0, np.abs(arrays["r"]))}
    largest = np.max([(arrays[name] / size).max() for name, size in sizes.items()])
    return {name: np.where(arrays[name] == 0.0, 0.0, largest * size) for name, size in sizes.items()}


def _by_particles(limit: JointLimit, compared: JointLimit, tolerance: float) -> Solved:
    found = search_particles([limit] * RUNS, tolerance, compared)
    return Solved("limit_particles", particle_arrays(limit, found), found.status, effort=effort_of(limit, found))


def joint_limit_of(equations: Equations, rules: Rules) -> JointLimit:
    """Limit of several students with some rules of quadrature."""
    problem = equations.problem
    stretches = [StudentMotion(equations, rules, number) for number in range(len(equations.stretches))]
    later = tuple(stretch.start for stretch in stretches[1:])
    free = np.concatenate([np.full(len(group), name == "none") for name, group in problem.constraints])
    return JointLimit(
        stretches=stretches,
        coordinates=problem.coordinates,
        initial_q=problem.initial_R.T,
        initial_M=problem.initial_Q,
        lengths=np.where(free, np.nan, np.sqrt(np.diag(problem.initial_Q))),
        times=problem.time.outputs_at,
        rates=partial(_rates, problem, stretches),
        words=WORDS,
        seed=seed_of(problem),
        snapshots=problem.particles.snapshot_index(problem.time),
        corners=later,
        starts=later,
        back=_back_of(problem),
    )


def _back_of(problem: Problem) -> Callable[[FloatArray], FloatArray] | None:
    """Matrices with which students are normalised, where constraints mix them; see `JointLimit.back`."""
    names, groups = zip(*problem.constraints, strict=True)
    if not {"gram_schmidt", "polar"} & set(names):
        return None
    codes = np.array([CONSTRAINTS[name] for name in names])
    ends, lengths = np.array([0, *(group.stop for group in groups)]), np.diag(problem.initial_Q).copy()

    def back(Q: FloatArray) -> FloatArray:
        A = np.empty_like(Q)
        constrain(codes, ends, lengths, Q.copy(), np.empty_like(Q), A)
        return A

    return back


def _rates(problem: Problem, stretches: list[StudentMotion]) -> tuple[float, float]:
    """See `JointLimit.rates`: at the start, and where each student has learnt a feature."""
    R, Q = problem.initial_R, problem.initial_Q
    students, learnt = np.arange(len(R)), np.zeros(R.shape)
    norms = np.diag(Q)
    learnt[students, students % R.shape[1]] = 0.9 * np.sqrt(norms)
    states = [(R.T, Q), (learnt.T, learnt @ learnt.T + (1.0 - 0.9**2) * np.diag(norms))]
    fastest = max(stretch.fastest(*state) for stretch in stretches for state in states)
    return fastest, max(stiffest_rate(stretch.prior) for stretch in stretches)
