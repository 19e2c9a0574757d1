"""Random starts under schedules and phases, against closed forms, the theory of constant rates, and SGD."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import ks_2samp

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.random_starts.in_time import growth_of, outcomes_in_time
from meanfield.families.contrastive.random_starts.separatrix import find_separatrix, selection_probability
from meanfield.families.contrastive.random_starts.start import escape_law, random_start
from tests.families.contrastive.test_random_starts import TAU, TWO, M, problem_with, three_point

DECAY = {"schedule": "warmup_cosine", "peak": TAU, "warmup": 0.8, "end": 0.02, "duration": 4.0}
"""A warm-up and a decay within which runs escape."""

FORGET = [{"stop": 1.6}, {"stop": 4.0, "set": {"features[0].hidden.second_moment": 3.0}}]
"""Phases of a problem with the second moment 0.5: overlaps shrink, and grow from the noise of the first phase."""


def scheduled(*hidden, rate=DECAY, phases=None, **particles):
    problem = problem_with(*hidden, more=("time = { stop = 4.0, outputs = 2 }",))
    values = {f"particles.{key}": value for key, value in particles.items()}
    return meanfield.with_values(problem, {"model.learning_rate": rate, "phases": phases} | values)


@pytest.mark.parametrize(("m2", "phases"), [(3.0, None), (0.5, FORGET)])
def test_amplitudes_are_integrals_of_the_closed_form(m2, phases):
    """J = 12 tau (m2 - 1) - 120 tau^2/m and S = 240 tau^2 m2/m there (theory.md, section 8)."""
    problem, N = scheduled(three_point(m2, 20.0), phases=phases), 1e6
    growth, tau = growth_of(problem), problem.model.learning_rate.value_at
    first, covariance = growth.amplitudes(N)
    points = [0.8, 1.6]

    def second(t):
        return m2 if phases is None or t < 1.6 else 3.0

    def L(t):
        return quad(lambda s: 12 * tau(s) * (second(s) - 1) - 120 * tau(s) ** 2 / M, 0.0, t, points=points)[0]

    for i in (first, 40, -1):
        assert growth.logs[i, 0] == pytest.approx(L(growth.times[i]), abs=1e-6)  # 1e-8 in each of some steps

    def rate(t):
        return 240 * tau(t) ** 2 / M * second(t) * np.exp(-2 * L(t))

    noise = quad(rate, 0.0, 4.0, points=points, epsrel=1e-7)  # a hundredth of what is allowed below
    expected = np.exp(2 * growth.logs[first, 0]) * (1 + noise[0])
    assert covariance[0, 0] == pytest.approx(expected, rel=1e-5)  # what comes after deviations are of order 1 is 1e-6
    assert growth.times[first] == (0.0 if phases is None else 1.6)


def test_constant_rates_have_the_law_of_the_escape_time():
    start = random_start(problem_with(three_point(3.0, 20.0)))
    law, N = escape_law(start, 0.5), 1e6
    found = outcomes_in_time(scheduled(three_point(3.0, 20.0), rate=TAU), N, 0.5, samples=256)
    expected = [law.quantile(p, N) for p in (0.25, 0.5, 0.75)]
    times = np.quantile(found.escape_time, [0.25, 0.5, 0.75])
    assert times == pytest.approx(expected, abs=5e-3)  # a quantile of 256 Sobol points is off by one of them


@pytest.mark.slow
def test_constant_rates_select_as_the_separatrix_says():
    start, N = random_start(problem_with(*TWO)), 1e3
    found = outcomes_in_time(scheduled(*TWO, rate=TAU), N, 0.5)
    expected = selection_probability(find_separatrix(start), start, N)
    assert (found.winner == 1).mean() == pytest.approx(expected, abs=8e-3)  # 5e-3 of Sobol points, and 3/N of noise


@pytest.mark.parametrize(
    ("m2", "rate", "phases"),
    [
        pytest.param(3.0, DECAY, None, marks=pytest.mark.slow),
        (0.5, 0.1, FORGET),
        pytest.param(0.5, DECAY, FORGET, marks=pytest.mark.slow),
        pytest.param(3.0, TAU, [{"stop": 0.4}, {"stop": 4.0, "set": {"model.batch_size": 40}}], marks=pytest.mark.slow),
    ],
)
def test_escape_times_of_sgd_have_that_law(m2, rate, phases):
    """False alarm once in 1000 times: Kolmogorov and Smirnov; at N = 1000 the limit is off by less than it sees."""
    runs = {"method": "chain", "dimension": 1000, "replicas": 500, "escape_overlap": 0.5, "seed": 1}
    problem = scheduled(three_point(m2, 20.0), rate=rate, phases=phases, **runs)
    found = outcomes_in_time(problem, 1000, 0.5)
    assert np.isfinite(found.escape_time).mean() > 0.5
    assert ks_2samp(meanfield.simulate_sgd(problem).escape_time.fillna(np.inf), found.escape_time).pvalue > 1e-3


@pytest.mark.slow
def test_sgd_selects_as_predicted():
    """Within 3 standard errors of 1000 replicas plus 60/N; false alarms once in 370 times."""
    N = 1000
    problem = scheduled(*TWO, method="chain", dimension=N, replicas=1000, escape_overlap=0.5)
    run, found = meanfield.simulate_sgd(problem), outcomes_in_time(problem, N, 0.5)
    share, predicted = float((run.winner == 1).mean()), float((found.winner == 1).mean())
    assert abs(share - predicted) < 3 * np.sqrt(predicted / 1000) + 60 / N * predicted


@pytest.mark.slow
def test_noise_of_views_that_changes_smoothly_is_followed():
    """False alarm once in 1000 times, as above."""
    noise = {"schedule": "linear", "start": 0.3, "end": 0.05, "duration": 2.0}
    problem = scheduled(three_point(3.0, 20.0), method="chain", dimension=1000, replicas=500, escape_overlap=0.5)
    problem = meanfield.with_value(problem, "augmentation", {"variance": [noise, 0.2]})
    found = outcomes_in_time(problem, 1000, 0.5)
    assert ks_2samp(meanfield.simulate_sgd(problem).escape_time.fillna(np.inf), found.escape_time).pvalue > 1e-3


def test_three_features_that_are_equal_share_the_wins():
    found = outcomes_in_time(scheduled(*[TWO[0]] * 3), 1e4, 0.5, samples=8)
    assert np.bincount(found.winner, minlength=3).max() < 8
    assert np.isfinite(found.escape_time).all()


CORRELATED = {"law": "discrete", "values": [[2.0, 1.5], [-2.0, -1.5], [1.0, -2.0], [-1.0, 2.0]]}
PAIR = [{"initial_overlap": "random", "hidden": None}] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"features[0].hidden": {"law": "gaussian", "second_moment": 0.9}},
            r"stable until t = 4.*Raise model\.batch_size",
        ),
        ({"model.centering": "batch"}, "fluctuations of the overlaps are known for samples that are independent"),
        ({"prior": {"name": "l1"}}, r"prior\.name = 'l1'"),
        ({"model.momentum_rate": 2.0}, r"model\.momentum_rate = 2"),
        (
            {
                "features[0].hidden": {"law": "discrete", "values": [-1.0, 2.0], "probabilities": [0.5, 0.5]},
                "model.activation": "relu",
            },
            "q = 0 is no fixed point",
        ),
        (
            {
                "features": PAIR,
                "hidden": CORRELATED | {"probabilities": [0.3, 0.3, 0.2, 0.2]},
                "phases": [
                    {"stop": 1.0},
                    {"stop": 4.0, "set": {"hidden": CORRELATED | {"probabilities": [0.2, 0.2, 0.3, 0.3]}}},
                ],
            },
            r"^hidden: correlations .*turn in time.*the same in all phases",
        ),
    ],
)
def test_what_is_not_known_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        outcomes_in_time(meanfield.with_values(scheduled(three_point(3.0, 20.0)), changes), 1e4, 0.5)
    with pytest.raises(InputError, match=r"escape_overlap = 1.5: .*in \(0, 1\]"):
        outcomes_in_time(scheduled(three_point(3.0, 20.0)), 1e4, 1.5)
