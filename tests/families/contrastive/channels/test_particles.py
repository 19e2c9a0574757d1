"""Interacting particles of the limit: the overlaps of linear priors, other priors against SGD, claimed errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.field import OverlapField, velocity
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import coefficients, joint_limit_of
from meanfield.families.contrastive.channels.trajectory import _integrated
from meanfield.problems.problem_keys import with_value
from meanfield.several_vectors.particle_search import _errors
from meanfield.several_vectors.particles import Size, _ends_of_steps, march
from tests.families.contrastive.channels.problems import standard

L1 = "[time]", '[prior]\nname = "l1"\nstrength = 20.0\n[time]'
NOISE = "[time]", "[augmentation]\nvariance = [0.2, 0.2]\ncorrelation = 0.5\n[time]"
THREE = (
    ("channels = 2", "channels = 3"),
    ("= 0.25", "= [[1, 0.25, 0.1], [0.25, 1, -0.2], [0.1, -0.2, 1]]"),
    ("0.3]", "0.3, 0.1]"),
    ("0.4]", "0.4, -0.3]"),
)
EQUAL_CHANNELS = ("[0.5, 0.3]", "[0.5, 0.5]"), ("[0.2, 0.4]", "[0.2, 0.2]"), ("= 0.25", "= 1.0")


def overlaps(moments):
    """q11 q12 q21 q22 M12 of two channels."""
    return moments[..., [0, 1, 2, 3, 5]]


def limit_of(problem):
    return joint_limit_of(ChannelsInTime(problem))


def predicted(problem):
    field = OverlapField(ChannelClosure(problem))
    q, M = field.unpacked(_integrated(ChannelsInTime(problem), "").values[-1])
    return np.concatenate([q.ravel(), M.ravel()])


@pytest.mark.parametrize("changes", [(), THREE], ids=["two", "three"])
def test_linear_priors_have_no_chance_and_steps_of_second_order(changes):
    problem = standard(*changes, ("stop = 4.0", "stop = 2.0"))
    right, limit = predicted(problem), limit_of(problem)
    wrong = []
    for steps in (4, 8):
        runs = march([limit], Size(300, steps))
        gap = np.abs(runs.fine[0, -1, : len(right)] - right).max()
        assert gap <= np.abs(runs.coarse - runs.fine)[0, -1].max()  # the error that is claimed for steps
        wrong.append(gap)
    assert wrong[1] < 1e-4  # 8 steps of order 2: an overlap changes by some 1e-2 in each, squared
    assert np.log2(wrong[0] / wrong[1]) == pytest.approx(2.0, abs=0.15)  # order 2, up to the next one


def test_steps_of_output_times_that_are_not_evenly_spaced():
    """No step is longer than with evenly spaced times, by which errors are known; those get the same steps as ever."""
    problem = standard(("outputs = 2", "outputs = 5"))
    np.testing.assert_array_equal(
        _ends_of_steps(problem.time.outputs_at, 6, problem.time.outputs_at), [0, 6, 12, 18, 24]
    )
    logarithmic = with_value(problem, "time.spacing", "log")
    steps = np.diff(_ends_of_steps(logarithmic.time.outputs_at, 6, logarithmic.time.outputs_at))
    assert (steps % 2 == 0).all()
    assert (np.diff(logarithmic.time.outputs_at) / steps).max() <= 1.0 / 6.0
    right, runs = predicted(problem), march([limit_of(logarithmic)], Size(300, 6))
    assert np.abs(runs.fine[0, -1, : len(right)] - right).max() <= np.abs(runs.coarse - runs.fine)[0, -1].max()


def test_errors_by_chance_cover():
    """Noise left as it is drawn: the overlaps of a linear prior by chance, as they come.

    Errors are exceeded once in 100 times by each of five overlaps: 30 seeds have on average less than two with an
    overlap beyond its error, and more than seven once in 5000 times.
    """
    problem = standard(("stop = 4.0", "stop = 2.0"))
    right, limit = overlaps(predicted(problem)), limit_of(problem)
    excess = []
    for seed in range(30):
        runs = march([replace(limit, seed=seed)] * 8, Size(200, 6), matched=False)
        found = _errors(runs, Size(200, 6), None)
        error = overlaps(found.chance + found.steps)[-1]
        excess.append(np.abs(overlaps(runs.fine.mean(axis=0))[-1] - right) / error)
    assert (np.array(excess) > 1).any(axis=1).sum() <= 7
    assert 0.1 < np.median(excess) < 0.35  # the median of |t| of 7 degrees is 0.71, of 3.5 standard errors 0.2


@pytest.mark.slow  # cells agree with particles under such a prior in test_in_time.py
def test_l1_prior_against_other_particles():
    """Particles of a prototype in 16 runs, left-end Lambda, with their standard errors.

    False alarms: one of five numbers beyond 3.5 standard errors once in 400 times.
    """
    problem = standard(L1, NOISE, ("= 3", "= 2"), ("stop = 4.0", "stop = 2.0"))
    runs = march([limit_of(problem)], Size(120_000, 10))
    right = np.array([0.47296, 0.25040, 0.16149, 0.37552, 0.13693])
    error = np.array([0.00047, 0.00060, 0.00055, 0.00071, 0.00073])
    steps = np.abs(overlaps((runs.coarse - runs.fine).mean(axis=0))[-1])
    own = 0.3 / np.sqrt(120_000)  # the largest standard deviation of an overlap by one particle
    found = overlaps(runs.fine.mean(axis=0))[-1]
    assert np.all(np.abs(found - right) < 3.5 * np.hypot(error, own) + steps)


def test_weights_given_features_are_gaussian_for_a_linear_prior():
    """One false alarm in 100 times, and a seed."""
    problem = standard(("[0.5, 0.3]", '[0.5, 0.3]\ncoordinate = { law = "rademacher" }'), ("stop = 4.0", "stop = 2.0"))
    runs = march([limit_of(problem)], Size(8000, 16))
    q, M, u, w = runs.fine[0, -1, :4].reshape(2, 2), runs.fine[0, -1, 4:8].reshape(2, 2), *(
        runs.features[0], runs.weights[0, -1],
    )  # fmt: skip
    K = M - q.T @ q
    for k in range(2):
        left = (w[:, k] - u @ q[:, k]) / np.sqrt(K[k, k])
        assert kstest(left[u[:, 0] > 0], "norm").pvalue > 0.005


def test_equal_channels_stay_equal():
    problem = standard(L1, *EQUAL_CHANNELS, ("stop = 4.0", "stop = 2.0"))
    runs = march([limit_of(problem)], Size(2000, 16))
    assert runs.status == "complete"
    np.testing.assert_allclose(runs.weights[..., 0], runs.weights[..., 1], atol=1e-7)  # root of rounding in Lambda


def test_coefficients_give_the_velocity_of_the_overlaps():
    """dq/dt = E[u drift^T], dM/dt = E[w drift^T] + transpose + Lambda, where K is regular and where it is singular."""
    for changes in ((), EQUAL_CHANNELS, THREE):
        problem = standard(*changes)
        q, M, tau = problem.initial_overlap, problem.initial_channel_overlap, problem.model.learning_rate
        averages = ChannelClosure(problem)(q, M)
        found = coefficients(averages, q, M, tau)
        linear = found.of_weights - np.diag(found.multiplier)
        dq = found.of_features.T + q @ linear.T
        dM = found.of_features @ q + linear @ M
        right = velocity(averages, q, M, tau)
        np.testing.assert_allclose(dq, right[0], atol=1e-12)  # rounding
        np.testing.assert_allclose(dM + dM.T + found.noise, right[1], atol=1e-12)  # rounding


def test_numbers_do_not_depend_on_other_runs():
    problem = standard(L1)
    limit = limit_of(problem)
    alone, together = (march([limit] * count, Size(100, 4)) for count in (1, 3))
    np.testing.assert_array_equal(alone.fine[0], together.fine[0])
    assert (together.fine[1] != together.fine[2])[-1].sum() >= 8  # of ten; two are norms, 1 but for rounding


def test_a_tolerance_is_kept_or_its_miss_is_said(monkeypatch):
    changes = L1, ("[time]", '[density]\nscheme = "particles"\n[time]'), ("stop = 4.0", "stop = 1.0")
    problem = standard(*changes)
    run = meanfield.solve(problem, "density")
    assert run.attrs["status"] == "complete"
    assert max(float(run["q_error"].max()), float(run["M_error"].max())) <= 2e-3  # the default tolerance
    assert run["w_sample"].sizes == {"snapshot_time": 2, "particle": 65536, "channel": 2}
    np.testing.assert_allclose((run["w_sample"][-1] ** 2).mean("particle"), 1.0, atol=0.02)  # of 65536 particles
    monkeypatch.setattr("meanfield.several_vectors.particle_search.MOST_NUMBERS", 20_000)
    missed = meanfield.solve(problem, "density")
    assert missed.attrs["status"].startswith("failed: the error of q and M (")
    assert np.isfinite(missed["q"]).all()


def test_steps_that_are_far_too_long_fail():
    problem = standard(("[time]", '[prior]\nname = "quartic"\nstrength = 1e9\n[time]'))
    runs = march([limit_of(problem)], Size(100, 4))
    assert runs.status.startswith("failed: at t = 0: the particles of the limit change their length by half")
    assert np.isnan(runs.fine[:, 1]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ('scheme = "particles"\ncells = 100', "particles have neither cells nor nodes"),
        ('scheme = "particles"\ntolerance = 1e-6', "give 0.0003 or more"),
    ],
)
def test_settings_that_particles_do_not_have_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        standard(("[time]", f"[density]\n{changes}\n[time]"))


def test_one_channel_has_no_particles():
    problem = meanfield.load_problem("data/problems/sparse_prior.toml")
    with pytest.raises(InputError, match=r"density.scheme = 'particles' with model.channels = 1"):
        meanfield.solve(with_value(problem, "density", {"scheme": "particles"}), "density")


@pytest.mark.slow
def test_particles_against_projected_sgd():
    """The same problem by SGD at N = 1000, which tells less than particles do: false alarms in 5 of 100, and a seed."""
    settings = '[density]\nscheme = "particles"\ntolerance = 1e-3\n[particles]\ndimension = 1000\nreplicas = 16\n[time]'
    changes = L1, ("[time]", settings)
    problem = standard(*changes, ("stop = 4.0", "stop = 2.0"))
    comparison = meanfield.compare(*(meanfield.solve(problem, method) for method in ("density", "particles")))
    assert comparison.attrs["verdict"] == "AGREES"
