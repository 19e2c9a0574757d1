"""Averages over hidden variables of any law: adaptive quadrature, closed forms, tails, and several that depend."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad_vec, solve_ivp

import meanfield
from meanfield.errors import InputError
from meanfield.families.update_rule.averages import averages_of
from meanfield.families.update_rule.order_parameters.equations import Equations
from tests.families.update_rule import own_rules
from tests.families.update_rule.problems import feature, problem

TOLERANCE = 1e-9
OVERLAP = 0.6
LAWS = {
    "uniform": ({"law": "uniform"}, stats.uniform(-np.sqrt(3.0), 2.0 * np.sqrt(3.0))),
    "laplace": ({"law": "laplace"}, stats.laplace(scale=np.sqrt(0.5))),
    "student_t": ({"law": "student_t", "degrees_of_freedom": 6.0}, stats.t(6.0, scale=np.sqrt(4.0 / 6.0))),
}


def averages(made):
    """Averages of a problem at its start, with the rules and nodes that are found for them."""
    equations = Equations(made)
    places = [(0.0, equations.start)]
    choices = equations.choose(places, TOLERANCE, {})
    system = equations.with_enough_hidden_nodes(places, choices, TOLERANCE).stretches[0].system
    R, Q = made.initial_R, made.initial_Q
    constants = system.constants(made, 0.0, R, Q, np.zeros(0))
    return averages_of(system.draws[0], 0, system.gram(R, Q), constants, choices[0, 0].rule)


def known(law, step, signal):
    """<y F>, <s F> and <F^2> of a step of s and c: adaptive over c, and over s given c by panels that end at its kink.

    Given c, s has the mean q c, and y that of c plus q (s - q c) where the noise has a part along the feature.
    """
    q, spiked = OVERLAP, signal == "spiked"
    deviation = 1.0 if spiked else np.sqrt(1.0 - q * q)
    x, weight = np.polynomial.legendre.leggauss(200)

    def inner(c):
        found = np.zeros(3)
        kink = np.clip(-q * c / deviation, -9.0, 9.0)
        for low, high in ((-9.0, kink), (kink, 9.0)):
            z = 0.5 * (low + high) + 0.5 * (high - low) * x
            s, F = q * c + deviation * z, step(q * c + deviation * z, c)
            y = c + spiked * q * deviation * z
            found += np.stack([y * F, s * F, F * F]) @ (0.5 * (high - low) * weight * stats.norm.pdf(z))
        return found

    distribution = LAWS[law][1]
    ends = np.clip(distribution.support(), -3000.0, 3000.0)  # of Student's law 1e-14 of <c^2> lie beyond
    points = np.concatenate([[0.0, 0.4], *([-(10.0**k), 10.0**k] for k in (-2, -1, 0, 1, 2))])
    points = points[(ends[0] < points) & (points < ends[1])]
    value, _ = quad_vec(lambda c: distribution.pdf(c) * inner(c), *ends, points=points, epsrel=1e-11, limit=2000)
    return value


FAST = [("uniform", "jumps_at_y", "orthogonal"), ("laplace", "bends_at_s", "spiked")]
CASES = [
    pytest.param(law, rule, signal, marks=() if (law, rule, signal) in FAST else pytest.mark.slow)
    for law in LAWS
    for rule in ("smooth", "jumps_at_c", "jumps_at_y", "bends_at_s")
    for signal in ("spiked", "orthogonal")
    if rule != "jumps_at_y" or signal == "orthogonal"
]


@pytest.mark.parametrize(("law", "rule", "signal"), CASES)
def test_averages_are_those_of_adaptive_quadrature(law, rule, signal):
    made = problem(rule, 1.0, data={"signal": signal}, features=[feature(OVERLAP, hidden=LAWS[law][0])])
    found = averages(made)
    function = made.model.functions.step
    steps = {"smooth": lambda s, c: function(s, c, 1.0), "bends_at_s": lambda s, c: function(s, 1.0)}
    want = known(law, steps.get(rule, lambda s, c: own_rules.above_a_threshold(s, c, 1.0)), signal)
    size = np.sqrt(want[2] * 2.0)  # of a function times a field
    error = np.abs([found.E[0, 0] - want[0], found.E[1, 0] - want[1], found.Lambda[0, 0] - want[2]]).max()
    assert error < 1e-7 * size  # rules and nodes are chosen for 1e-9 of sizes, and err by about that each


@pytest.mark.parametrize(
    ("hidden", "fourth", "sixth"),
    [
        ({"law": "uniform"}, 9.0 / 5.0, 27.0 / 7.0),
        ({"law": "laplace"}, 6.0, 90.0),
        pytest.param(  # the rule and its closed form are those of the other laws, and refused tails are below
            {"law": "student_t", "degrees_of_freedom": 9.0}, 4.2, 49.0, marks=pytest.mark.slow
        ),
    ],
)
def test_independent_components_are_those_of_the_closed_form(hidden, fourth, sixth):
    """The closed form of update_rules.md, 10.2, for rates below 0 and E[c^2] = 1."""
    rate, overlap = 0.02, 0.5
    made = problem(
        "ica",
        -rate,
        model={"constraint": "sphere"},
        data={"signal": "orthogonal"},
        features=[feature(overlap, hidden=hidden)],
    )

    def velocity(t, y):
        q, p = y[0], 1.0 - y[0] ** 2
        along = -(fourth * q**3 + 3.0 * q * p) + 3.0 * q
        diffusion = rate**2 * (sixth * q**6 + 15.0 * fourth * q**4 * p + 45.0 * q**2 * p**2 + 15.0 * p**3)
        return [rate * p * along - 0.5 * q * diffusion]

    want = solve_ivp(velocity, (0.0, 4.0), [overlap], rtol=1e-11, atol=1e-13).y[0, -1]  # off by less than 1e-10
    result = meanfield.solve(made, "order_parameters").isel(time=-1)
    error = abs(result["R"].item() - want)
    assert error <= result["R_error"].item() + 1e-10  # error of the closed form
    assert error <= made.order_parameters.tolerance


def refused(act, said):
    with pytest.raises(InputError) as caught:
        act()
    assert re.search(said, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("rule", "hidden", "said"),
    [
        (
            "ica",
            {"degrees_of_freedom": 6.5},
            "step: .* grow with the hidden variable c to the power 6, and .* up to 5.5",
        ),
        ("oja", {"degrees_of_freedom": 2.9}, "to the power 2, and .* up to 1.9; clip the function"),
    ],
)
def test_tails_without_the_moments_that_a_rule_takes_are_refused(rule, hidden, said):
    hidden = {"law": "student_t"} | hidden
    made = problem(rule, 0.1, data={"signal": "spiked"}, features=[feature(0.3, hidden=hidden)])
    refused(lambda: averages(made), said)
    clipped = problem("smooth", 0.1, data={"signal": "spiked"}, features=[feature(0.3, hidden=hidden)])
    if hidden["degrees_of_freedom"] > 3.0:
        averages(clipped)


def test_a_jump_at_a_uniform_variable_is_to_be_declared():
    uniform = feature(OVERLAP, hidden={"law": "uniform"})
    made = problem("jumps_without_a_word", 1.0, data={"signal": "orthogonal"}, features=[uniform])
    refused(lambda: averages(made), "up to 256 nodes of a law, .*make places where the rule jumps .* kinks and declare")
    both = problem(
        "jumps_at_both", 1.0, data={"signal": "spiked"}, features=[uniform, feature(0.1, hidden={"law": "uniform"})]
    )
    refused(lambda: averages(both), "form of several uniform variables alone")


def with_joint_law(values, probabilities):
    return problem(
        "product_of_hidden",
        0.5,
        data={"signal": "spiked"},
        hidden={"law": "discrete", "values": values, "probabilities": probabilities},
        features=[feature(0.5), feature(0.3)],
    )


def test_averages_over_dependent_variables_are_those_over_their_values():
    values, probabilities = [[1.0, 0.5], [-2.0, 0.3], [0.5, -1.0]], [0.5, 0.2, 0.3]
    found = averages(with_joint_law(values, probabilities))
    parts = [averages(with_joint_law([value], [1.0])) for value in values]
    for name, value in found._asdict().items():
        want = sum(p * getattr(part, name) for p, part in zip(probabilities, parts, strict=True))
        np.testing.assert_allclose(value, want, rtol=0, atol=1e-8)  # rules are chosen for 1e-9 of sizes near 1


def test_a_joint_law_of_independent_variables_is_that_of_each():
    values, probabilities = [[1.0, 2.0], [1.0, -0.5], [-1.0, 2.0], [-1.0, -0.5]], [0.35, 0.35, 0.15, 0.15]
    laws = [{"values": [1.0, -1.0], "probabilities": [0.7, 0.3]}, {"values": [2.0, -0.5], "probabilities": [0.5, 0.5]}]
    features = [feature(q, hidden={"law": "discrete"} | law) for q, law in zip((0.5, 0.3), laws, strict=True)]
    apart = problem("product_of_hidden", 0.5, data={"signal": "spiked"}, features=features)
    joint = with_joint_law(values, probabilities)
    for one, other in zip(averages(joint), averages(apart), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)  # rounding
