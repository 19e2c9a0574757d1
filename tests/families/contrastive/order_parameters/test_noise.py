"""S(q) against exact rules for polynomials, panels for kinks, the vector field, and closed forms; what is refused."""

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise
from tests.oracles.plain_steps import HIDDEN, NOISES, make_problem
from tests.oracles.steps import by_hermite, by_panels, hidden_rule
from validation.contrastive.linearised import step_expansion

AGREEMENT = 1e-9  # what is asked for is 1e-8; they agree to 1e-11


def step_noise(*args, **kwargs):
    return StepNoise(VectorField(make_problem(*args, **kwargs)))


def assert_agreement(problem, q, right):
    mean, S = StepNoise(VectorField(problem)).moments(np.array(q))
    np.testing.assert_allclose(mean, right[0], rtol=0, atol=AGREEMENT * np.abs(right[1]).max() ** 0.5)
    np.testing.assert_allclose(S, right[1], rtol=0, atol=AGREEMENT * np.abs(right[1]).max())


@pytest.mark.parametrize("centering", ["none", "population"])
@pytest.mark.parametrize("noise", NOISES)
def test_quadratic_against_exact_rules(noise, centering):
    for hidden, q in [("asymmetric", 0.6), ("gaussian", -0.9)]:
        problem = make_problem("quadratic", [hidden], noise, centering)
        assert_agreement(problem, [q], by_hermite(problem, [q], 7))  # exact up to degree 13


@pytest.mark.parametrize(
    ("activation", "noise", "centering", "nodes"),
    [("quadratic", "opposite", "population", 7), ("cubic", "none", "none", 11), ("linear", "unequal", "population", 3)],
)
def test_two_features_against_exact_rules(activation, noise, centering, nodes):
    problem = make_problem(activation, ["asymmetric", "gaussian"], noise, centering)
    assert_agreement(problem, [0.5, -0.6], by_hermite(problem, [0.5, -0.6], nodes))


KINKED = [
    ("relu", ["shifted"], "none", [0.5]),
    ("hard_tanh", ["asymmetric"], "none", [0.9999]),
    ("abs", ["uniform"], "none", [0.7]),
    ("relu", ["laplace"], "none", [-0.5]),
    ("tanh", ["gaussian"], "none", [0.95]),
    ("relu", ["shifted"], "independent", [0.6]),
    ("relu", ["shifted"], "correlated", [0.6]),
    ("hard_tanh", ["shifted"], "opposite", [0.6]),
    ("leaky_relu", ["shifted"], "one view", [0.8]),
    ("softplus", ["shifted"], "unequal", [0.3]),
    ("relu", ["gaussian", "asymmetric"], "none", [0.5, -0.6]),
    ("relu", ["uniform", "laplace"], "none", [0.6, 0.3]),
    ("hard_tanh", ["asymmetric", "shifted"], "opposite", [0.3, 0.9]),
    ("tanh", ["uniform", "uniform", "shifted"], "none", [0.3, -0.6, 0.2]),
    ("abs", ["uniform"], "none", [0.0]),
    ("relu", ["uniform", "laplace"], "none", [0.0, 0.3]),
]


@pytest.mark.parametrize(
    ("activation", "hidden", "noise", "q", "centering"),
    [
        # where outputs are not centred, S has fewer terms of the same averages: by default the two take turns
        pytest.param(*case, centering, marks=() if i % 2 == j else pytest.mark.slow)
        for i, case in enumerate(KINKED)
        for j, centering in enumerate(["population", "none"])
    ],
)
def test_any_activation_against_panels(activation, hidden, noise, q, centering):
    problem = make_problem(activation, hidden, noise, centering)
    assert_agreement(problem, q, by_panels(problem, q, hidden_rule(problem)))


@pytest.mark.parametrize("q", [0.0, 0.3, -0.9, 0.9999])
def test_closed_form_without_noise(q):
    problem = make_problem("quadratic", ["three_point"])
    b, S, _ = step_expansion(problem, q)
    mean, found = step_noise("quadratic", ["three_point"]).moments(np.array([q]))
    assert mean[0] == pytest.approx(b, abs=1e-12 * S**0.5)  # rounding over s
    assert found[0, 0] == pytest.approx(S, rel=1e-12)  # the same


