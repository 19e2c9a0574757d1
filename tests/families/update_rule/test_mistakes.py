"""Mistakes in rules and problem files of users are refused with the function or key, the place and a remedy."""

from __future__ import annotations

import math
import re

import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.errors import InputError
from meanfield.families.update_rule.order_parameters.trajectory import check_order_parameters
from tests.families.update_rule.problems import feature

WRONG = "tests.families.update_rule.wrong_rules:"
TWO = {"students": [{}, {}]}
JOINT = {"law": "discrete", "values": [[1.0, 0.5], [-1.0, -0.5]], "probabilities": [0.5, 0.5]}
AGAIN = "when it is called again, at .*data.normals or data.coins"


def problem(rule: str, **tables):
    """Problem of a wrong rule, or with other wrong tables."""
    model = {"rule": rule if rule == "perceptron" else WRONG + rule, "rule_parameters": {"rate": 0.7}}
    given = {"features": [feature(0.2)], "time": {"stop": 1.0, "outputs": 2}} | tables
    return meanfield.Problem(family="update_rule", model=model | given.pop("model", {}), **given)


RULES = {
    # of one vector, then of two
    "several_numbers": ({}, r"step: returns an array of shape \(2,\) at s = .*, rate = 0.7; return a number"),
    "nothing": ({}, "step: returns NoneType at .*; return a number"),
    "yields": ({}, "step: returns generator at .*; return a number"),
    "power_of_negative": ({}, "step: returns complex numbers at s = -"),
    "not_a_number": ({}, "step: returns nan at s = -.*; let it be finite everywhere"),
    "logarithm": ({}, "step: raises ValueError .*math domain error, in line "),
    "index_of_a_number": ({}, "step: raises TypeError .*, in line .*; a name of one vector is a number"),
    "misspelt": ({}, "step: raises NameError .*'ss' is not defined, in line .*correct it"),
    "one_too_many": (TWO, r"step: returns an array of shape \(3,\) at .*; return an array of shape \(2,\)"),
    "row": (TWO, r"step: returns an array of shape \(1, 2\) at .*; return an array of shape \(2,\)"),
    "beyond": (TWO, "step: raises IndexError .*index 2 is out of bounds.*, in line "),
    "branches_on_an_array": (TWO, "step: raises ValueError .*truth value.*; .* a name of several an array"),
    "writes": (TWO, "step: raises ValueError .*read-only.*not to be changed"),
    "along_a_number": (TWO, r"along: returns a number at .*; return an array of shape \(3, 2\)"),
    "along_short": (TWO, r"along: returns an array of shape \(2, 3\) at .*; return an array of shape \(3, 2\)"),
    "along_two": ({}, r"along: returns an array of shape \(2,\) at .*; return a number"),
    "observable_of_two": (TWO, r"observable 'e': returns an array of shape \(2,\) at .*; return a number"),
    # what is no function of its arguments
    "numpy_noise": ({}, AGAIN),
    "remembers": ({}, AGAIN),
    "sees_the_one_before": ({}, AGAIN),
    # what is no function
    "a_ufunc": ({}, "step is ufunc; give a function"),
    "number": ({}, "step is float; give a function"),
    # names
    "takes_anything": ({}, r"step takes \*fields \(variadic positional\); what it reads follows from names"),
    "reads_nothing": ({}, "model.rule_parameters: the rule reads no 'rate'; it reads nothing; remove it"),
    "reads_x": ({}, "step reads 'x'; known: Q, R, rate, s, t, y"),
    "reads_no_rate": ({}, "model.rule_parameters: the rule reads no 'rate'; it reads s; remove it"),
    "reads_c": ({}, "step reads 'c'; there is none without data.signal"),
    "reads_y": ({"features": []}, "step reads 'y'; there is none without features"),
    "ojja": ({}, "has no 'ojja'; did you mean 'oja'?"),
    # kinks
    "kink_product": ({}, r"the kink 's\*s - 1' is not linear; write forms such as 's - y'"),
    "kink_unknown": ({}, "the kink 'z': 'z' is no field or parameter; known: rate, s, y"),
    "kink_parameter": (
        {"model": {"rule_parameters": {"rate": {"times": [0.0, 1.0], "values": [0.7, 0.1]}}}},
        "model.rule_parameters: a kink reads 'rate', and does not move; .* or some in phases",
    ),
    "kink_cut": ({}, "the kink 's -' cannot be read"),
    "kink_number": ({}, "the kink '1' reads no field"),
    "kink_index": ({}, r"the kink 's\[1\]': s has 1 vector"),
    "kink_infinite": ({}, "the kink 's - 1e400' is not linear"),
}

SOLVED = {
    "of_bessel": "step: does not compile .*'jv'.*, in line .*use arithmetic, functions of math and numpy, erf",
    "pole": r"step: the function or its square is not finite at y = -?[\d.]+, s = 0; let",
    "grows": "step: .*so that they may not exist; let it grow more slowly, or clip it",
    "bends": "step: the function bends, its slope jumps from -0.7 to 0.7 at s = 0.*no kink is declared; declare it",
    "kink_elsewhere": "step: the function bends, its slope jumps from -0.7 to 0.7 at s = 1.*; declare it",
    "observable_jumps": "observable 'e': the function jumps from [01] to [01] at [ys] = 0.*; declare it",
}

