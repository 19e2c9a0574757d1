"""Equations that update rules print, evaluated by SymPy, against rules, rates, and averages over samples."""

import inspect
from itertools import product

import numpy as np
import pytest

import meanfield
from meanfield.families.update_rule.averages import Averages
from meanfield.families.update_rule.model import RULES
from meanfield.families.update_rule.order_parameters.equations import Equations, decay_of
from meanfield.families.update_rule.rates import packed, rates_of, unpacked
from tests.families.update_rule.problems import feature
from tests.printed_equations import evaluate, lines_of, section

ROUNDING = 1e-12
"""Largest error of a formula: sums of some ten terms of order 1 in double precision."""

INDICES = "kl"


def committee(y, s, rate):
    return rate * (y.sum() - s.sum()) * (1 - s**2 / 3)


def bends(s, rate):
    return rate * s if s > 0 else 0.0


def problem(rule, size=1, model=None, **keys):
    """Problem of a rule with as many features as students."""
    return meanfield.Problem(
        family="update_rule",
        model={"rule": rule, "rule_parameters": {"rate": 0.7}} | (model or {}),
        features=[feature(0.2)] * size,
        students=[{"initial_norm": 0.5 + 0.3 * k} for k in range(size)],
        time={"stop": 1.0},
        **keys,
    )


def printed_rates(given, R, Q, values, average):
    """dR/dt and dQ/dt as they are printed, entry by entry; `values` has fields and steps by name."""
    (K, M), lines = R.shape, section(given, "Order")
    found = np.empty((K, M)), np.empty((K, K))
    for k, m, j in product(range(K), range(K), range(M)):
        place = {"k": k, "l": m, "j": j}
        known = {}
        for name, each in values.items():
            for letter in "j" if name == "y" else INDICES:
                several = M > 1 if name == "y" else K > 1
                known[f"{name}_{{{letter}}}" if several else name] = each[place[letter]]
        at = [letter if several else "" for letter, several in (("k", K > 1), ("l", K > 1), ("j", M > 1))]
        names = [f"{name}_{{{a}{b}}}" if a + b else name for name, a, b in (("R", at[0], at[2]), ("Q", *at[:2]))]
        known |= {names[0]: R[k, j], names[1]: Q[k, m]}
        if K > 1:
            known["Q_{kk}"] = Q[k, k]
        if sphere := lines_of(lines, "S", "S_{k}"):
            for letter in INDICES if K > 1 else [""]:
                i = place.get(letter, 0)
                turned = {f"{name}_{{k}}": values[name][i] for name in "Fs"} if K > 1 else {}
                name = f"S_{{{letter}}}" if letter else "S"
                own_length = {"Q_{kk}": Q[i, i]} if K > 1 else {}
                (known[name],) = next(iter(evaluate(sphere, known | turned | own_length, average()).values()))
        for which, array in zip("RQ", found, strict=True):
            left = [line for line in lines if str(line.left).startswith(rf"\frac{{\mathrm d{which}")]
            (value,) = next(iter(evaluate(left, known, average()).values()))
            array[k, j if which == "R" else m] = value
    return found


@pytest.mark.parametrize("constraint", ["none", "sphere"])
@pytest.mark.parametrize("prior", ["none", "l2"])
@pytest.mark.parametrize("size", [1, 2])
def test_rates_are_those_of_the_code(size, prior, constraint):
    given = problem(
        committee if size > 1 else "perceptron",
        size,
        {"constraint": constraint, "batch_size": 3},
        prior={"name": prior, "strength": 0.3},
        data={"noise": 1.5, "observed": 0.8},
    )
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(size, 100)) for name in "ysF"}
    vectors = rng.normal(size=(2 * size, 50))
    G = vectors @ vectors.T / 50
    G[:size, :size] = np.eye(size)
    fields = np.vstack([values["y"], values["s"]])
    E, Lambda = fields @ values["F"].T / 100, 1.5 * 0.8 / 3 * values["F"] @ values["F"].T / 100
    averages = Averages(E, np.zeros_like(E), Lambda, np.empty(0))
    right = rates_of(averages, G, size, decay_of(given), given.constraints)
    R, Q = G[size:, :size], G[size:, size:]
    found = printed_rates(given, R, Q, values, lambda: {"average_of": np.mean})
    assert np.abs(found[0] - right.R).max() <= ROUNDING
    assert np.abs(found[1] - right.Q).max() <= ROUNDING


def test_averages_over_the_fields_that_are_printed_are_those_of_the_limit():
    data, prior = {"noise": 1.5, "observed": 0.8}, {"name": "l2", "strength": 0.1}
    given = problem(committee, 2, {"batch_size": 4}, data=data, prior=prior)
    equations = Equations(given)
    choices = equations.choose([(0.0, equations.start)], 1e-9, {})
    velocity = equations.velocity(0, equations.rules(choices, lambda each: each.rule))(0.0, equations.start)
    right = unpacked(velocity, 2, 2)
    R, Q = given.initial_R, given.initial_Q
    G = np.block([[np.eye(2), R.T], [R, Q]])
    covariance = evaluate(lines_of(section(given, "Fields"), r"\mathrm{Cov}[\psi | c]"), {"G": G})
    x, weight = np.polynomial.hermite_e.hermegauss(5)  # exact to degree 9: those of F are at most 6
    nodes = np.array(list(product(x, repeat=4))).T
    weights = np.prod(list(product(weight / weight.sum(), repeat=4)), axis=1)
    fields = np.linalg.cholesky(covariance[r"\mathrm{Cov}[\psi | c]"][0]) @ nodes
    values = {"y": fields[:2], "s": fields[2:]}
    named = {f"{name}_{i + 1}": each for name, rows in values.items() for i, each in enumerate(rows)}
    steps = evaluate(lines_of(section(given, "Step"), "F_1", "F_2"), named)
    values["F"] = np.array([steps["F_1"][0], steps["F_2"][0]])
    found = printed_rates(given, R, Q, values, lambda: {"average_of": lambda of: of @ weights})
    assert np.abs(packed(right._replace(R=found[0], Q=found[1])) - velocity).max() <= ROUNDING


@pytest.mark.parametrize("name", [*RULES, committee])
def test_steps_are_what_they_print(name):
    size = 2 if name is committee else 1
    step = committee if name is committee else RULES[name].step
    given, (y, s) = problem(name, size), np.random.default_rng(0).normal(size=(2, size, 100))
    fields = {"y": y, "s": s}
    named = {(f"{key}_{i + 1}" if size > 1 else key): each for key in fields for i, each in enumerate(fields[key])}
    found = evaluate(lines_of(section(given, "Step"), "F", "F_1", "F_2"), named)
    reads = [key for key in fields if key in inspect.signature(step).parameters]
    samples = [{key: fields[key][:, n] if size > 1 else fields[key][0, n] for key in reads} for n in range(100)]
    right = np.array([np.atleast_1d(step(rate=0.7, **each)) for each in samples]).T
    assert np.abs(np.array([each[0] for each in found.values()]) - right).max() <= ROUNDING * np.abs(right).max()


def test_a_step_that_is_no_arithmetic_has_its_name():
    given = problem(bends)
    assert not lines_of(section(given, "Step"), "F")
    assert r"$F$ & \verb|model.rule|" in given.latex()
