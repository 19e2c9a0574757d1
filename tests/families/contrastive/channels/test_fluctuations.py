"""Fluctuations of the overlaps of several channels: against enumeration of batches, one channel, and simulations."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.fluctuations import StepCovariance, step_covariance_of
from meanfield.families.contrastive.channels.one_sample import fill_nodes
from meanfield.families.contrastive.order_parameters import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise
from meanfield.problems.problem_keys import with_values
from tests import ROOT
from tests.families.contrastive.channels.problems import standard
from tests.families.contrastive.channels.test_averages import NO_NOISE, NOISE, SIGMA, both_views, two_points
from tests.oracles.batches import step_covariance

TANH = "quadratic", "tanh"


def unseen_of(law, rule, q, M):
    """Covariance of c + eta given the pre-activations at all nodes, by the inverse of that of the latter."""
    d1, V = len(q), law.noise
    blocks = []
    for variance in law.variance:
        K = M - q.T @ q + q.T @ np.diag(variance) @ q
        views = np.ones((2, 2))
        angles = np.kron(views, K) + np.kron(V, M)
        both = np.kron(views, np.diag(variance) @ q) + np.kron(V, q)
        whole = np.kron(views, np.diag(variance)) + np.kron(V, np.eye(d1))
        left = whole - both @ np.linalg.pinv(angles, hermitian=True, rcond=1e-12) @ both.T
        blocks.append(np.tile(left.reshape(2, d1, 2, d1), (rule.weights.size, 1, 1, 1, 1)))
    return np.concatenate(blocks)


@pytest.mark.parametrize(
    ("activation", "centering", "m", "channels", "V"),
    [
        ("quadratic", "none", 1, 2, NO_NOISE),
        ("quadratic", "none", 2, 2, NO_NOISE),
        ("quadratic", "population", 3, 2, NO_NOISE),
        ("tanh", "population", 2, 3, NO_NOISE),
        ("quadratic", "none", 2, 2, NOISE),
        ("tanh", "population", 3, 2, NOISE),
    ],
)
def test_covariance_of_a_step_against_all_batches(activation, centering, m, channels, V):
    features = 2 if not V.any() and channels == 2 else 1
    law, rule, q, M = two_points(channels, V, features=features, atoms=1 if m == 3 and V.any() else 2)
    tau, strength = 0.7, 0.3
    problem = with_values(
        standard(("channels = 2", f"channels = {channels}"), ("initial_channel_overlap = 0.25\n", ""),
                 ("[0.5, 0.3]", str([0.0] * channels)), ("[0.2, 0.4]", str([0.0] * channels))),
        {"model.activation": activation, "model.centering": centering, "model.batch_size": m,
         "model.learning_rate": tau, "decorrelation.strength": strength},
    )  # fmt: skip
    if features == 1:
        problem = with_values(problem, {"features": problem.model_dump()["features"][:1]})
    step = StepCovariance(problem, law, rule)
    found = step.moments(q, M)
    weight, theta, x = fill_nodes(law, rule, q, M)
    right = step_covariance(
        weight, both_views(theta, channels), both_views(x, len(q)), unseen_of(law, rule, q, M), *SIGMA[activation],
        lambda C: 2 * C, strength, centering, m, V, tau, q, M,
    )  # fmt: skip
    for one, other in zip(found, right, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(other).max())  # rounding of 1e4 batches


@pytest.mark.parametrize("noise", [False, True], ids=["clean", "noise"])
def test_one_channel_is_that_of_a_single_channel(noise):
    problem = meanfield.load_problem(ROOT / "data" / "problems" / "two_features.toml")
    problem = with_values(problem, {"prior": {}, "model.centering": "population"})
    if noise:
        problem = with_values(problem, {"augmentation": {"variance": (0.3, 0.2), "correlation": -0.4}})
    q = np.array([0.5, 0.3])
    mean, covariance = step_covariance_of(ChannelClosure(problem)).moments(q[:, None], np.ones((1, 1)))
    right = StepNoise(VectorField(problem)).moments(q)
    np.testing.assert_allclose(mean, right[0], rtol=1e-8)  # accuracy of both quadratures
    np.testing.assert_allclose(covariance, right[1], rtol=1e-8)  # the same


def test_covariances_in_a_result():
    run = meanfield.solve(standard(), "order_parameters")
    C = run["overlap_covariance"].values
    np.testing.assert_array_equal(C[0], 0.0)  # all runs have one start
    np.testing.assert_array_equal(run["q_covariance"][1, 0, 1, 0, 1], C[1, 0, 3])
    np.testing.assert_array_equal(run["M_variance"][1, 0, 1], C[1, 4, 4])
    assert np.linalg.eigvalsh(C[1]).min() > 0


def test_a_small_time_adds_the_covariance_of_steps():
    """C = S t (1 + O(t)) from a start without fluctuations."""
    problem = standard(("stop = 4.0", "stop = 0.001"))
    q, M = problem.initial_overlap, problem.initial_channel_overlap
    found = meanfield.solve(problem, "order_parameters")["overlap_covariance"].values[-1]
    right = 0.001 * step_covariance_of(ChannelClosure(problem))(q, M)
    np.testing.assert_allclose(found, right, atol=2e-3 * np.abs(right).max())  # rates below 1, and q moves


def test_what_has_no_covariance_is_left_out():
    for changes in (
        (('"none"', '"batch"'),),
        (("= 3", "= 1"), ("strength = 0.05", 'strength = 0.05\npenalty = "absolute"'), TANH),
    ):
        problem = standard(*changes)
        with pytest.raises(InputError, match="fluctuations of the overlaps are known"):
            step_covariance_of(ChannelClosure(problem))
    assert "q_covariance" not in meanfield.solve(standard(('"none"', '"batch"')), "order_parameters")


@pytest.mark.slow
def test_covariances_against_the_chain():
    """3000 runs at N = 500, bounded outputs: standard deviations are known to 1.3 per cent, and 1/N matters less.

    False alarms: one of five beyond 4 standard errors once in 3000 times, and a seed.
    """
    changes = TANH, ('"none"', '"population"'), ("0.01", "0.5"), ("0.05", "2.0"), ("stop = 4.0", "stop = 2.0")
    settings = {"dimension": 500, "replicas": 3000, "method": "chain", "record": "statistics"}
    problem = with_values(standard(*changes), {f"particles.{key}": value for key, value in settings.items()})
    right, found = (meanfield.solve(problem, method) for method in ("order_parameters", "particles"))
    for name in ("q_covariance", "M_variance"):
        one, other = (run[name].values[-1] for run in (right, found))
        if name == "q_covariance":
            one, other = (np.einsum("ffkk->fk", values) for values in (one, other))
        allowed = {"rtol": 4 * 0.013, "atol": 1e-12}  # the docstring's; M_kk = 1 but for rounding
        np.testing.assert_allclose(np.sqrt(other), np.sqrt(one), **allowed)
