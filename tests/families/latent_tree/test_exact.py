"""Exact averages, gradients and operators of latent trees, against reference numbers and enumeration."""

import re

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.operators import check_operators, operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.samples import Sampler, batch_slope, draw_batch
from meanfield.families.latent_tree.tables import Tables
from tests.families.latent_tree import enumeration
from tests.families.latent_tree.problems import REGULAR, case_b, drawn, several, trigonometric

DIGITS = 6e-13  # half a unit of the last printed digit, and rounding

EVERY_LOSS = [
    {"kind": "simple"},
    {"kind": "beta", "beta": -0.4},
    {"kind": "triplet", "margin": 0.2, "temperature": 0.5},
    {"kind": "infonce", "temperature": 0.5},
    {"kind": "exact", "negatives": 2, "temperature": 0.5},
    {"kind": "batch_ratio", "temperature": 0.3},
    {"kind": "nt_xent", "temperature": 0.5, "batch_size": 2},
]

EVERY_CASE = [(loss, normalised) for normalised in (False, True) for loss in EVERY_LOSS[: -1 if normalised else None]]
"""Losses with outputs as they are and normalised, as those of `nt_xent` always are."""

CASES = [f"{loss['kind']}{'-normalised' * normalised}" for loss, normalised in EVERY_CASE]


def norms(parts):
    return [np.linalg.norm(part) for part in parts]


def evaluated(problem):
    tables = Tables(problem)
    found = tables.forward(problem.initial_weights)
    evaluation = tables.evaluate(found)
    return tables, found, evaluation, tables.gradient(found, tables.by_last(found, evaluation.slope))


def test_four_leaves_have_the_reference_values():
    result = meanfield.solve(case_b(), "operator")
    assert float(result["loss"]) == pytest.approx(-0.1417748622, rel=0, abs=DIGITS)
    assert np.allclose(result["gradient_norm"], [0.38772510467325, 0.36657544964155], rtol=0, atol=DIGITS)
    assert np.allclose(result["selectivity"][1:], [[0.235, 0.545], [0.1125, 0.27]], rtol=0, atol=DIGITS)
    assert np.allclose(2 * result["selectivity"][0], [-0.47695, 0.6027], rtol=0, atol=DIGITS)
    top = [0.2369559, 0.24631632825612, 0.02982738250241]
    assert np.allclose(result["operator_top"], top, rtol=0, atol=DIGITS)
    rest = np.array([0.2369559, 0.01125935174388, 0.01221011749759])  # the other eigenvalues, which are two in all
    assert np.allclose(result["operator_norm"], np.hypot(top, rest), rtol=0, atol=DIGITS)


def test_four_leaves_with_normalised_outputs_have_the_reference_values():
    result = meanfield.solve(case_b(normalised=True), "operator")
    assert float(result["loss"]) == pytest.approx(-0.26678185674592, rel=0, abs=DIGITS)
    assert np.allclose(result["gradient_norm"], [0.28704393242615, 0.29054834796251], rtol=0, atol=DIGITS)


@pytest.mark.parametrize(
    ("one", "loss", "weights", "operator"),
    [
        (0.5, -0.036323571813, [0.127661280384, 0.118374481895], [0.136390035164, 0.066936614265, 0.045799107471]),
        (0.7, -0.030511800323, [0.107235475522, 0.099434564792], [0.114567629538, 0.056226755983, 0.038471250276]),
    ],
)
def test_networks_with_biases_have_the_reference_values(one, loss, weights, operator):
    problem = trigonometric(one=one)
    tables, found, evaluation, gradient = evaluated(problem)
    assert evaluation.value == pytest.approx(loss, rel=0, abs=DIGITS)
    assert np.allclose(norms(gradient.W), weights, rtol=0, atol=DIGITS)
    assert np.allclose([x.norm for x in operators(tables, found, evaluation)], operator, rtol=0, atol=DIGITS)
    if one == 0.5:
        assert np.allclose(norms(gradient.b), [0.099674390442, 0.0], rtol=0, atol=DIGITS)
        assert evaluated(trigonometric(normalised=True))[2].value == pytest.approx(-0.389773504814, rel=0, abs=DIGITS)


def test_a_deeper_tree_has_the_reference_values_and_is_homogeneous():
    _, found, evaluation, gradient = evaluated(trigonometric(depth=3, nodes=3, bias=False))
    assert 2 * evaluation.value == pytest.approx(-0.000073419949, rel=0, abs=DIGITS)
    products = [np.sum(g * w) for g, w in zip(gradient.W, found.weights.W, strict=True)]
    assert np.allclose(products, 2 * evaluation.value, rtol=1e-12)  # rounding


