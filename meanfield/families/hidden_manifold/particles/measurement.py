"""Order parameters of SGD, from its weights and not from samples.

They are the formulas of the limit at the overlaps that the weights have. At finite N the fields of a sample differ in
law from these Gaussians by O(1/N). The generalisation error is such a formula for the chain alone, whose inputs are
Gaussian; that of weights is measured (see `meanfield.families.hidden_manifold.particles.fresh_samples`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from meanfield.ensembles.own_runs import check_lengths
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.expectations.choice import (
    QUADRATURE,
    generalisation_errors,
    kind_of_expectations,
)
from meanfield.families.hidden_manifold.expectations.quadrature import make_rule, no_rule
from meanfield.families.hidden_manifold.particles.start import gaussian_means
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.variables import AVERAGE_ROWS
from meanfield.ingredients.nonlinearities import Moments
from meanfield.typing import FloatArray


class Overlaps(NamedTuple):
    """Overlaps of some replicas.

    Parameters
    ----------
    Omega, Sigma : ndarray, shape (replicas, students, students)
        W.W/N and S.S/D.
    teacher : ndarray, shape (replicas, students, teachers)
        S.Wt/D.
    mean : ndarray, shape (replicas, students, components)
        S.E[C]/sqrt(D), without means that all latents have.
    constant : ndarray, shape (replicas, students)
        W.(1, 1, ...)/sqrt(N), with which inputs that have a mean reach the student.
    v : ndarray, shape (replicas, students)
    """

    Omega: FloatArray
    Sigma: FloatArray
    teacher: FloatArray
    mean: FloatArray
    constant: FloatArray
    v: FloatArray


class Fields(NamedTuple):
    """Law of the fields in each component, after a leading dim of replicas: Gaussian.

    Parameters
    ----------
    Q, R : ndarray, shape (replicas, components, students, students) and (..., students, teachers)
        Covariances.
    mean, teacher_mean : ndarray, shape (replicas, components, students) and (..., teachers)
    """

    Q: FloatArray
    R: FloatArray
    mean: FloatArray
    teacher_mean: FloatArray


def row_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what is kept of each replica."""
    K, M = problem.students, problem.teachers
    square = dict.fromkeys(("Q", "Omega", "Sigma"), (K, K))
    means = {"field_mean": (len(problem.inputs.gaussians), K)}
    errors: dict[str, tuple[int, ...]] = {"generalisation_error": (), "generalisation_error_error": ()}
    rows = square | {"R": (K, M), "v": (K,)} | errors
    if problem.training.average_rate is None:
        return rows | means
    of_averages = {"overlap_average": (K, K), "generalisation_error_average_error": ()}
    of_averages |= {f"{name}_average": rows[name] for name in ("Q", "R", "v", "generalisation_error")}
    return rows | means | {name: of_averages[name] for name in AVERAGE_ROWS}


def gaussian_noise(moments: Moments) -> float:
    """Variance c* of the part of f(s u) that is uncorrelated with u; 0 for a linear f, to rounding."""
    noise = moments.square - moments.mean**2 - moments.slope**2
    return noise if noise > 1e-10 * moments.square else 0.0  # 0 to the accuracy of moments


