"""Fits of numbers of a problem to runs: likelihood, derivatives, estimates, verdicts, refusals."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import meanfield
from meanfield import InputError
from meanfield.families.contrastive.order_parameters.trajectory import overlaps_in_time
from meanfield.fitting import estimates, format_fit
from meanfield.fitting.likelihood import Data, Likelihood
from meanfield.numerics.linear_noise import noise_in_time

KEYS = ["model.learning_rate", "features[0].hidden.second_moment"]
TRUE = np.array([0.3, 1.6])


def neuron(**keys):
    model = {"activation": "linear", "learning_rate": 0.3, "batch_size": 2}
    feature = {"hidden": {"law": "gaussian", "second_moment": 1.6}, "initial_overlap": 0.3}
    particles = {"method": "chain", "dimension": 2000, "replicas": 8, "seed": 5}
    time = {"stop": 6.0, "outputs": 7}
    return meanfield.Problem(**{"model": model, "features": [feature], "time": time, "particles": particles} | keys)


@pytest.fixture(scope="module")
def runs():
    return meanfield.simulate_sgd(neuron())


def test_covariance_between_times_is_that_of_ornstein_and_uhlenbeck():
    a, s, times = np.array([[1.0, 0.4], [0.0, 0.5]]), np.diag([2.0, 1.0]), np.array([0.0, 0.3, 1.0, 2.0])
    stretches = [(np.array([0.0, 0.3, 0.7]), lambda t: (-a, s)), (np.array([0.7, 1.0, 2.0]), lambda t: (-a, s))]
    found = noise_in_time(stretches, times, np.zeros((4, 2)), None)
    w, V = np.linalg.eig(a)
    inner = np.linalg.solve(V, np.linalg.solve(V, s).T)

    def carried(t):
        return (V * np.exp(-w * t)) @ np.linalg.inv(V)

    for i, later in enumerate(times):
        for j, earlier in enumerate(times[: i + 1]):
            sums = w[:, None] + w
            stationary = V @ (inner * (1.0 - np.exp(-sums * earlier)) / sums) @ V.T
            expected = carried(later - earlier) @ stationary
            np.testing.assert_allclose(found.covariance[i, :, j], expected, rtol=0, atol=1e-7)  # of the integrator
        np.testing.assert_allclose(found.by_start[i], carried(later), rtol=0, atol=1e-7)


def likelihood(runs, values=TRUE):
    problem = neuron()
    given = meanfield.with_values(problem, dict(zip(KEYS, values.tolist(), strict=True)))
    return Likelihood.of(Data.of(problem, runs), overlaps_in_time(given))


def test_the_likelihood_is_that_of_a_normal_law(runs):
    found, other = likelihood(runs), likelihood(runs, 1.1 * TRUE)
    logs = [multivariate_normal(cov=each.covariance / 2000).logpdf(each.away).sum() for each in (found, other)]
    assert found.value - other.value == pytest.approx(logs[0] - logs[1], rel=1e-7)  # `ROUNDING`


def test_the_score_is_the_slope_of_the_likelihood(runs):
    values = 1.05 * TRUE
    here = likelihood(runs, values)
    score, information = estimates._score(here, estimates._effects(KEYS, values, here, lambda v: likelihood(runs, v)))
    for i in range(2):
        h = np.zeros(2)
        h[i] = 1e-4
        slope = (likelihood(runs, values + h).value - likelihood(runs, values - h).value) / 2e-4
        assert score[i] == pytest.approx(slope, rel=1e-4)  # the step of differences
    assert np.linalg.eigvalsh(information)[0] > 0


def test_estimates_their_intervals_and_the_verdict(runs, tmp_path):
    start = meanfield.with_values(neuron(), dict(zip(KEYS, (1.2 * TRUE).tolist(), strict=True)))
    found = meanfield.fit(start, runs, KEYS)
    half = 0.5 * (found["upper"] - found["lower"]).values
    assert np.all(np.abs(found["estimate"].values - TRUE) < 2.0 * half)  # one seed; four errors: 1 in 10,000
    assert np.all(half / TRUE < 0.15)
    assert found.attrs["verdict"] == "AGREES"
    assert "fitted limit - runs: AGREES; chi^2 of means" in format_fit(found)
    meanfield.save(found, tmp_path / "fit.nc")
    assert meanfield.load(tmp_path / "fit.nc").identical(found)
    thinned = meanfield.fit(neuron(), runs.isel(time=slice(None, None, 2), replica=[0]), KEYS[:1])
    assert thinned["part"].values.tolist() == ["means"]


def test_runs_of_another_problem_differ(runs):
    wrong = meanfield.with_value(neuron(), KEYS[1], 1.4)
    assert meanfield.fit(wrong, runs, KEYS[:1]).attrs["verdict"] == "DIFFERS"


@pytest.mark.slow  # two fits
def test_a_scattered_start_is_carried_on(runs):
    """Runs that start a little off are told nothing else by it."""
    limit = overlaps_in_time(neuron())
    moved = runs.copy(deep=True)
    moved["q"].values[:] += 0.01 * limit.by_start[:, 0, 0][None, :, None]
    here, there = (meanfield.fit(neuron(), each, KEYS)["estimate"].values for each in (runs, moved))
    assert there == pytest.approx(here, rel=2e-2)  # of second order, (0.01/0.3)^2, times its leverage


@pytest.mark.slow  # the kernels of a rule
def test_an_update_rule():
    def regression(y, s, eps, rate, sigma):
        return rate * (y + sigma * eps - s)

    problem = meanfield.Problem(
        family="update_rule",
        model={"rule": regression, "rule_parameters": {"rate": 0.4, "sigma": 0.5}},
        data={"normals": ["eps"]},
        features=[{"initial_overlap": 0.3}],
        time={"stop": 6.0, "outputs": 7},
        particles={"method": "chain", "dimension": 2000, "replicas": 8, "seed": 5},
    )
    keys = ["model.rule_parameters.rate", "model.rule_parameters.sigma"]
    found = meanfield.fit(problem, meanfield.simulate_sgd(problem), keys)
    assert np.all(np.abs(found["estimate"].values - [0.4, 0.5]) < (found["upper"] - found["lower"]).values)
    assert found.attrs["verdict"] == "AGREES"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("model.learning_rate", "give a list of keys"),
        ([], "give a list of keys"),
        (["model.learning_rat"], "no key 'model.learning_rat'"),
        (["model.batch_size"], "takes whole numbers only"),
        (["model.learning_rate"] * 2, "stands there twice"),
        (["prior.strength"], "nothing that the runs show after their start depends on 'prior.strength'"),
        (["features[0].initial_overlap"], "decides the start, which the runs show themselves"),
        (
            [*KEYS, "augmentation.variance[0]", "augmentation.variance[1]"],
            r"cannot be told apart, .* changes .*variance\[0\] by .*eigenvalue .* of the Fisher information",
        ),
    ],
)
def test_keys_that_cannot_be_estimated_are_refused(runs, keys, words):
    noisy = neuron(augmentation={"variance": [0.3, 0.3]})
    with pytest.raises(InputError, match=words):
        meanfield.fit(noisy, runs, keys)


def test_a_number_that_others_decide_is_refused(runs):
    law = {"law": "discrete", "values": [-1.0, 1.6], "probabilities": [0.5, 0.5]}
    given = neuron(features=[{"hidden": law, "initial_overlap": 0.3}])
    with pytest.raises(InputError, match=r"probabilities\[0\]' = 0.5 cannot be varied alone; leave it out"):
        meanfield.fit(given, runs, ["features[0].hidden.probabilities[0]"])


def test_what_is_no_set_of_runs_is_refused(runs):
    problem = neuron()
    for given, words in (
        (meanfield.solve_order_parameters(problem), "kind 'order_parameters' holds no single runs"),
        (runs.isel(time=slice(1, None)), "begin after t = 0"),
    ):
        with pytest.raises(InputError, match=words):
            meanfield.fit(problem, given, KEYS)
    with pytest.raises(InputError, match="t = 1, which is no output time"):
        meanfield.fit(neuron(time={"stop": 6.0, "outputs": 3}), runs, KEYS)
    centred = neuron(model={"activation": "linear", "learning_rate": 0.3, "batch_size": 2, "centering": "batch"})
    with pytest.raises(InputError, match=r"model.centering = 'batch'"):
        meanfield.fit(centred, runs, KEYS)
    tree = meanfield.load_problem("data/problems/latent_tree.toml")
    with pytest.raises(InputError, match="of the family 'latent_tree' the covariance of runs between times"):
        meanfield.fit(tree, runs, ["training.learning_rate"])
