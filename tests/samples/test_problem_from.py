"""Problems from samples: estimates within their errors, and the assumption that fails by its name."""

import numpy as np
import pytest

import meanfield
from meanfield.samples.estimates import law_of
from meanfield.samples.findings import TESTS

N, SAMPLES = 100, 1500
NEURON = meanfield.parse_problem(
    """
    model = { activation = "quadratic", learning_rate = 0.05, batch_size = 4 }
    features = [{ hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = 0.4 }]
    time = { stop = 2.0, outputs = 5 }
    """
)
REGRESSION = meanfield.parse_problem(
    """
    family = "update_rule"
    model = { rule = "regression", rule_parameters = { rate = 0.5 } }
    features = [{ initial_overlap = 0.2 }]
    data = { noise = 1.0 }
    time = { stop = 2.0, outputs = 5 }
    """
)
SPIKED = meanfield.with_values(
    REGRESSION,
    {"data.signal": "spiked", "features[0].hidden": {"law": "rademacher", "second_moment": 4.0}},
)


LAWS = {
    "independent entries with heavy tails": lambda rng, shape: rng.standard_t(5, shape) * np.sqrt(3 / 5),
    "laplace": lambda rng, shape: rng.laplace(0.0, 0.5**0.5, shape),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
}
"""Laws of independent entries of mean 0 and variance 1, for which the limit holds."""


def unit(vectors):
    return np.sqrt(len(vectors)) * vectors / np.linalg.norm(vectors, axis=0)


def neuron(kind="", samples=SAMPLES, N=N, seed=0, second_moment=1.1):
    """Inputs of the neuron in which one assumption fails, its feature, and weights at the start."""
    rng = np.random.default_rng(seed)
    u = unit(rng.standard_normal((N, 1)))
    a = rng.standard_normal((samples, N))
    if kind in LAWS:
        a = LAWS[kind](rng, (samples, N))
    if kind == "heavy tails":
        a = rng.standard_t(2, (samples, N))
        a /= a.std()
    if kind == "correlated inputs":
        a *= np.sqrt(np.linspace(0.3, 1.7, N))
    c = np.sqrt(5.5 * second_moment / 1.1) * rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=(samples, 1))
    if kind == "hidden law":
        c = np.sqrt(1.1) * rng.standard_normal((samples, 1))
    x = a - a @ u @ u.T / N + c @ u.T / np.sqrt(N)
    x *= {"variance of inputs": 1.3}.get(kind, 1.0)
    if kind == "common radius":
        x *= np.sqrt(3 / rng.chisquare(5, (samples, 1)))
    if kind == "repeated samples":
        x = x[rng.integers(200, size=samples)]
    w = rng.standard_normal((N, 1))
    if kind == "mass on few coordinates":
        w[5:] = 0.0
    w -= u @ (u.T @ w) / N
    if kind == "fields that are not Gaussian":  # along weights, and with the variance of all directions
        v = unit(w)
        c = np.sqrt(5) * rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=(samples, 1))
        x += (c - x @ v / np.sqrt(N)) @ v.T / np.sqrt(N)
    return x, (0.4 * u + np.sqrt(1 - 0.4**2) * unit(w))[:, 0], u


BROKEN = (
    "common radius",
    "correlated inputs",
    "fields that are not Gaussian",
    "heavy tails",
    "hidden law",
    "mass on few coordinates",
    "repeated samples",
    "variance of inputs",
)


@pytest.mark.parametrize("kind", BROKEN)
def test_the_assumption_that_fails_is_named_first(kind):
    x, w, u = neuron(kind)
    found = meanfield.problem_from(x, w, u, like=NEURON)
    assert found.broken[0] == kind
    assert f"does not hold, {kind}: " in str(found)
    assert kind in TESTS


