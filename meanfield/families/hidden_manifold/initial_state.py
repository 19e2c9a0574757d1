"""Start from order parameters at the nodes of a result, from its runs of SGD, or from matrices in arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.results import initial_state
from meanfield.results.initial_state import Moment
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.families.hidden_manifold.problem import Problem

ROUNDING = 1e-9
"""Largest difference of numbers of a file and a problem that are the same."""

ERRORS = ("Q_error", "R_error", "v_error", "generalisation_error_error")


class OwnStart(NamedTuple):
    """Start of runs along the eigenvectors of their features.

    Parameters
    ----------
    rho : ndarray, shape (D,)
        Eigenvalues of F F^T/N, of several runs one after the other.
    students : ndarray, shape (D, students)
        Coordinates of S = W F^T/sqrt(N).
    teacher : ndarray, shape (D, teachers)
        Coordinates of the teacher's vectors.
    Omega : ndarray, shape (students, students)
        W W^T/N.
    v : ndarray, shape (students,)
        Second layer.
    """

    rho: FloatArray
    students: FloatArray
    teacher: FloatArray
    Omega: FloatArray
    v: FloatArray

    @classmethod
    def of_matrices(cls, F: FloatArray, W: FloatArray, Wt: FloatArray, v: FloatArray) -> OwnStart:
        """Start of matrices as `meanfield.hidden_manifold.solve_from_weights` takes them.

        Raises
        ------
        InputError
            If eigenvalues of F F^T/N have no mean near 1.
        """
        N = F.shape[1]
        rho, axes = np.linalg.eigh(F @ F.T / N)
        if abs(rho.mean() - 1.0) > 0.2:  # chance explains less
            raise InputError(
                f"features: the eigenvalues of F F^T/N have the mean {rho.mean():.3g}, but columns of F have the "
                "length sqrt(D), and it is about 1; divide F by its root"
            )
        return cls(np.maximum(rho, 0.0), (W @ F.T @ axes).T / np.sqrt(N), (Wt @ axes).T, W @ W.T / N, v)

    @classmethod
    def mean_of(cls, runs: Sequence[OwnStart]) -> OwnStart:
        """Start with the mean order parameters of several runs: what adds up over eigenvectors does over runs."""
        rho, students, teacher, Omega, v = zip(*runs, strict=True)
        means = np.mean(Omega, axis=0), np.mean(v, axis=0)
        return cls(np.concatenate(rho), np.concatenate(students), np.concatenate(teacher), *means)


class Matrices(NamedTuple):
    """Features F, shape (D, N), weights W, (students, N), the teacher Wt, (teachers, D), and v, (students,)."""

    F: FloatArray
    W: FloatArray
    Wt: FloatArray
    v: FloatArray


class AtNodes(NamedTuple):
    """Order parameters at nodes of the spectrum.

    Parameters
    ----------
    rho : ndarray, shape (nodes,)
    r : ndarray, shape (nodes, students, teachers)
    sigma : ndarray, shape (nodes, students, students)
    Omega : ndarray, shape (students, students)
    v : ndarray, shape (students,)
    T : ndarray, shape (teachers, teachers)
    errors : mapping of str to ndarray
        Those that the result states, such as `Q_error`.
    """

    rho: FloatArray
    r: FloatArray
    sigma: FloatArray
    Omega: FloatArray
    v: FloatArray
    T: FloatArray
    errors: Mapping[str, FloatArray]


class State(NamedTuple):
    """What a file holds of a start: one of three.

    Parameters
    ----------
    at_nodes : AtNodes, optional
        Of order parameters.
    own : tuple of OwnStart
        Of each run of SGD, or of matrices.
    matrices : Matrices, optional
    dimension : int
        N of runs or matrices; 0 of order parameters.
    seed : int, optional
        By which the features of runs were drawn; None if another file has them.
    """

    at_nodes: AtNodes | None = None
    own: tuple[OwnStart, ...] = ()
    matrices: Matrices | None = None
    dimension: int = 0
    seed: int | None = None

    @property
    def runs(self) -> int:
        """See `meanfield.results.initial_state.State.runs`."""
        return max(len(self.own), 1)


class InitialState(initial_state.InitialState):
    """Start from a file: `from` names a result (.nc), or arrays `features`, `weights`, `teacher`, `output_weights`."""

    family: ClassVar[str] = "hidden_manifold"
    arrays: ClassVar[Mapping[str, str]] = {"features": "F", "weights": "W", "teacher": "Wt"}
    further_arrays: ClassVar[tuple[str, ...]] = ("output_weights",)
    kept_at_snapshots: ClassVar[str] = "S"
    wanted: ClassVar[str] = "order parameters, or runs of SGD with particles.snapshots of weights"

    @property
    def atoms(self) -> State:
        """See `meanfield.results.initial_state.InitialState.atoms`."""
        state: State = super().atoms
        return state

    def of_result(self, moment: Moment) -> State:
        """See `meanfield.results.initial_state.InitialState.of_result`."""
        problem, held = moment.result.problem, moment.held
        if "S" in held:
            moment.runs_of("S")  # refuses runs that had ended by then
            own = tuple(own_start_of(moment.result.dataset, moment.time, run) for run in range(held.sizes["replica"]))
            seed = problem.particles.seed if problem.initial is None else None
            return State(own=own, dimension=problem.particles.dimension, seed=seed)
        r = moment.runs_of("r", "rho", "student", "teacher")[0]
        sigma, Omega = (moment.runs_of(name, "student", "student_")[0] for name in ("sigma", "Omega"))
        errors = {name: held[name].values for name in ERRORS if name in held}
        rho, T = held["rho"].values, held["T"].transpose("teacher", "teacher_").values
        return State(AtNodes(rho, r, sigma, Omega, moment.runs_of("v")[0], T, errors))

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """See `meanfield.results.initial_state.InitialState.of_arrays`."""
        F, W, Wt, v = (given.get(name, np.empty(0)) for name in (*self.arrays, *self.further_arrays))
        if "output_weights" not in given:
            v = np.full(len(np.atleast_1d(W)), np.nan)  # that of the problem
        shapes = {name: values.shape for name, values in given.items()}
        fits = F.ndim == W.ndim == Wt.ndim == 2 and W.shape[1:] == F.shape[1:] and Wt.shape[1:] == F.shape[:1]
        if not fits or v.shape != W.shape[:1]:
            raise InputError(
                f"{path}: has the shapes {shapes}; give features (D, N), weights (students, N), teacher (teachers, D) "
                "and, if they are not those of the problem, output_weights (students,)"
            )
        try:
            own = OwnStart.of_matrices(F, W, Wt, v)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        return State(own=(own,), matrices=Matrices(F, W, Wt, v), dimension=F.shape[1])

    def check_fits(self, problem: Problem) -> None:
        """See `meanfield.results.initial_state.InitialState.check_fits`."""
        state = self.atoms
        nodes, own = state.at_nodes, state.own
        students, teachers = (len(nodes.v), len(nodes.T)) if nodes else (len(own[0].v), own[0].teacher.shape[1])
        for what, found, wanted in (("student", students, problem.students), ("teacher", teachers, problem.teachers)):
            if found != wanted:
                raise ValueError(
                    f"initial.from: has {found} unit(s) of the {what}, and the problem {wanted}; make them equal"
                )
        if own:
            self._check_sizes(problem, state)
        T = nodes.T if nodes else np.mean([each.teacher.T @ each.teacher / len(each.rho) for each in own], axis=0)
        if np.abs(T - problem.teacher_overlap).max() > 1e3 * ROUNDING:
            shown = [[float(f"{number:.9g}") for number in row] for row in 0.5 * (T + T.T)]
            raise ValueError(f"teacher.overlap: is {shown} of the teacher in initial.from; set it to that")
        if nodes:
            known = problem.inputs.eigenvalues.nodes(len(nodes.rho)).rho
            if known.shape != nodes.rho.shape or np.abs(known - nodes.rho).max() > ROUNDING * (1.0 + known.max()):
                raise ValueError(
                    "initial.from: has order parameters at other eigenvalues than those of inputs.spectrum at "
                    f"inputs.aspect_ratio = {problem.inputs.aspect_ratio:g}; make both equal to those of the result, "
                    "or name runs of SGD with snapshots"
                )

    def _check_sizes(self, problem: Problem, state: State) -> None:
        D, N = len(state.own[0].rho), problem.particles.dimension
        if state.dimension != N:
            raise ValueError(
                f"particles.dimension = {N}: initial.from has features of N = {state.dimension}; set it to that"
            )
        ratio = problem.inputs.aspect_ratio
        if round(ratio * N) != D or (state.matrices is not None and abs(ratio - D / N) > ROUNDING):
            raise ValueError(
                f"inputs.aspect_ratio = {ratio:g}: initial.from has {D} latents for {N} inputs; set it to {D / N:.12g}"
            )


def second_layer(problem: Problem, v: FloatArray) -> FloatArray:
    """Second layer of a file, or that of the problem where the file has none."""
    return np.where(np.isnan(v), problem.student.output_weights, v)


def own_start_of(run: xr.Dataset, time: float, replica: int) -> OwnStart:
    """Start of a replica of a result of SGD, from its weights at a snapshot."""
    own = run.isel(replica=replica).sel(snapshot_time=time, method="nearest")
    now = own.sel(time=time, method="nearest")
    return OwnStart(
        own["rho_of_coordinate"].values.astype(float),
        own["S"].transpose("coordinate", "student").values.astype(float),
        own["teacher_components"].transpose("coordinate", "teacher").values.astype(float),
        now["Omega"].values,
        now["v"].values,
    )


def check_no_file(problem: Problem, what: str) -> None:
    """Refuse a start from a file for a method that takes one by keys.

    Parameters
    ----------
    what : str
        The method in the plural, for the message.

    Raises
    ------
    InputError
    """
    if problem.initial is not None:
        raise InputError(
            f"initial.from = '{problem.initial.path}': {what} take a start by keys; give "
            "student.on_teacher and student.elsewhere, or student.initial = 'random', in its place"
        )
