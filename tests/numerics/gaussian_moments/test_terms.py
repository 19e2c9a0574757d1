"""Sums of terms of two slots are found, and integrated term by term, with errors that hold."""

import math

import numpy as np
import pytest
from scipy.special import erf

from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.gaussian_moments.choosing import choose_rule
from meanfield.numerics.gaussian_moments.interactions import find_parts
from meanfield.numerics.gaussian_moments.kernel import Law, semidefinite_factor
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule
from tests.numerics.gaussian_moments.test_closed_forms import i3, i4

NOTHING = np.zeros(1)


def rows_of(width, *functions):
    """Functions of a row as an array, each with the shape of its value."""
    return compile_rows([Bound(each, (Argument(0, (width,)),), shape) for each, shape in functions], width, 1)


def law_of(covariance, mean=0.0):
    return Law(mean + np.zeros(len(covariance)), semidefinite_factor(np.asarray(covariance, dtype=float)))


def gram(rng, teachers, students):
    """Covariance of the fields of teachers and students with random overlaps."""
    R = rng.uniform(-0.8, 0.8, (students, teachers)) / math.sqrt(teachers)
    Q = R @ R.T + np.diag(rng.uniform(0.01, 0.8, students))
    return np.block([[np.eye(teachers), R.T], [R, Q]])


def committee(teachers):
    """Step and loss of a soft committee whose first fields are those of teachers."""

    def step(x):
        outputs = erf(x / np.sqrt(2))
        return (
            np.sqrt(2 / np.pi)
            * np.exp(-(x[teachers:] ** 2) / 2)
            * (outputs[:teachers].sum() - outputs[teachers:].sum())
        )

    def loss(x):
        outputs = erf(x / np.sqrt(2))
        return 0.5 * (outputs[:teachers].sum() - outputs[teachers:].sum()) ** 2

    return step, loss


@pytest.mark.parametrize(("teachers", "students"), [(1, 2), (2, 2), (3, 3)])
def test_committees_at_random_overlaps_have_the_averages_of_saad_and_solla(teachers, students):
    fields = teachers + students
    step, loss = committee(teachers)
    function = rows_of(fields, (step, (students,)), (loss, ()))
    sign = np.r_[np.ones(teachers), -np.ones(students)]
    rng = np.random.default_rng(0)
    choice = choose_rule(function, NOTHING, [law_of(gram(rng, teachers, students))], counted=students)
    assert choice.rule.kind == "terms"
    for _ in range(4):
        C = gram(rng, teachers, students)
        law = law_of(C)
        first, along, products = choice.rule.moments(function, NOTHING, law)

        def inner(formula, *given, C=C):
            return formula(C[np.ix_(given, given)])

        wanted = np.array([
            [sum(sign[j] * inner(i3, k, n, j) for j in range(fields)) for k in range(teachers, fields)]
            for n in range(fields)
        ])  # fmt: skip
        squares = np.array([
            [
                sum(sign[c] * sign[d] * inner(i4, k, j, c, d) for c in range(fields) for d in range(fields))
                for j in range(teachers, fields)
            ]
            for k in range(teachers, fields)
        ])  # fmt: skip
        arcs = np.arcsin(C / np.sqrt(np.outer(1 + np.diag(C), 1 + np.diag(C)))) * 2 / np.pi
        size = np.sqrt(np.diag(squares))
        # a factor of 10 on the tolerance of the choice, for laws near the one of the choice
        assert (np.abs(law.factor @ along[:, :students] - wanted) / size).max() < 1e-9
        assert (np.abs(products[:students, :students] - squares) / np.outer(size, size)).max() < 1e-9
        assert abs(first[-1] - 0.5 * sign @ arcs @ sign) < 1e-9


def test_a_student_that_is_its_teacher_has_no_error():
    step, loss = committee(1)
    function = rows_of(3, (step, (2,)), (loss, ()))
    C = np.array([[1, 1, 0.0], [1, 1, 0], [0, 0, 0.3]])
    choice = choose_rule(function, NOTHING, [law_of(gram(np.random.default_rng(1), 1, 2))], counted=2)
    moments = choice.rule.moments(function, NOTHING, law_of(C))
    wanted = i4(C[np.ix_([1, 1, 2, 2], [1, 1, 2, 2])])  # of the student that has not learnt
    np.testing.assert_allclose(moments.products[0, 0], wanted, rtol=1e-9)


def tanh_step(x):  # of a teacher, a student and noise
    slope = 1 / np.cosh(x[1]) ** 2
    return slope * (np.tanh(x[0]) + 0.3 * x[2] - np.tanh(x[1]))