@pytest.mark.parametrize("kind", ["", "independent entries with heavy tails"])
def test_where_the_limit_holds_nothing_is_named_and_estimates_are_within_their_errors(kind):
    x, w, u = neuron(kind)
    found = meanfield.problem_from(x, w, u, like=NEURON)
    assert found.broken == ()
    true = {"features[0].hidden: E[c^2]": 1.1, "features[0].hidden: E[c^4]": 6.05, "features[0].initial_overlap": 0.4}
    for name, value in (true | {"variance of a coordinate beside features": 1.0}).items():
        estimate, error = found.numbers[name]
        assert abs(estimate - value) <= 4 * error + 1e-9, name  # standard errors, and rounding
    problem = found.problem
    assert problem.particles.dimension == N
    assert problem.features[0].initial_overlap == pytest.approx(0.4, abs=1e-9)  # rounding
    values, probabilities = problem.features[0].hidden.atoms
    assert len(values) == 3  # those of the law, and not 1,500
    assert probabilities @ values[:, 0] ** 2 == pytest.approx(found.numbers["features[0].hidden: E[c^2]"][0], rel=1e-3)
    assert meanfield.solve_order_parameters(problem)["q"].shape == (5, 1)


def test_a_true_case_is_rarely_contradicted():
    """Of 40 small arrays at most one: with a rate of 1 in 1,000 for all tests together two happen once in 1,300."""
    assert contradicted("", 40, 200, 40) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("N", "samples"), [(40, 200), (100, 400), (100, 1500)])
@pytest.mark.parametrize("kind", LAWS)
def test_independent_entries_of_any_law_are_rarely_contradicted(kind, N, samples):
    """Of 200 arrays at most 10, which is 1 in 20: rates of up to 1 in 50 pass 99 times of 100."""
    assert contradicted(kind, 200, samples, N) <= 10


def contradicted(kind, cases, samples, N):
    """How many of some cases are said to contradict the problem."""
    arrays = (neuron(kind, samples, N, seed=100 + seed) for seed in range(cases))
    return sum(bool(meanfield.problem_from(x, w, u, like=NEURON).broken) for x, w, u in arrays)


def test_it_is_a_matter_of_size():
    """Variances that scatter by 15 % are far beyond chance, and change rates by 2 %: less than 1/sqrt(N) = 10 %."""
    x, w, u = neuron(samples=4000)
    x *= np.sqrt(1.0 + 0.15 * np.sqrt(12) * np.linspace(-0.5, 0.5, N))
    found = meanfield.problem_from(x, w, u, like=NEURON)
    assert "correlated inputs" in [each.name for each in found.findings]
    assert "correlated inputs" not in found.broken
    assert "too small to matter at this N, correlated inputs: variances of directions scatter by 0.1" in str(found)


def test_features_that_were_found_in_the_same_samples():
    """The first principal component, by its name; the same from other samples is none."""
    x, w, _ = neuron(second_moment=4.0)
    like = meanfield.with_value(
        NEURON, "features[0].hidden", {"law": "three_point", "second_moment": 4.0, "fourth_moment": 80.0}
    )
    other = neuron(second_moment=4.0)[0][:700]
    for samples, named in ((x, True), (x[700:], False)):
        u = unit(np.linalg.svd(samples if named else other)[2][:1].T)
        name = "features found in the same samples"
        assert (name in meanfield.problem_from(samples, w, u, like=like).broken) is named


def test_a_leading_direction_is_found_and_its_law_is_measured_in_other_samples():
    x, w, u = neuron(second_moment=4.0, samples=3000)
    found = meanfield.problem_from(x, w, like=NEURON)
    assert abs(found.features[:, 0] @ u[:, 0]) / N > 0.95  # sqrt((1 - gamma/l^2)/(1 + gamma/l)) = .99, gamma = 1/30
    second, error = found.numbers["features[0].hidden: E[c^2]"]
    assert abs(second - 4.0) < 4 * error  # standard errors
    overlap, error = found.numbers["features[0].initial_overlap"]
    assert abs(overlap - 0.4) < 4 * error  # the same
    assert found.problem.features[0].hidden.second_moment == second


