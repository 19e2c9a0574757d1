"""Moments and objectives of runs and flows, against sums that are written out."""

import numpy as np
import pytest
from scipy import stats

import meanfield
from tests.families.alpha_contrastive.problems import LAW_F, data, kernel, problem, problem_from

SETTINGS = {
    "filters": {"count": 5},
    "time": {"stop": 0.1, "outputs": 2},
    "training": {"learning_rate": 0.05, "batch_size": 8},
    "particles": {"replicas": 2, "test_batches": 1},
}
SPHERE = {"law": "points", "points": [[1.0, 0.0, 0.2], [0.0, 1.0, -0.4], [-0.5, -0.5, 1.0], [0.3, -1.0, -0.6]]}
MIXTURE = {
    "law": "gaussian_mixture",
    "means": [[1.0, 0.0, 0.0], [-0.5, 0.8, 0.3]],
    "covariance": 0.4,
    "probabilities": [0.5, 0.5],
}


def plain_objective(w, points, p, value, importance):
    """G of a network by the formulas of the theory page, pair by pair."""
    h = value(points @ w.T)
    D = np.array([[0.5 * np.mean((a - b) ** 2) for b in h] for a in h])
    if importance["kind"] == "quadratic":
        return 0.5 * sum(p[i] * p[j] * D[i, j] for i in range(len(p)) for j in range(len(p)))
    tau = importance["temperature"]
    if importance["kind"] == "gaussian":
        return 0.5 * sum(p[i] * p[j] * tau * (1 - np.exp(-D[i, j] / tau)) for i in range(len(p)) for j in range(len(p)))
    return (
        -0.5
        * tau
        * sum(p[i] * np.log(sum(p[j] * np.exp(-D[i, j] / tau) for j in range(len(p)))) for i in range(len(p)))
    )


@pytest.mark.parametrize("method", ["particles", "population"])
@pytest.mark.parametrize(
    ("law", "importance"),
    [
        (LAW_F, {"kind": "quadratic"}),
        (LAW_F, kernel("infonce", 0.4, diagonal="include")),
        (SPHERE, kernel("gaussian", 0.3)),
    ],
)
def test_of_points(method, law, importance):
    found = meanfield.solve(problem("quadratic", law, importance, **SETTINGS), method)
    weights = found["weights"].values.reshape(-1, 5, len(law["points"][0]))
    points = np.array(law["points"])
    p = np.array(law.get("probabilities", [1.0 / len(points)] * len(points)))
    expected = [plain_objective(w, points, p, np.square, importance) for w in weights]
    assert found["G"].values.ravel() == pytest.approx(expected, abs=1e-12)  # rounding of sums in another order
    if points.shape[1] == 3:
        assert found["mean"].values.reshape(-1, 3) == pytest.approx(weights.mean(axis=1), abs=1e-14)  # rounding
        second = [np.mean([np.outer(v, v) for v in w], axis=0) for w in weights]
        moments = found["second_moment"].values.reshape(-1, 3, 3)
        assert moments == pytest.approx(np.array(second), abs=1e-14)  # rounding
        return
    theta = np.arctan2(weights[..., 1], weights[..., 0])
    for name, wave in (("moment_cos", np.cos), ("moment_sin", np.sin)):
        expected = np.stack([wave(k * theta).mean(axis=1) for k in range(1, 9)], axis=1)
        moments = found[name].values.reshape(-1, 8)
        assert moments == pytest.approx(expected, abs=1e-12)  # rounding of sums in another order


def test_objective_of_a_mixture_is_half_the_variance_of_outputs():
    found = meanfield.solve(problem_from(data("relu", MIXTURE, **SETTINGS)), "particles")
    u = np.linspace(-8.0, 8.0, 40_001)
    for w, G in zip(found["weights"].values.reshape(-1, 5, 3), found["G"].values.ravel(), strict=True):
        half_variances = []
        for filter_ in w:
            law = sum(0.5 * stats.norm.pdf(u, np.dot(mean, filter_), np.sqrt(0.4)) for mean in MIXTURE["means"])
            mean, square = (np.trapezoid(law * np.maximum(u, 0.0) ** k, u) for k in (1, 2))
            half_variances.append(0.5 * (square - mean**2))
        assert pytest.approx(np.mean(half_variances), abs=1e-7) == G  # the trapezoidal rule at the kink


def test_a_limit_that_has_no_smooth_objective_leaves_it_out():
    runs = meanfield.solve(problem("relu", importance=kernel("triplet", 0.3, epsilon=0.1), **SETTINGS), "particles")
    assert "G" not in runs
    assert "moment_cos" in runs