def test_averages_of_tanh_are_those_of_mpmath():
    R, Q = 0.6, 0.9
    law = law_of([[1, R, 0], [R, Q, 0], [0, 0, 1.0]])
    function = rows_of(3, (tanh_step, ()))
    choice = choose_rule(function, NOTHING, [law])
    assert choice.rule.kind == "terms"
    _, along, products = choice.rule.moments(function, NOTHING, law)
    # mpmath.quad of 15 digits over both fields, with panels from -9 to 9 and the noise by hand
    assert abs((law.factor @ along)[0, 0] - 0.193228228931072) < 1e-10
    assert abs(products[0, 0] - 0.198816826482413) < 1e-10


def one_hub(x):
    return np.tanh(x[1]) * (x[0] ** 2 + np.sin(x[2])) - x[1] * np.exp(-(x[3] ** 2)) + 0.3 * x[2]


def two_hubs(x):
    return np.tanh(x[0] - 0.4) * np.sin(x[1]) + np.cos(x[2]) * x[3] + np.cos(x[2]) * np.tanh(x[1])


def nothing_together(x):
    return np.sin(x[0]) + np.tanh(x[1] + 0.2) - x[3]


@pytest.mark.parametrize(("rank", "order"), [(3, 96), (4, 40)])
def test_terms_have_the_averages_of_products_of_rules(rank, order):
    function = rows_of(4, (one_hub, ()), (two_hubs, ()), (nothing_together, ()))
    rng = np.random.default_rng(rank)
    loadings = rng.standard_normal((4, rank)) / 3
    law = Law(rng.standard_normal(4) / 2, semidefinite_factor(loadings @ loadings.T))
    choice = choose_rule(function, NOTHING, [law])
    assert choice.rule.kind == "terms"
    assert choice.error < 1e-9
    wanted = Rule("smooth", order, choice.rule.kinks).moments(function, NOTHING, law)
    found = choice.rule.moments(function, NOTHING, law)
    size = np.sqrt(np.diag(wanted.products))
    assert (np.abs(found.first - wanted.first) / size).max() < choice.error
    assert (np.abs(found.along - wanted.along) / size).max() < choice.error
    assert (np.abs(found.products - wanted.products) / np.outer(size, size)).max() < choice.error


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0] * np.tanh(x[1]) * np.sin(x[2]),
        lambda x: np.tanh(x[0] + x[1] - x[2]),
        lambda x: np.exp(-x[0] * x[1]) + np.tanh(x[2] * x[3]) ** 2 + x[0] * np.sin(x[3]),  # more than a few products
    ],
)
def test_other_functions_are_no_sums_of_terms(function):
    law = law_of(np.eye(4) + 0.1)
    assert find_parts(rows_of(4, (function, ())), NOTHING, [law], 1) is None


def test_bends_of_terms_are_found():
    function = rows_of(4, (lambda x: np.abs(x[0]) * np.tanh(x[1]) + x[2] * x[3], ()))
    with pytest.raises(ValueError, match="its slope jumps"):
        choose_rule(function, NOTHING, [law_of(np.eye(4) + 0.1)])
    kinks = Kinks(np.eye(4)[:1], np.zeros(1))
    assert choose_rule(function, NOTHING, [law_of(np.eye(4) + 0.1)], kinks, tolerance=1e-6).rule.kind == "kinked"


def odd(x):
    return np.sin(x[0] + x[1] * x[2] ** 2)


def even(x):
    return np.cos(x[0] * x[2] + x[1] ** 2)


def neither(x):
    return np.exp(x[0] - x[1] ** 2)


def test_nodes_of_one_half_space_tell_all_of_even_and_odd_functions():
    functions = rows_of(3, (odd, ()), (even, ()))
    law, rule = (
        Law(np.zeros(3), np.linalg.cholesky(np.eye(3) + 0.3)),
        Rule("smooth", 17, Kinks(np.empty((0, 3)), np.empty(0))),
    )
    np.testing.assert_array_equal(rule.parity(functions, NOTHING, law), [-1.0, 1.0])
    assert rule.parity(functions, NOTHING, law._replace(mean=np.array([0.0, 0.1, 0.0]))) is None
    assert rule.parity(rows_of(3, (neither, ())), NOTHING, law) is None
    z, weights = rule.nodes(law)
    values = np.stack([odd(law.factor @ z), even(law.factor @ z)])
    wanted = values @ weights, (weights * z) @ values.T, (weights * values) @ values.T
    for found, expected in zip(rule.moments(functions, NOTHING, law), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)  # rounding of 4,913 terms