def test_a_direction_below_the_edge_cannot_be_seen_and_the_limit_is_said():
    x, w, _ = neuron(second_moment=1.2)
    found = meanfield.problem_from(x, w, like=NEURON)
    assert found.features.shape == (N, 0)
    assert "cannot show a direction with less than 1.4 times the variance of others" in str(found)
    with pytest.raises(meanfield.InputError, match=r"features: 0 of 1 are found .*less than 1\.4 times"):
        _ = found.problem


def test_spiked_inputs_are_measured_through_their_noise():
    rng = np.random.default_rng(1)
    u = unit(rng.standard_normal((N, 1)))
    c = 2.0 * rng.choice([-1, 1], size=(SAMPLES, 1))
    x = c @ u.T / np.sqrt(N) + rng.standard_normal((SAMPLES, N))
    w = 2.0 * rng.standard_normal((N, 1))
    found = meanfield.problem_from(x, w, u, like=SPIKED)
    assert found.broken == ()
    assert found.problem.features[0].hidden.second_moment == pytest.approx(4.0, abs=0.5)  # 4 standard errors
    assert found.problem.students[0].initial_norm == pytest.approx(float(w[:, 0] @ w[:, 0]) / N)
    assert found.problem.data.noise == pytest.approx(1.0, abs=4 / np.sqrt(SAMPLES * N / 2))  # the same


def test_noise_of_labels():
    """Labels of a teacher with noise of deviation .6, of which the problem knows .3, or the right one."""
    rng = np.random.default_rng(2)
    u, x = unit(rng.standard_normal((N, 1))), rng.standard_normal((SAMPLES, N))
    labels = x @ u[:, 0] / np.sqrt(N) + 0.6 * rng.standard_normal(SAMPLES)
    for rate, broken in ((0.3, ("label noise",)), (0.6, ())):
        like = meanfield.with_value(REGRESSION, "model.rule_parameters.rate", rate)  # any number of the rule serves
        found = meanfield.problem_from(
            x, features=u, like=like, labels=labels, label_noise="model.rule_parameters.rate"
        )
        assert found.broken == broken
    assert found.problem.model.rule_parameters["rate"] == pytest.approx(0.6, abs=0.05)  # 4 standard errors


def test_steps_that_are_too_large_for_n_and_samples_that_are_used_again():
    x, w, u = neuron()
    large = meanfield.with_value(NEURON, "model.learning_rate", 2.0)
    assert meanfield.problem_from(x, w, u, like=large).broken == ("N too small",)
    found = meanfield.problem_from(x, w, u, like=NEURON, uses=50)
    assert "every sample was used 50 times, and once in the problem" in str(found)


@pytest.mark.parametrize(("length", "rate", "large"), [(64, 8, False), (64, 40, True), (1, 5, True), (0.01, 1, False)])
def test_steps_are_held_against_the_length_of_the_weights(length, rate, large):
    """A step of the perceptron has rate^2 acos(rho)/pi of |w|^2 = N length."""
    start = {"students": [{"initial_norm": length}], "features[0].initial_overlap": 0.05}
    like = meanfield.with_values(
        REGRESSION, start | {"model": {"rule": "perceptron", "rule_parameters": {"rate": rate}}}
    )
    x = np.random.default_rng(0).standard_normal((SAMPLES, N))
    found = meanfield.problem_from(x, features=np.ones((N, 1)), like=like)
    assert found.broken == (("N too small",) if large else ())
    share = rate**2 * np.arccos(0.05 / length**0.5) / np.pi / N / length
    assert not large or f"a step has {share**0.5:.2g} of the length of weights, or of a longer feature" in str(found)


def test_rules_whose_averages_are_not_known_have_problems_of_samples_too():
    def jumping(y, s, rate):
        return rate * np.sign(y * y + s * s - 1.7) * y

    x = np.random.default_rng(0).standard_normal((SAMPLES, N))
    like = meanfield.with_value(REGRESSION, "model.rule", meanfield.Rule(jumping))
    with pytest.raises(meanfield.InputError, match="jumps"):
        meanfield.solve_order_parameters(like)
    assert meanfield.problem_from(x, features=np.ones((N, 1)), like=like).broken == ()