@pytest.mark.parametrize(
    ("activation", "centering"),
    [
        ("relu", "population"),
        ("cubic", "none"),
        pytest.param("relu", "none", marks=pytest.mark.slow),  # no centring is that of cubic
        pytest.param(
            "tanh", "population", marks=pytest.mark.slow
        ),  # three times as long; panels above are for tanh, too
    ],
)
def test_mean_of_a_step_is_the_vector_field(activation, centering):
    for noise, hidden in [
        ("unequal", ["mixture"]),
        ("opposite", ["laplace", "uniform"]),
        ("none", ["student_t" if activation in ("tanh", "relu") else "laplace", "mixture", "uniform"]),
    ]:
        field = VectorField(make_problem(activation, hidden, noise, centering))
        noise_of_step = StepNoise(field)
        for radius in (0.4, 0.99):
            q = radius * np.array([0.6, -0.64, 0.48])[: len(hidden)] if len(hidden) > 1 else np.array([radius])
            mean, S = noise_of_step.moments(q)
            atol = 1e-10 * np.sqrt(np.trace(S))  # tables: 1e-12 of terms that cancel
            np.testing.assert_allclose(mean, field(q), rtol=0, atol=atol)
            assert np.linalg.eigvalsh(S).min() > -1e-12 * np.trace(S)  # rounding


@pytest.mark.parametrize("hidden", ["gaussian", "shifted"])
def test_many_values_share_nodes(hidden):
    """Two hundred values of one variable, beside another one."""
    values = np.random.default_rng(0).uniform(-1, 2, 200).tolist()
    table = {"law": "discrete", "values": values, "probabilities": [1 / 200] * 200}
    problem = make_problem("softplus", [table, hidden], "none", "population")
    q = [0.4, 0.5]
    assert_agreement(problem, q, by_panels(problem, q, hidden_rule(problem)))


def test_on_the_sphere_and_beyond():
    """At |q| = 1 w is the feature, and a step cannot move along it but by the length of what it adds."""
    noise = step_noise("relu", ["shifted"], "independent")
    assert noise(np.array([1.0]))[0, 0] == pytest.approx(noise(np.array([1 - 1e-9]))[0, 0], rel=1e-6)  # linear in 1 - q
    assert np.isnan(noise(np.array([1.001]))).all()
    assert np.isnan(noise(np.array([np.nan]))).all()


@pytest.mark.parametrize(
    ("hidden", "ends", "calls"),
    [
        ("gaussian", [0.2, -0.7], 1),
        ("gaussian", [0.5, 0.5], 1),
        ("gaussian", [0.8, 1.0 + 1e-9], 1),  # rounding may take the end of a path out of the ball
        ("shifted", [0.9, 0.9999], 14),  # no table of eight panels resolves S near a narrow law on the kink
    ],
)
def test_between_two_overlaps_of_one_feature(hidden, ends, calls, monkeypatch):
    """From few calls with many overlaps each, where the covariance of a run took some eighty of its own."""
    noise = step_noise("relu", [hidden], centering="population")
    q = np.linspace(*np.clip(ends, -1.0, 1.0), 10)[:, None]
    right = noise(q)
    counted, moments = [], StepNoise.moments
    monkeypatch.setattr(StepNoise, "moments", lambda self, q: (counted.append(1), moments(self, q))[1])
    S = noise.between(np.array(ends))
    np.testing.assert_allclose([S(x) for x in q], right, rtol=1e-9, atol=1e-12)  # what StepNoise promises; rounding
    assert len(counted) <= calls


def test_batch_centring_is_refused():
    with pytest.raises(InputError, match=r"model\.centering = 'batch'.*'none' or 'population'"):
        step_noise("relu", ["gaussian"], centering="batch")


def test_moments_that_do_not_exist_are_refused():
    """Relu takes c to the power 4, x^2 to the power 12; the closures to 2 and 6."""
    law = HIDDEN["student_t"]
    step_noise("relu", [law | {"degrees_of_freedom": 5.5}])
    with pytest.raises(InputError, match=r"degrees_of_freedom = 4.5.*power 4.*more than 5 degrees"):
        step_noise("relu", [law | {"degrees_of_freedom": 4.5}])
    with pytest.raises(InputError, match=r"degrees_of_freedom = 12.0.*power 12"):
        step_noise("quadratic", [law])