@pytest.mark.parametrize(("loss", "normalised"), EVERY_CASE, ids=CASES)
@pytest.mark.parametrize("children", [(3,), (2, 2), (2, 1, 2), (1, 2, 1, 2)], ids=str)
def test_losses_and_gradients_are_those_of_enumeration(children, loss, normalised):
    leaves = (-1.0, 1.0) if len(children) == 2 else (0.0, 1.0)
    problem = drawn(children, normalised=normalised, bias=len(children) < 3, leaves=leaves, seed=10, **loss)
    _, found, evaluation, gradient = evaluated(problem)
    assert all(np.abs(part).max() > 1e-8 for part in gradient.W)  # else nothing is tested
    W, b = ([part.astype(complex) for part in parts] for parts in (found.weights.W, found.weights.b))
    value, slopes = enumeration.gradient(problem, W, b)
    assert evaluation.value == pytest.approx(value, rel=1e-12, abs=1e-16)  # rounding
    scale = np.abs(slopes).max()
    assert np.allclose(gradient.vector, slopes, rtol=0, atol=1e-12 * scale + 1e-16)  # rounding


@pytest.mark.parametrize(("loss", "normalised"), EVERY_CASE, ids=CASES)
@pytest.mark.parametrize("children", [(3,), (1, 3), (1, 1, 2), (1, 1, 1, 3)], ids=str)
def test_operators_give_the_gradient_of_levels_with_one_latent(children, loss, normalised):
    problem = drawn(children, nodes=3, normalised=normalised, seed=10, **loss)
    tables, found, evaluation, gradient = evaluated(problem)
    made = operators(tables, found, evaluation)  # the root first
    for level, operator in zip(reversed(problem.shape.levels), made, strict=False):
        expected = -gradient.W[level - 1].ravel()
        assert np.abs(expected).max() > 1e-8  # else nothing is tested
        product = 2.0 * operator.matrix @ found.weights.W[level - 1].ravel()
        assert np.allclose(product, expected, rtol=0, atol=1e-12 * np.abs(expected).max() + 1e-16)  # rounding
        values = np.linalg.eigvals(operator.matrix)
        assert operator.norm == pytest.approx(np.linalg.norm(operator.matrix), rel=1e-10, abs=1e-14)  # rounding
        assert operator.top == pytest.approx(values.real.max(), rel=1e-6, abs=1e-9)  # defective eigenvalues


def test_four_binary_levels_agree_with_sampled_batches():
    """65,536 configurations of the leaves, with 224 different outputs: loss and gradient against 20,000 anchors."""
    data = {
        "tree": {"depth": 4, "polarity": {"law": "uniform", "low": 0.9, "seed": 10}},
        "network": {"nodes_per_latent": 2, "bias": True, "output_normalisation": True}
        | {"initial": {"law": "uniform", "seed": 10}},
        "loss": {"kind": "infonce", "negatives": 3, "temperature": 0.3},
        "training": {"batch_size": 400},
        "time": {"stop": 1.0},
    }
    problem = Problem.model_validate(data)
    _, found, evaluation, gradient = evaluated(problem)
    output, sampler, rng, parts = problem.output, Sampler(problem), np.random.default_rng(0), []
    for _ in range(50):
        x = draw_batch(problem, sampler, rng)
        activity = network.forward(found.weights, x.reshape(-1, 16))
        value, slope = batch_slope(problem.loss.contrast, output.value(activity.last).reshape(*x.shape[:2], -1))
        by_last = output.back(activity.last, slope.reshape(activity.last.shape))
        parts.append(np.concatenate([[value], network.gradient(found.weights, activity, by_last).vector]))
    error = np.std(parts, axis=0, ddof=1) / np.sqrt(50) + 1e-15  # nodes that are never active have no gradient
    exact = np.concatenate([[evaluation.value], gradient.vector])
    assert np.abs((np.mean(parts, axis=0) - exact) / error).max() < 5.0  # standard errors of 50 batches; seed fixed
    assert np.abs(exact[1:] / error[1:]).max() > 10.0  # else nothing is tested


def test_means_given_the_root_need_no_table_of_the_root():
    """The recursion over children gives what enumeration of all leaves gives: 1e-12 for rounding."""
    plain = drawn((2, 2, 2), nodes=3, bias=True, kind="simple")
    whole = drawn((2, 2, 2), nodes=3, bias=True, kind="exact", temperature=1e6)  # weights are 1/(2 tau) there
    assert not Tables(plain).whole
    assert Tables(whole).whole
    _, _, one, first = evaluated(plain)
    _, _, other, second = evaluated(whole)
    assert other.value * 2e6 == pytest.approx(one.value, rel=1e-5)  # the weights differ from that by r/(2 tau)
    largest = np.abs(first.vector).max()
    assert np.allclose(2e6 * second.vector, first.vector, rtol=0, atol=1e-5 * largest)  # the same