def test_few_different_samples_say_that_alone():
    x, w, u = neuron()
    for uses in (None, 1.0):  # whatever is said of them
        found = meanfield.problem_from(x[np.arange(SAMPLES) % 50], w, u, like=NEURON, uses=uses)
        assert found.broken == ("repeated samples",)
        assert "only 50 of 1500 samples differ" in str(found)
    assert not any(np.isnan(found.numbers[name]).any() for name in found.numbers)
    assert "nan" not in str(found)
    assert found.problem.particles.dimension == N


def test_a_joint_law_is_measured_where_features_are_known():
    rng = np.random.default_rng(4)
    first = rng.choice([-1.0, 1.0], SAMPLES)
    c = 2.0 * np.column_stack([first, first * rng.choice([1.0, -1.0], SAMPLES, p=[0.8, 0.2])])
    U = np.sqrt(N) * np.linalg.qr(rng.standard_normal((N, 2)))[0]
    a = rng.standard_normal((SAMPLES, N))
    x = a - a @ U @ U.T / N + c @ U.T / np.sqrt(N)
    law = {"law": "discrete", "values": [[2, 2], [-2, -2], [2, -2], [-2, 2]], "probabilities": [0.4, 0.4, 0.1, 0.1]}
    like = meanfield.Problem(
        model={"activation": "tanh", "learning_rate": 0.1, "batch_size": 4},
        hidden=law,
        features=[{"initial_overlap": 0.3}, {"initial_overlap": 0.2}],
        time={"stop": 1.0},
    )
    found = meanfield.problem_from(x, features=U, like=like)
    assert found.broken == ()
    values, probabilities = found.problem.hidden.atoms
    assert probabilities @ values.prod(axis=1) == pytest.approx(2.4, abs=4 * 3.2 / SAMPLES**0.5)  # standard errors
    other = meanfield.with_value(like, "hidden", law | {"probabilities": [0.1, 0.1, 0.4, 0.4]})
    assert meanfield.problem_from(x, features=U, like=other).broken == ("hidden law",)
    with pytest.raises(meanfield.InputError, match="hidden: a joint law is not known along directions"):
        meanfield.problem_from(x, like=like)


def test_a_law_stands_for_samples():
    """Of eight values: moments to the fifteenth are those of the samples."""
    c = np.random.default_rng(3).gamma(2.0, 1.0, 500)
    law = law_of(c)
    values, probabilities = np.array(law["values"]), np.array(law["probabilities"])
    for power in (1, 2, 8, 15):
        assert probabilities @ values**power == pytest.approx(np.mean(c**power), rel=1e-6)  # conditioning


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": np.zeros((50, N))}, r"data have the shape \(50, 100\); give at least 100 rows"),
        ({"features": np.ones((N, 2))}, "features: have 2 columns, and the problem has 1"),
        ({"features": np.ones(7)}, r"features: has the shape \(7, 1\); give 100 finite rows"),
        ({"weights": np.ones(N) / 10}, r"weights: have .*multiply weights of length 1 by sqrt\(N\)"),
        ({"weights": np.ones((N, 2))}, "weights: have 2 columns, and the problem trains 1; give one for each"),
        ({"label_noise": "model.learning_rate"}, "label_noise = 'model.learning_rate': there are no labels"),
        ({"labels": [1.0]}, r"labels: have the shape \(1,\); give 1500"),
        ({"uses": 0.5}, "uses = 0.5: give how often"),
        ({"label_noise": "model.sigma", "labels": np.ones(SAMPLES)}, "sigma"),
        ({"like": meanfield.load_problem("data/problems/hidden_manifold.toml")}, "hidden_manifold.examine_samples"),
        ({"like": "neuron.toml"}, r"call meanfield\.load_problem\('neuron\.toml'\)"),
    ],
)
def test_what_does_not_fit(change, words):
    x, w, u = neuron()
    given = {"data": x, "weights": w, "features": u, "like": NEURON} | change
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.problem_from(given.pop("data"), **given)