FILES = {
    "no such module": ({"model": {"rule": "nonesuch:rule"}}, "module 'nonesuch' cannot be imported"),
    "no such rule": ({"model": {"rule": "perceptronn"}}, "did you mean 'perceptron'?"),
    "polar": (
        {"model": {"constraint": "polar"}, "students": [{"initial_norm": 2.0}]},
        "model.constraint = 'polar' keeps students orthonormal, and they start otherwise; leave students.initial_norm",
    ),
    "dimension": ({"particles": {"dimension": 2}}, "particles.dimension = 2: 2 features and students need at least 3"),
    "rate": ({"model": {"rule_parameters": {"rate": "fast"}}}, "model.rule_parameters.rate = 'fast'"),
    "name taken": (
        {"model": {"rule_parameters": {"rate": 0.7, "y": 1.0}}}, "'y' is also what every rule may read; rename",
    ),
    "name twice": ({"data": {"coins": {"rate": 0.1}}}, "'rate' is also one of model.rule_parameters; rename"),
    "coin unread": ({"data": {"coins": {"flip": 0.1}}}, "data.coins: the rule reads no 'flip'; it reads .*; remove it"),
    "normal unread": ({"data": {"normals": ["eps"]}}, "data.normals: the rule reads no 'eps'; it reads .*; remove it"),
    "far start": ({"features": [feature(1.2)]}, "no students have them, .* eigenvalue -0.44; lower initial_overlap"),
    "overlaps": ({"features": [feature([0.1, 0.2])]}, r"features\[0\].initial_overlap has 2 number\(s\) for 1 student"),
    "between students": (
        {"students": [{}, {"initial_overlap": [0.1, 0.2]}]}, r"students\[1\].initial_overlap has 2 number\(s\)",
    ),
    "side": ({"side": {"b": {"start": 0.0}}}, "side.b.step: is missing; add it"),
    "signal": ({"data": {"signal": "spiked"}}, r"features\[0\].hidden: is missing, and data.signal = 'spiked'"),
    "prior": ({"prior": {"name": "l1", "strength": 0.1}}, "prior.name = 'l1': the order parameters close only under"),
    "joint law without signal": (
        {"hidden": JOINT}, "hidden: data.signal = 'none' shows no hidden variable; set it to 'spiked' or 'orthogonal'",
    ),
    "joint law of more": (
        {"hidden": JOINT, "data": {"signal": "spiked"}}, r"hidden: a law of 2 variable\(s\) for 1 feature\(s\)",
    ),
    "two laws": (
        {"hidden": JOINT, "data": {"signal": "spiked"}, "features": [feature(0.1, 1.0), feature(0.2)]},
        r"features\[0\].hidden: the \[hidden\] table is the joint law of all hidden variables already; remove one",
    ),
}  # fmt: skip


def refused(act, said):
    with pytest.raises((InputError, ValueError)) as caught:
        act()
    assert re.search(said, str(caught.value).replace("\n", " ")), str(caught.value)


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_rule_is_refused_before_it_is_compiled(rule):
    tables, said = RULES[rule]
    refused(lambda: check_order_parameters(problem(rule, **tables)), said)


@pytest.mark.parametrize("rule", SOLVED)
def test_a_rule_without_averages_is_refused(rule):
    refused(lambda: meanfield.solve(problem(rule), "order_parameters"), SOLVED[rule])


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_problem_file_is_refused(name):
    tables, said = FILES[name]
    refused(lambda: check_order_parameters(problem("perceptron", **tables)), said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kinks": (0.0,)}, "the kink 0.0 is no text; write a linear form such as 's - y'"),
        ({"observables": [abs]}, "observables = .*; give functions by their names"),
        ({"observables": {3: abs}}, "observables = .*; give functions by their names"),
    ],
)
def test_a_rule_of_wrong_parts_is_refused(given, said):
    refused(lambda: meanfield.Rule(abs, **given), said)


def test_simulations_refuse_what_fails_in_a_trial_call():
    from meanfield.families.update_rule.particles.simulation import simulation_of

    refused(lambda: simulation_of(problem("numpy_noise")), AGAIN)


@pytest.mark.slow
def test_a_rule_that_blows_up_says_when_and_what_to_lower():
    status = meanfield.solve(problem("cubes"), "order_parameters").attrs["status"]
    assert re.match("failed: at t = .* infinite in finite time; lower the rate in model.rule_parameters", status)


def test_a_schedule_of_a_number_of_the_rule_is_that_of_closed_forms():
    changed = problem("perceptron", model={"rule_parameters": {"rate": {"times": [0.0, 1.0], "values": [0.7, 0.1]}}})
    result = meanfield.solve(changed, "order_parameters").isel(time=-1)

    def velocity(t, y):
        R, Q = y
        rate, omega = 0.7 - 0.6 * t, R / math.sqrt(Q)
        along = rate * (1.0 - omega) / math.sqrt(2.0 * math.pi)
        return along, -2.0 * math.sqrt(Q) * along + rate**2 * math.acos(omega) / math.pi

    known = solve_ivp(velocity, (0.0, 1.0), (0.2, 1.0), rtol=1e-10, atol=1e-12).y[:, -1]
    for name, value in zip(("R", "Q"), known, strict=True):
        assert abs(result[name].item() - value) <= result[f"{name}_error"].item() + 1e-9  # error of the closed form
