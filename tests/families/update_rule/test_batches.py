"""Batches whose samples see each other: rules by hand, batches whose samples do not, SGD, and what is refused."""

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules
from meanfield.families.update_rule.order_parameters.trajectory import check_order_parameters
from meanfield.numerics.gaussian_moments.rules import Rule
from tests.families.update_rule.problems import feature

HERE = "tests.families.update_rule.rules_of_draws:"


def made(draw, **tables):
    given = {
        "model": {"rule_parameters": {"rate": 0.8}},
        "features": [feature(0.2)],
        "students": [{"initial_norm": 0.6}],
        "time": {"stop": 1.0, "outputs": 2},
        "order_parameters": {"tolerance": 1e-9},
    }
    return meanfield.Problem(family="update_rule", draws=[draw], **given | tables)


def solved(draw, **tables):
    return meanfield.solve(made(draw, **tables), "order_parameters").isel(time=-1)


def test_a_centred_batch_of_two_follows_its_closed_form():
    """F_1 = rate (e_1 - e_2)/4 = -F_2, with errors e of variance 1 - 2 R + Q: half the gain, a fourth of Lambda."""

    def velocity(t, x):
        R, Q = x
        return [0.4 * (1.0 - R), 0.8 * (R - Q) + 0.16 * (1.0 - 2.0 * R + Q)]

    result = solved({"samples": 2, "gain": {"s": HERE + "centred_regression"}})
    known = solve_ivp(velocity, (0.0, 1.0), [0.2, 0.6], rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(np.ravel([result["R"], result["Q"]]) - known).max() < 1e-9  # the tolerance


OMEGA, V, RATE = 2.0, 0.4, 0.9
INFO = {"samples": 2, "views": 2, "gain": {"s": [HERE + "info_first", HERE + "info_second"]}}
INFO |= {"view_covariance": [[V, 0.0], [0.0, V]]}


def info(**tables):
    """InfoNCE with two samples of two views, each with a hidden sign, on the sphere."""
    signs = {"law": "discrete", "values": [-(OMEGA**0.5), OMEGA**0.5], "probabilities": [0.5, 0.5]}
    given = {
        "model": {"rule_parameters": {"rate": RATE}, "constraint": "sphere"},
        "data": {"signal": "spiked"},
        "features": [feature(0.4, hidden=signs)],
        "students": [{}],
    }
    return made(INFO, **given | tables)


def info_velocity(R, nodes):
    """dR/dt by sums over signs and Gauss-Hermite nodes of the four fields, the unread ones by hand."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    z = np.array(np.meshgrid(x, x, x, x, indexing="ij")).reshape(4, -1)
    weight = np.prod(np.meshgrid(*[weight / weight.sum()] * 4, indexing="ij"), axis=0).ravel()
    root = np.linalg.cholesky([[1.0 + V, 1.0], [1.0, 1.0 + V]])  # of the noise of both views, as |w|^2 = N
    E_y = E_s = square = 0.0
    for signs in np.ndindex(2, 2):
        c = np.sqrt(OMEGA) * (2.0 * np.array(signs) - 1.0)
        noise = [root @ z[2 * b : 2 * b + 2] for b in (0, 1)]
        s = [c[b] * R + noise[b] for b in (0, 1)]  # s[b][view]
        right = [1.0 / (1.0 + np.exp(s[b][0] * (s[1 - b][1] - s[b][1]))) for b in (0, 1)]  # p_bb
        F = [
            [
                0.5 * RATE * (1.0 - right[b]) * (s[b][1] - s[1 - b][1]),
                0.5 * RATE * ((1.0 - right[b]) * s[b][0] - (1.0 - right[1 - b]) * s[1 - b][0]),
            ]
            for b in (0, 1)
        ]
        for b in (0, 1):
            for view in (0, 1):
                E_s += 0.25 * weight @ (s[b][view] * F[b][view])
                E_y += 0.25 * weight @ ((c[b] + R * noise[b][view]) * F[b][view])
                square += 0.25 * weight @ ((1.0 + V) * F[b][view] ** 2 + F[b][view] * F[b][1 - view])
    return E_y - R * (E_s + 0.5 * square)


def test_info_nce_with_two_samples_is_the_rule_by_hand():
    """Both by nodes in each of four directions, of other rules in other coordinates."""
    equations = Equations(info())
    (draw,) = equations.stretches[0].system.draws
    rate = equations.velocity(0, Rules(((),), ((Rule("smooth", 32, draw.update.kinks),),), ((),)))
    assert abs(rate(0.0, equations.start)[0] - info_velocity(0.4, 26)) < 1e-5  # four times what fewer nodes say


@pytest.mark.slow
@pytest.mark.parametrize(("method", "runs"), [("plain", 64), ("chain", 2000)])
def test_the_mean_of_sgd_is_the_limit(method, runs):
    """With a fixed seed; had it been drawn at random, one of the two would fail in 1 of 10,000 cases."""
    particles = {"dimension": 500, "replicas": runs, "seed": 3, "method": method}
    draw = {"samples": 2, "gain": {"s": HERE + "centred_regression"}}
    problem = info(order_parameters={"tolerance": 1e-6}, particles=particles)
    problem = meanfield.with_value(problem, "draws", [draw | ({"observed": 0.7} if method == "plain" else {})])
    limit, sgd = (meanfield.solve(problem, name).isel(time=-1) for name in ("order_parameters", "particles"))
    spread = sgd["R"].std("replica", ddof=1).item() / np.sqrt(runs)
    assert abs((sgd["R"].mean("replica") - limit["R"]).item()) < 4.2 * spread
    C, scatter = limit["R_covariance"].item(), 500 * sgd["R"].var("replica", ddof=1).item()
    assert abs(scatter / C - 1.0) < 4.2 * np.sqrt(2.0 / runs) + 0.02  # what N = 500 has beyond leading order


@pytest.mark.slow  # batches whose samples see each other are held against a rule by hand above
def test_a_batch_whose_samples_see_nothing_of_each_other_is_one():
    """Of two groups, with moves, hidden variables, coins and normal numbers."""
    tables = {
        "data": {"coins": {"flip": 0.3}, "normals": ["eps"]},
        "model": {"rule_parameters": {"rate": 0.3}},
        "features": [{"initial_overlap": [0.3, -0.2, 0.1]}],
        "groups": [{"name": "w", "constraint": "sphere"}, {"name": "V"}],
        "students": [
            {"group": "w", "initial_norm": 0.8},
            {"group": "V", "initial_overlap": [0.2], "hidden": {"law": "gaussian", "second_moment": 0.7}},
            {"group": "V", "initial_overlap": [0.1, 0.3], "hidden": {"law": "gaussian", "second_moment": 1.5}},
        ],
    }
    rates = []
    for which, size in (("alone", {"batch_size": 2}), ("together", {"samples": 2, "batch_size": 1})):
        functions = {
            "gain": {"V": f"{HERE}drawn_{which}", "w": f"{HERE}fake_{which}"},
            "move": {"V": {"w": f"{HERE}taught_{which}"}},
        }
        equations = Equations(made({"along": "V", "noise": 0.7} | functions | size, **tables))
        (draw,) = equations.stretches[0].system.draws
        rule = Rule("polynomial", 2, draw.update.kinks)  # exact for products of two linear functions
        rates.append(equations.velocity(0, Rules(((),), ((rule,),), ((),)))(0.0, equations.start))
    np.testing.assert_allclose(rates[0], rates[1], rtol=0, atol=1e-13)  # rounding


def test_averages_over_samples_are_those_of_one():
    one, other = (
        solved({"gain": {"s": HERE + rule}, "means": [HERE + "square"]} | size)
        for rule, size in (("normalised", {"batch_size": 3}), ("normalised_batch", {"samples": 3}))
    )
    for name in ("R", "Q"):
        assert np.abs(one[name] - other[name]).max() < 1e-9  # the tolerance


def test_kinks_lie_between_samples():
    """F = rate for the larger of two outputs of variance Q: <s F> summed is rate times the mean of it, sqrt(Q/pi)."""
    result = solved({"samples": 2, "gain": {"s": HERE + "larger"}}, features=[])
    known = solve_ivp(lambda t, Q: 1.6 * np.sqrt(Q / np.pi) + 0.64, (0.0, 1.0), [0.6], rtol=1e-11, atol=1e-12).y[0, -1]
    assert abs(result["Q"].item() - known) < 1e-8  # ten times the tolerance


def test_observables_are_those_of_a_batch():
    draw = {"samples": 2, "along": "u", "observables": {"size": HERE + "size_of_batch"}}
    tables = {
        "groups": [{"name": "w"}],
        "students": [{"group": "w", "initial_norm": 0.6}],
        "features": [feature(0.2, 2.0), feature(0.1, 1.0)],
        "data": {"signal": "spiked"},
        "model": {"rule_parameters": {}},
    }
    found = solved(draw, **tables)["observables"].item()
    assert abs(found - (0.6 + 2.0 * 0.04 + 0.01)) < 1e-12  # rounding


MISTAKES = {
    "one": ({"samples": 1}, {}, r"draws\[0\].samples = 1: .*at least 2|greater than or equal to 2"),
    "many": ({"samples": 65}, {}, r"draws\[0\].samples = 65: "),
    "shape": ({"samples": 3, "gain": {"s": HERE + "larger"}}, {}, r"returns an array of shape \(2,\) .*\(3,\)"),
    "index": ({"samples": 2, "gain": {"s": HERE + "info_first"}}, {}, r"reads 's1'"),
    "scale": (
        {"samples": 2},
        {"data": {"scale": {"law": "lognormal", "deviation": 0.5}}},
        r"draws\[0\].samples: of samples that see each other, all have noise of one size, and data.scale gives each",
    ),
    "number": ({"samples": 2, "gain": {"s": HERE + "number_of_array"}}, {}, "has no 'number_of_array'"),
    "masks": ({"samples": 2, "observed": [0.5, 0.5]}, {}, r"observed has 2 number\(s\) for 1 view\(s\); give one"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    draw, tables, said = MISTAKES[name]
    with pytest.raises((meanfield.InputError, ValueError)) as caught:
        check_order_parameters(made({"gain": {"s": HERE + "centred_regression"}} | draw, **tables))
    assert re.search(said, str(caught.value).replace("\n", " ")), str(caught.value)
