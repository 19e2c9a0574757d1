"""The equations of the order parameters as numbers: nodes of the spectrum, columns, components, and the start.

Columns are the vectors on which the student's weights are projected: those of the teacher, and the means of components.
The state is one vector, of r at each node, sigma at each node, Omega, and v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.expectations.choice import QUADRATURE, kind_of_expectations
from meanfield.families.hidden_manifold.expectations.quadrature import Rule, make_rule, no_rule
from meanfield.families.hidden_manifold.initial_state import OwnStart, second_layer
from meanfield.families.hidden_manifold.inputs import CENTRED
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.spectra import Nodes, interpolated
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray, IntArray


class System(NamedTuple):
    """Numbers of the equations (hidden_manifold.md, section 2), in a form that compiled code takes.

    Parameters
    ----------
    kind : int
        Kind of expectations.
    students, teachers : int
        K and M.
    training : ndarray, shape (5,)
        eta, eta_v, tau, sigma_y^2 and kappa, at the time of which rates are asked for where they change; with momentum
        the learning rates are those of the limit.
    aspect_ratio : float
        delta.
    rho, weight : ndarray, shape (nodes,)
        Nodes of the spectrum.
    t : ndarray, shape (nodes, columns, columns)
        Gram matrix of the columns along eigenvectors.
    chance, slope, scale, rest, variance : ndarray, shape (components,)
        p, b, s, c* and c of each component, after the mean a of f has been subtracted.
    constant : ndarray, shape (components,)
        a: not 0 where fields have means that move within single steps.
    column : ndarray of int, shape (components,)
        Column of the mean of each component, -1 without one.
    teacher_weights : ndarray, shape (teachers,)
        Second layer of the teacher.
    rule : Rule
    """

    kind: int
    students: int
    teachers: int
    training: FloatArray
    aspect_ratio: float
    rho: FloatArray
    weight: FloatArray
    t: FloatArray
    chance: FloatArray
    slope: FloatArray
    scale: FloatArray
    rest: FloatArray
    variance: FloatArray
    constant: FloatArray
    column: IntArray
    teacher_weights: FloatArray
    rule: Rule


class State(NamedTuple):
    """Parts of the state of the order parameters; a leading dim such as time may come before each shape.

    Parameters
    ----------
    r : ndarray, shape (nodes, students, columns)
    sigma : ndarray, shape (nodes, students, students)
    Omega : ndarray, shape (students, students)
    v : ndarray, shape (students,)
    """

    r: FloatArray
    sigma: FloatArray
    Omega: FloatArray
    v: FloatArray


def make_system(problem: Problem, nodes: Nodes, order: int, run: Problem | None = None) -> System:
    """System of a problem at t = 0 on some nodes of its spectrum, with a quadrature of some order if one is needed.

    A problem of one phase has the columns of all of them, which are those of the `run`.
    """
    inputs, T = problem.inputs, problem.teacher_overlap
    coefficients, elsewhere, column = columns_of(problem, run)
    gram = coefficients @ T @ coefficients.T
    apart = np.zeros(gram.shape)
    apart[np.diag_indices(len(gram))] = elsewhere**2
    chance, scale = (np.array(values, dtype=float) for values in zip(*inputs.gaussians, strict=True))
    moments = inputs.moments
    slope, square, mean = (np.array([getattr(m, name) for m in moments]) for name in ("slope", "square", "mean"))
    activations = problem.student.activation_functions, problem.teacher.activation_functions
    kind = kind_of_expectations(*activations)
    return System(
        kind=kind,
        students=problem.students,
        teachers=problem.teachers,
        training=problem.training.limits_at(np.zeros(1))[:, 0],
        aspect_ratio=float(inputs.aspect_ratio),
        rho=nodes.rho,
        weight=nodes.weight,
        t=nodes.teacher[:, None, None] * gram + apart,
        chance=chance,
        slope=slope,
        scale=scale,
        rest=np.maximum(square - mean**2 - slope**2, 0.0),
        variance=square - mean**2,
        constant=mean,
        column=column,
        teacher_weights=np.array(problem.teacher.output_weights, dtype=float),
        rule=make_rule(*activations, order) if kind == QUADRATURE else no_rule(),
    )


def columns_of(problem: Problem, run: Problem | None = None) -> tuple[FloatArray, FloatArray, IntArray]:
    """Coefficients of columns on the teacher, norms elsewhere, and the column of each component, -1 without a mean.

    After the teacher's come those of the phases of a run, the same means once.
    """
    M = problem.teachers
    coefficients, elsewhere, column = [np.eye(M)], [np.zeros(M)], np.empty(0, dtype=np.int64)
    wanted, known, count = moving_means(problem), list[tuple[FloatArray, FloatArray]](), M
    for piece in pieces_of(run or problem):
        means, apart = moving_means(piece.problem)
        if any(_same((means, apart), each) for each in known):
            continue
        known.append((means, apart))
        has = np.asarray((means != 0.0).any(axis=1) | (apart != 0.0))
        coefficients.append(means[has])
        elsewhere.append(apart[has])
        if _same((means, apart), wanted):
            column = np.where(has, count + np.cumsum(has) - 1, -1).astype(np.int64)
        count += int(has.sum())
    return np.vstack(coefficients), np.concatenate(elsewhere), column


def _same(one: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def moving_means(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Means of the Gaussians that latents are: coefficients on the teacher, and norms elsewhere.

    Where every latent draws a component of its own, their means add up to a common one.
    """
    elsewhere = np.array([component.mean_elsewhere for component in problem.inputs.mixture])
    if problem.inputs.components_drawn == "sample":
        return problem.component_means, elsewhere
    chance = np.array([component.weight for component in problem.inputs.mixture])
    common = chance @ problem.component_means
    common[np.abs(common) <= CENTRED * np.abs(problem.component_means).max()] = 0.0
    return common[None, :], np.sqrt((chance**2 @ elsewhere**2)[None])