def test_moments_are_those_of_enumeration():
    problem = drawn((2, 3), nodes=3, bias=True, leaves=(-0.5, 1.0))
    tables = Tables(problem)
    moments = tables.moments(tables.forward(problem.initial_weights))
    leaves, P = enumeration.leaf_law(problem)
    activity, p = network.forward(problem.initial_weights, leaves), np.array(problem.tree.root)
    u = activity.before[-1][0]
    gap, mean = (P[1] - P[0]) @ u, p @ P @ u
    spread = p @ P @ (u * u) - mean**2
    assert np.allclose(moments.gap[0], gap, rtol=1e-12)  # rounding
    assert np.allclose(moments.correlation[0], np.sqrt(p.prod()) * gap / np.sqrt(spread), rtol=1e-12)  # rounding
    assert np.allclose(2.0 * moments.selectivity[0], gap, rtol=1e-12)  # rounding


def test_growth_rates_are_derivatives_along_the_flow():
    problem = drawn((2, 2), nodes=2, normalised=True, seed=4)
    result = meanfield.solve(problem, "operator")
    tables, found, _, gradient = evaluated(problem)
    h = 1e-6

    def gap(t):
        weights = found.weights.like(found.weights.vector - t * gradient.vector)
        return tables.moments(tables.forward(weights)).gap

    rate = (np.log(np.abs(gap(h))) - np.log(np.abs(gap(-h)))) / (2 * h)
    assert np.allclose(result["growth_rate"], rate, rtol=1e-6, atol=1e-8)  # h^2, and rounding over h


def test_what_does_not_fit_is_refused_with_its_size():
    for problem, words in (
        (drawn((2,) * 6), "need tables of all latents below with 1.72e+10 entries"),
        (drawn((2,) * 5, normalised=True), "set network.output_normalisation to false"),
        (drawn((2,) * 4, nodes=4, kind="infonce"), "46,080 different outputs"),
        (drawn((2,) * 4, nodes=4, kind="exact"), "have 2.12e+09 pairs"),
    ):
        with pytest.raises(InputError) as error:
            meanfield.solve(problem, "population")
        assert words in str(error.value)
        assert "'particles'" in str(error.value)


SAMPLED = [
    (drawn((2, 2, 2), nodes=2, normalised=True, seed=1, kind="infonce"), 300),
    pytest.param(drawn((2, 2, 2), nodes=2, seed=1, kind="beta", beta=0.2), 2000, marks=pytest.mark.slow),
    (several([2, 3, 2], edges=REGULAR, bias=False), 2000),
    (several(normalised=True, nodes=3), 2000),
]
"""Problems with exact operators, and numbers of views of each value of the root; that of beta takes 7 s."""


@pytest.mark.parametrize(("problem", "samples"), SAMPLED, ids=["infonce", "beta", "three values", "normalised"])
def test_operators_of_views_are_exact_within_their_errors(problem, samples, monkeypatch):
    exact = meanfield.solve(problem, "operator")
    monkeypatch.setattr("meanfield.families.latent_tree.initial.fits", lambda problem: False)
    found = meanfield.solve(meanfield.with_value(problem, "operator.samples", samples), "operator")
    off = [
        (np.abs(found[name] - exact[name]) / found[f"{name}_error"]).values.ravel()
        for name in ("loss", "gradient_norm", "operator_norm", "operator_top", "growth_rate", "correlation")
    ]
    off = np.concatenate(off)[np.isfinite(np.concatenate(off))]
    # 7 standard errors of 7 degrees of freedom: one of 5000 averages is beyond; seeds are fixed
    assert off.max() < 2.0
    assert (off < 1.0).mean() > 0.9  # an error is exceeded by one average of a hundred, and these move together
    assert np.median(off) > 0.05  # else errors are larger than they are said to be
    assert f"{samples:,} views of each value of the root" in found.attrs["warning"]


def test_trees_whose_tables_do_not_fit_have_operators_of_views():
    problem = meanfield.with_value(drawn((2,) * 6, normalised=True), "operator.samples", 200)
    result = meanfield.solve(problem, "operator")
    assert float(result["loss_error"]) > 0.0
    with pytest.raises(InputError, match="lower it to") as error:
        meanfield.solve(
            meanfield.with_value(drawn((2,) * 4, nodes=10, kind="beta", beta=0.1), "operator.samples", 4000), "operator"
        )
    fewer = int(re.search(r"lower it to ([\d,]+)", str(error.value))[1].replace(",", ""))
    check_operators(meanfield.with_value(drawn((2,) * 4, nodes=10, kind="beta", beta=0.1), "operator.samples", fewer))


def test_trees_with_too_many_pairs_of_leaves_have_operators_of_views():
    """The connections of 65,536 configurations fit, and a table of all pairs of them does not."""
    problem = meanfield.with_value(drawn((2,) * 4, normalised=True, kind="infonce"), "operator.samples", 80)
    assert "80 views of each value of the root" in meanfield.solve(problem, "operator").attrs["warning"]
