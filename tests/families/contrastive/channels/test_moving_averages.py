"""Moving averages of the weights of several channels: SGD keeps them, and the limit knows their overlaps."""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.variables import AVERAGES_OF_CHANNELS
from meanfield.problems.base import corners_of
from tests.families.contrastive.channels.test_in_time import driven
from tests.families.contrastive.test_averages import CHANNELS, RATE
from tests.references_in_time import inside, integrated, replicas_and_statistics, verdicts


def reference(problem):
    """q, M and products with averages by SciPy; drifts are combinations that solve the normal equations of u and w."""
    d1, d2 = problem.initial_overlap.shape

    def velocity(t, y, low, high):
        now = meanfield.at_time(problem, max(inside(t, low, high), 1e-12))  # no rate is 0
        q, M, of_u, of_w, square = np.split(y.reshape(-1, d2), np.cumsum([d1, d2, d1, d2]))
        P, D, noise = ChannelClosure(now)(q, M)
        tau = now.model.learning_rate
        n = tau * np.diag(D) + 0.5 * np.diag(noise)
        drift = tau * np.linalg.solve(np.block([[np.eye(d1), q], [q.T, M]]), np.vstack([P, D.T]))
        moved = drift.T @ np.vstack([of_u, of_w]) - n[:, None] * of_w
        change = [tau * P - q * n, tau * (D + D.T) + noise - M * (n[:, None] + n)]
        change += [RATE * (q - of_u), moved + RATE * (M - of_w), RATE * (of_w + of_w.T - 2 * square)]
        return np.concatenate(change).ravel()

    q, M = problem.initial_overlap, problem.initial_channel_overlap
    start = np.concatenate([q, M, q, M, M]).ravel()
    hundredth = {"rtol": 1e-10, "atol": 1e-10}  # of what is asked of the order parameters
    values = integrated(velocity, start, problem.time.outputs_at, corners_of(problem), hundredth)
    return np.split(values.reshape(len(values), -1, d2), np.cumsum([d1, d2, d1, d2]), axis=1)[2:]


@pytest.mark.parametrize(
    "seed", [None, pytest.param(0, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_the_limit_is_that_of_scipy(seed):
    problem = CHANNELS if seed is None else driven(seed, **{"model.average_rate": RATE})
    found = meanfield.solve_order_parameters(problem)
    for name, known in zip(AVERAGES_OF_CHANNELS, reference(problem), strict=True):
        assert found[name].values == pytest.approx(known, abs=1e-8), name  # ODE_ACCURACY
    without = meanfield.solve_order_parameters(meanfield.with_value(problem, "model.average_rate", None))
    assert all(np.array_equal(found[name], without[name]) for name in without.variables)
    assert not set(AVERAGES_OF_CHANNELS) & set(without.variables)


@pytest.mark.slow
def test_random_batches_state_errors_of_averages():
    penalty = {"decorrelation": {"penalty": "absolute", "strength": 0.05}, "model.centering": "batch"}
    found = meanfield.solve_order_parameters(
        meanfield.with_values(CHANNELS, penalty | {"time.stop": 0.2, "time.outputs": 2})
    )
    for name in AVERAGES_OF_CHANNELS:
        error = found[f"{name}_error"].values
        assert (error[0] == 0).all()
        assert (error[1] > 0).all()
        assert (error[1] <= 2 * found[f"{name[:1].replace('o', 'M')}_error"].values[1].max()).all()  # they lag behind


@pytest.mark.slow
@pytest.mark.parametrize("method", ["projected", "plain"])
def test_sgd_agrees_with_the_limit_and_with_no_rate_a_fifth_away(method):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    settings = {"method": method, "dimension": 400, "replicas": 32, "seed": 1}
    problem = meanfield.with_values(
        CHANNELS, {"particles": settings, "time.stop": 3.0, "time.outputs": 4, "model.learning_rate": 0.05}
    )
    found = verdicts(problem, "order_parameters", "model.average_rate", [0.8 * RATE, 1.2 * RATE])
    assert found == ["AGREES", "DIFFERS", "DIFFERS"]


def test_statistics_are_those_of_the_replicas():
    runs, statistics = replicas_and_statistics(CHANNELS, AVERAGES_OF_CHANNELS)
    spread = runs["overlap_average"].var("replica", ddof=1).values * 40
    assert statistics["overlap_average_variance"].values == pytest.approx(spread, abs=1e-12)  # rounding
    assert statistics["q_average_covariance"].dims == ("time", "feature", "feature_", "channel", "channel_")