def start_of(problem: Problem, system: System) -> FloatArray:
    """State at time 0 (hidden_manifold.md, section 2), or that of a file, as one vector."""
    if problem.initial is not None:
        return _from_file(problem, system)
    X = problem.initial_on_teacher
    G = problem.student.rest
    rho = system.rho[:, None, None]
    M = system.teachers
    r = rho * (X @ system.t[:, :M, :])
    along = X @ system.t[:, :M, :M] @ X.T
    sigma = rho**2 * along + rho * G
    Omega = system.aspect_ratio * np.einsum("n,nkl->kl", system.weight, rho * along) + G
    return packed(State(r, sigma, Omega, np.array(problem.student.output_weights, dtype=float)))


def own_system(problem: Problem, start: OwnStart, order: int, run: Problem | None = None) -> tuple[System, FloatArray]:
    """Equations at the eigenvalues of a run, with a quadrature of some order where one is needed, and its state."""
    D = len(start.rho)
    columns = start.teacher @ columns_of(problem, run)[0].T
    system = make_system(problem, Nodes(start.rho, np.full(D, 1.0 / D), np.ones(D)), order, run)
    state = State(
        np.einsum("ak,al->akl", start.students, columns),
        np.einsum("ak,al->akl", start.students, start.students),
        start.Omega,
        second_layer(problem, start.v),
    )
    return system._replace(t=np.einsum("al,am->alm", columns, columns)), packed(state)


def check_means(problem: Problem) -> None:
    """Refuse means that the teacher does not span, where a start is known along the teacher alone.

    Raises
    ------
    InputError
    """
    largest = max(moving_means(piece.problem)[1].max() for piece in pieces_of(problem))
    if largest > 0.0:
        raise InputError(
            f"inputs.components.mean_elsewhere = {largest:g}: the direction of a mean that the teacher does "
            "not span is not known from weights; solve the limit with the method order_parameters"
        )


def _from_file(problem: Problem, system: System) -> FloatArray:
    """State that a file holds, at the nodes of a system."""
    assert problem.initial is not None
    state = problem.initial.atoms
    if state.at_nodes is None:
        return own_system(problem, OwnStart.mean_of(state.own), 1)[1]
    rho, r, sigma, Omega, v = state.at_nodes[:5]
    if not np.array_equal(rho, system.rho):
        r, sigma = (interpolated(rho, values, system.rho) for values in (r, sigma))
    return packed(State(r @ columns_of(problem)[0].T, sigma, Omega, v))


def packed(state: State) -> FloatArray:
    """Vectors of all parts: at each node the columns of r, then those of sigma; then Omega, then v."""
    nodes = np.concatenate([state.r.swapaxes(-1, -2), state.sigma], axis=-2)
    leading = state.v.shape[:-1]
    return np.concatenate([nodes.reshape(*leading, -1), state.Omega.reshape(*leading, -1), state.v], axis=-1)


def unpacked(system: System, y: FloatArray) -> State:
    """Parts of vectors, shape (..., n)."""
    n = len(system.rho)
    K = system.students
    L = system.t.shape[1]
    cuts = [n * K * (L + K), n * K * (L + K) + K * K]
    nodes, Omega, v = np.split(y, cuts, axis=-1)
    nodes = nodes.reshape(*y.shape[:-1], n, L + K, K)
    r, sigma = nodes[..., :L, :].swapaxes(-1, -2), nodes[..., L:, :]
    return State(r, sigma, Omega.reshape(*y.shape[:-1], K, K), v)


def observables(system: System, state: State) -> dict[str, FloatArray]:
    """Variables of a result by name, with the leading dims of the state."""
    M, weight = system.teachers, system.weight
    r = np.einsum("n,...nka->...ka", weight, state.r)
    Sigma = np.einsum("n,...nkl->...kl", weight, state.sigma)
    each = (slice(None), None, None)
    Q = system.rest[each] * state.Omega[..., None, :, :] + system.slope[each] ** 2 * Sigma[..., None, :, :]
    R = (system.slope * system.scale)[each] * r[..., None, :, :M]
    mean = np.zeros((*Q.shape[:-1],))
    for q in np.flatnonzero(system.column >= 0):
        mean[..., q, :] = system.slope[q] / system.scale[q] * r[..., system.column[q]]
    found = {
        "Q": np.einsum("q,...qkl->...kl", system.chance, Q),
        "R": np.einsum("q,...qka->...ka", system.chance, R),
        "Omega": state.Omega,
        "Sigma": Sigma,
        "v": state.v,
        "field_mean": mean,
    }
    return found if len(system.chance) == 1 else found | {"Q_component": Q, "R_component": R}