def fields_of(problem: Problem, overlaps: Overlaps) -> Fields:
    """Law of the fields that weights with given overlaps have."""
    scale = np.array([scale for _, scale in problem.inputs.gaussians])
    moments = problem.inputs.moments
    slope, constant = np.array([m.slope for m in moments]), np.array([m.mean for m in moments])
    noise = np.array([gaussian_noise(m) for m in moments])
    along = gaussian_means(problem)[:, : problem.teachers] @ problem.teacher_overlap
    return Fields(
        np.einsum("q,rkl->rqkl", noise, overlaps.Omega) + np.einsum("q,rkl->rqkl", slope**2, overlaps.Sigma),
        np.einsum("q,rkm->rqkm", slope * scale, overlaps.teacher),
        np.einsum("q,rk->rqk", constant, overlaps.constant) + np.einsum("q,rkq->rqk", slope / scale, overlaps.mean),
        np.broadcast_to(along, (len(overlaps.v), *along.shape)),
    )


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from weights of a committee; see `meanfield.problems.family.Family.measure`."""
    return partial(_measured, problem)


def _measured(problem: Problem, times: FloatArray, given: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Order parameters of students who see standard normal inputs themselves; of others nothing follows."""
    found: dict[str, Any] = {}
    S = given.get("S")
    if S is None or "teacher_components" not in given or not _sees_latents(problem):
        return found
    runs, T, K, D = S.shape
    if problem.particles.dimension != D:
        raise InputError(
            f"S: has {D} coordinates, and particles.dimension = {problem.particles.dimension} is another number; set "
            f"it to {D}"
        )
    if not problem.training.numbers_at(times)[1].any():  # the second layer stays
        found["v"] = np.tile(np.array(problem.student.output_weights, dtype=float), (runs, T, 1))
    v = given.get("v", found.get("v"))
    if v is None:
        return found
    squares = np.mean(given["teacher_components"] ** 2, axis=1)
    check_lengths("teacher_components", squares, wanted=np.diag(problem.teacher_overlap))
    teacher = np.repeat(given["teacher_components"][:, None], T, axis=1)
    square = np.einsum("rtkn,rtjn->rtkj", S, S) / D
    parts = (
        square,
        square,
        np.einsum("rtkn,rtnm->rtkm", S, teacher) / D,
        np.zeros((runs, T, K, 1)),
        np.zeros(v.shape),
        v,
    )
    overlaps = Overlaps(*(each.reshape(runs * T, *each.shape[2:]) for each in parts))
    fields = fields_of(problem, overlaps)
    rows = {**rows_of(problem, overlaps, fields), **gaussian_errors(problem, overlaps.v, fields)}
    found |= {name: row.reshape(runs, T, *row.shape[1:]) for name, row in rows.items()}
    return found | {"rho_of_coordinate": np.ones((runs, D))}


def _sees_latents(problem: Problem) -> bool:
    """Whether inputs are the latents, rotated, and these are standard normal, as those of a committee machine are."""
    inputs = problem.inputs
    rotated = inputs.aspect_ratio == 1.0 and getattr(inputs.spectrum, "eigenvalues", ()) == (1.0,)
    normal = inputs.gaussians == ((1.0, 1.0),) and not gaussian_means(problem).any()
    return rotated and normal and all(np.allclose((m.mean, m.slope, m.square), (0.0, 1.0, 1.0)) for m in inputs.moments)


def rows_of(problem: Problem, overlaps: Overlaps, fields: Fields) -> Mapping[str, FloatArray]:
    """Order parameters of each replica, averaged over components, with the means of fields in each."""
    weight = np.array([weight for weight, _ in problem.inputs.gaussians])
    return {
        "Q": np.einsum("q,rqkl->rkl", weight, fields.Q),
        "R": np.einsum("q,rqkm->rkm", weight, fields.R),
        "Omega": overlaps.Omega,
        "Sigma": overlaps.Sigma,
        "v": overlaps.v,
        "field_mean": fields.mean,
    }


def gaussian_errors(problem: Problem, v: FloatArray, fields: Fields) -> Mapping[str, FloatArray]:
    """Generalisation error of each replica if fields are Gaussian, which is then known without a standard error."""
    replicas, components, _, M = fields.R.shape
    weight, scale = np.array(problem.inputs.gaussians).T
    T = np.broadcast_to(np.multiply.outer(scale**2, problem.teacher_overlap), (replicas, components, M, M))
    C = np.block([[fields.Q, fields.R], [fields.R.swapaxes(2, 3), T]])
    mean = np.concatenate([fields.mean, fields.teacher_mean], axis=2)
    mean = np.where(np.abs(mean) > 1e-10, mean, 0.0)  # closed forms without means are faster and exact
    vt = np.broadcast_to(np.array(problem.teacher.output_weights, dtype=float), (replicas, M))
    u = np.repeat(np.concatenate([v, -vt], axis=1), components, axis=0)
    activations = problem.student.activation_functions, problem.teacher.activation_functions
    kind = kind_of_expectations(*activations)
    # 40 points of a quadrature over a field, or over a piece of it between kinks
    rule = make_rule(*activations, 40) if kind == QUADRATURE else no_rule()
    found = np.empty(replicas * components)
    generalisation_errors(
        kind, problem.students, C.reshape(len(found), *C.shape[2:]), mean.reshape(len(found), -1), u, rule, found
    )
    errors = found.reshape(replicas, components) @ weight
    return {"generalisation_error": errors, "generalisation_error_error": np.zeros(replicas)}
