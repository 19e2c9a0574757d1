"""Warnings about hidden-manifold problems in which the limit is another one than most people expect."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import check_averages, has_fast_means


def warnings_of(problem: Problem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy.

    Parameters
    ----------
    problem : Problem
    predicted : list of Prediction
        From `meanfield.explanation.prediction`.
    """
    try:
        check_averages(problem)
    except InputError as error:
        return [f"{error}"]
    return [*_of_means(problem), *_of_the_inputs(problem), *_of_the_start(problem)]


def _of_means(problem: Problem) -> Iterator[str]:
    if has_fast_means(problem):
        yield (
            f"inputs.nonlinearity = '{problem.inputs.nonlinearity}' leaves inputs with a mean, along which the student "
            "moves within single steps: order_parameters averages over these moves by sampling, which is right if N is "
            "far larger than the number of steps that they remember (relaxation_steps in the result); set "
            "inputs.centered to true, or take one scale, for the ordinary theory"
        )


def _of_the_inputs(problem: Problem) -> Iterator[str]:
    if all(abs(m.slope) <= 1e-9 * m.square**0.5 for m in problem.inputs.moments):  # 0 to rounding
        yield (
            f"inputs.nonlinearity = '{problem.inputs.nonlinearity}' is uncorrelated with its argument: inputs are "
            "noise to the student in the limit, and nothing is learnt; take a function with an odd part"
        )
    if problem.particles.column_lengths == "random":
        yield (
            "particles.column_lengths = 'random': an f that is not odd gives each input a mean of its own, which SGD "
            "learns and the limit does not have; set it to 'equal' to see SGD follow the limit"
        )
    if problem.inputs.components_drawn == "coordinate" and len(problem.inputs.components) > 1:
        yield (
            "components_drawn = 'coordinate': by the central limit theorem nothing is left of the mixture but its "
            "variance; set it to 'sample' to see clusters"
        )


def _of_the_start(problem: Problem) -> Iterator[str]:
    K, v, along = problem.students, np.array(problem.student.output_weights), problem.initial_on_teacher
    if not v.any() and problem.training.second_layer == 0.0:
        yield (
            "student.output_weights are all 0 and fixed, so that nothing moves; change them, or set "
            "training.output_learning_rate"
        )
    if K > 1 and np.all(v == v[0]) and np.all(along == along[0]) and _alike(problem.student.rest):
        yield (
            "all units of the student start alike and stay alike in the limit, on the symmetric plateau; SGD leaves it "
            "by differences of order 1/sqrt(N), at a time that grows with log N; give student.on_teacher other rows"
        )


def _alike(G: np.ndarray) -> bool:
    """Whether a matrix is the same for any order of the units."""
    K = len(G)
    other = G[~np.eye(K, dtype=bool)]
    return bool(np.all(np.diag(G) == G[0, 0]) and np.all(other == other[0]))
