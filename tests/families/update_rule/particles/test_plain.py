"""Plain SGD of update rules: the same numbers as a loop of NumPy, exact starts, exact solutions, and constraints.

Seeds are fixed. Had they been drawn at random, the statistical test would raise a false alarm with probability below
`FALSE_ALARM`.
"""

import numpy as np
import pytest
from scipy import stats

from meanfield.families.update_rule.particles.start import draw_vectors
from meanfield.families.update_rule.particles.steps import variances_of
from tests.families.update_rule.particles import naive
from tests.families.update_rule.particles.problems import (
    FULL,
    MEANS,
    ORTHONORMAL,
    RULES,
    SEVERAL,
    SINGLE,
    TOGETHER,
    VIEWS,
    after,
    made,
    rows_after,
)
from tests.references_in_time import table

FALSE_ALARM = 1e-3

ROUNDING = 1e-12
"""Of means over coordinates after 40 steps, in which other orders of sums differ."""

CASES = {
    "spiked, schedules": made(
        FULL,
        model={"rule_parameters": {"rate": table([0.0, 0.3], [0.1, 0.4], 1.0)}},
        prior={"name": "l2", "strength": table([0.0, 0.5], [0.2, 0.6], 1.0)},
    ),
    "orthogonal, masked, three samples, polar": made(
        FULL,
        **ORTHONORMAL,
        model={"constraint": "polar", "batch_size": 3},
        data={"signal": "orthogonal", "observed": 0.6},
        prior={"name": "l1", "strength": 0.5},
    ),
    "orthogonal, gram_schmidt": made(
        FULL, **ORTHONORMAL, model={"constraint": "gram_schmidt"}, data={"signal": "orthogonal"}
    ),
    "long blocks, masked, sphere": made(
        FULL, model={"constraint": "sphere"}, data={"observed": 0.8}, particles={"dimension": 1031}
    ),
    "variances, orthogonal, two samples": made(
        FULL,
        model={"batch_size": 2},
        data={
            "signal": "orthogonal",
            "spectrum": {"law": "power_law", "exponent": 1.5, "range": 100.0, "teacher": 0.5},
        },
        particles={"dimension": 1031},
    ),
    "one student": made(SINGLE, model={"rule": f"{RULES}:oja_itself", "constraint": "none"}),
    "one student without features": made(
        SINGLE, model={"rule": f"{RULES}:oja_itself", "constraint": "sphere", "batch_size": 2}, features=[]
    ),
    "several draws, masked": made(SEVERAL, data={"observed": 0.7}, particles={"dimension": 1031}),
    "several draws, variances": made(
        SEVERAL, data={"spectrum": {"law": "power_law", "exponent": 1.5, "range": 100.0, "teacher": 0.5}}
    ),
    "views": made(VIEWS, prior={"name": "l1", "strength": 0.5}),
    "masked views along trained vectors": made(
        VIEWS,
        features=[{"initial_overlap": each["initial_overlap"]} for each in VIEWS["features"]],
        draws=[VIEWS["draws"][0] | {"along": "V", "observed": 0.6}],
    ),
    "samples that see each other": made(TOGETHER, data={"observed": 0.8}),
    "averages over samples": made(MEANS, prior={"name": "l1", "strength": 0.5}),
    "a mask for each view": made(
        VIEWS,
        draws=[VIEWS["draws"][0] | {"observed": [0.6, 1.0]}, VIEWS["draws"][1] | {"observed": 0.8}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_a_loop_of_numpy(case):
    problem = CASES[case]
    stepper = after(problem, range(1, 2), 40)
    U, W, v = naive.run(problem, 1, 40)
    of_weights = 10 * ROUNDING  # single ones, not means
    np.testing.assert_allclose(stepper.snapshot["weights"][0], W, rtol=0, atol=of_weights)
    np.testing.assert_allclose(stepper.rows["Q"][0], W.T @ W / len(W), rtol=0, atol=ROUNDING)
    if U.size:
        np.testing.assert_allclose(stepper.rows["R"][0], W.T @ U / len(W), rtol=0, atol=ROUNDING)
    if problem.data.spectrum is not None:
        weighted = (W.T * variances_of(problem)) @ np.hstack([U, W]) / len(W)
        np.testing.assert_allclose(stepper.rows["R_noise"][0], weighted[:, : U.shape[1]], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(stepper.rows["Q_noise"][0], weighted[:, U.shape[1] :], rtol=0, atol=ROUNDING)
    if v.size:
        np.testing.assert_allclose(stepper.rows["v"][0], v, rtol=0, atol=ROUNDING)


def test_features_are_orthonormal_and_students_start_with_their_overlaps():
    problem = made(FULL)
    U, W = draw_vectors(problem, 0)
    N = len(U)
    for product, wanted in ((U.T @ U, np.eye(2)), (W.T @ U, problem.initial_R), (W.T @ W, problem.initial_Q)):
        np.testing.assert_allclose(product / N, wanted, rtol=0, atol=1e-14)  # rounding


def test_students_in_the_span_of_features_and_equal_students_start_as_they_should():
    problem = made(FULL, features=ORTHONORMAL["features"][:1], students=[{}, {"initial_overlap": [1.0]}])
    np.testing.assert_allclose(*draw_vectors(problem, 0)[1].T, rtol=0, atol=1e-6)  # root of the rounding of Q
    same = made(SINGLE, features=[{"initial_overlap": 1.0}])
    np.testing.assert_allclose(*draw_vectors(same, 0), rtol=0, atol=1e-13)


def hebb(R, Q, rate, steps, N):
    """Mean R, mean Q and variance of R after steps of Hebb's rule, exactly at every N (update_rules.md, 10.4).

    A step adds rate |y|/N to R, of which |y| is the modulus of a normal number, and to Q 2 rate sign(y) s/N and
    rate^2 |x|^2/N^2, whose means are 2 k R/N and rate^2/N.
    """
    k, t = rate * np.sqrt(2.0 / np.pi), steps / N
    mean = R + k * t
    square = Q + 2.0 * k * R * t + k**2 * t * (t - 1.0 / N) + rate**2 * t
    return mean, square, rate**2 * (1.0 - 2.0 / np.pi) * t / N


@pytest.mark.parametrize("method", ["plain", "chain"])
def test_hebb_has_the_exact_means_and_variance(method):
    problem, runs = made(SINGLE, particles={"method": method}), 2000
    R, Q = rows_after(problem, runs).T
    mean, square, variance = hebb(0.2, 1.0, 0.7, 64, 64)
    z = (R.mean() - mean) / np.sqrt(variance / runs), (Q.mean() - square) / (Q.std() / np.sqrt(runs))
    # R is a sum of 64 variables of kurtosis 3.87, and its own is 3.01: its variance has the law of normal theory
    p = [2 * stats.norm.sf(np.abs(z)), 2 * stats.norm.sf(abs(R.var() / variance - 1) / np.sqrt(2 / runs))]
    assert np.hstack(p).min() > FALSE_ALARM / 6  # three numbers of each kind of step (Bonferroni)


@pytest.mark.parametrize("method", ["plain", "chain"])
@pytest.mark.parametrize("constraint", ["sphere", "gram_schmidt", "polar"])
def test_constraints_hold_to_rounding(method, constraint):
    problem = made(FULL, **ORTHONORMAL, model={"constraint": constraint}, particles={"method": method})
    stepper = after(problem, range(1), 500)
    Q = stepper.rows["Q"][0]
    kept = np.eye(2, dtype=bool) if constraint == "sphere" else np.ones((2, 2), dtype=bool)
    np.testing.assert_allclose(Q[kept], np.eye(2)[kept], rtol=0, atol=1e-14)
    if method == "plain":
        W = stepper.snapshot["weights"][0]
        np.testing.assert_allclose((W.T @ W / len(W))[kept], np.eye(2)[kept], rtol=0, atol=1e-14)
