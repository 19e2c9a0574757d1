"""The best noise for x^2 against closed forms, and what it does to other activations."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import minimize

from meanfield import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.learnability.augmentation import (
    best_augmentation,
    recovery_similarity,
    vanishing_strength,
    with_noise,
)
from meanfield.families.contrastive.learnability.learnability import learnability
from tests.oracles.plain_steps import NOISE_A, NOISE_B, NOISE_D, TAU, M, make_problem, symbolic

RATIO, MOMENTS = 0.005, (1.0, 5.0, 25.0)
RARE = {"law": "three_point", "second_moment": 1.0, "fourth_moment": 5.0}


def quadratic():
    return make_problem(hidden=(RARE,), tau=RATIO * 4, m=4)


@pytest.fixture(scope="module")
def design():
    return best_augmentation(quadratic())


@pytest.fixture(scope="module")
def closed_form():
    """-dg/dq at 0, Lambda(q) and b(q) as functions of q and of the noise (eta, rho), by computer algebra."""
    views = symbolic(1, "general")
    q, s, eta, rho = (*sp.symbols("q1 s", real=True), sp.Symbol("eta"), sp.Symbol("rho"))
    moments = dict(zip((f"m{k}_1" for k in (2, 4, 6)), MOMENTS, strict=True))
    values = {sp.Symbol(name, positive=True): value for name, value in moments.items()} | {TAU: 4 * RATIO, M: 4}
    noise = {NOISE_A: sp.sqrt(eta), NOISE_B: rho * sp.sqrt(eta), NOISE_D: sp.sqrt(eta * (1 - rho**2))}
    g, diffusion = (x.subs(noise).subs(values).subs(s, sp.sqrt(1 - q**2)) for x in (views.g[0], views.Lambda))
    drift = q * (q * g - diffusion / 2) - g
    gain = -sp.diff(views.g[0].subs(s, 1), q).subs(noise).subs({TAU: 4 * RATIO, M: 4}).subs(q, 0)
    m2 = sp.Symbol("m2_1", positive=True)
    threshold = sp.solve(gain - diffusion.subs(q, 0) / 2, m2)[0]
    return sp.lambdify((q, eta, rho), drift), sp.lambdify((eta, rho), threshold)


def similarity(drift, eta, rho):
    """The largest stable zero of b by bisection between points of a fine grid."""
    q = np.linspace(0.02, 0.9999, 400)
    b = drift(q, eta, rho)
    cells = np.flatnonzero((b[:-1] > 0) & (b[1:] <= 0))
    if cells.size == 0:
        return 0.0
    low, high = q[cells[-1]], q[cells[-1] + 1]
    for _ in range(50):
        low, high = (middle, high) if drift(middle := 0.5 * (low + high), eta, rho) > 0 else (low, middle)
    return low


def test_noise_of_the_largest_similarity(design, closed_form):
    drift, _ = closed_form
    grid = [(similarity(drift, eta, rho), eta, rho) for eta in np.linspace(0, 2, 11) for rho in np.linspace(-1, 1, 5)]
    _, eta, rho = max(grid)
    loss = lambda x: -similarity(drift, abs(x[0]), np.clip(x[1], -1, 1))  # noqa: E731
    right = minimize(loss, [eta, rho], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    found = design.similarity
    assert found.value == pytest.approx(-right.fun, abs=1e-8)  # flat about the optimum: the square of 1e-4
    assert found.strength == pytest.approx(right.x[0], abs=1e-3)  # the root of what rounding hides of the similarity
    assert found.correlation == np.clip(right.x[1], -1, 1) == -1.0
    assert found.noiseless == pytest.approx(similarity(drift, 0.0, 0.0), abs=1e-9)  # digits of closures
    assert found.value > found.noiseless


def test_noise_of_the_lowest_threshold(design, closed_form):
    _, threshold = closed_form
    grid = [(threshold(eta, rho), eta, rho) for eta in np.linspace(0, 0.5, 501) for rho in np.linspace(-1, 1, 41)]
    lowest, eta, rho = min(grid)
    found = design.threshold
    assert (found.strength, found.correlation) == (pytest.approx(eta, abs=2e-3), rho)  # twice the grid
    assert found.value == pytest.approx(lowest, abs=1e-7)  # the curvature times the square of the grid's spacing
    assert found.noiseless == pytest.approx(1 + 10 * RATIO, rel=1e-9)  # digits of closures


@pytest.mark.parametrize("rho", [-1.0, pytest.param(0.0, marks=pytest.mark.slow)])  # the same search, in weaker noise
def test_strength_at_which_the_recovery_state_vanishes(closed_form, rho):
    """Where the largest b on (0, 1) beyond the well at q = 0 falls to 0."""
    drift, _ = closed_form
    found = vanishing_strength(quadratic(), rho)
    q = np.linspace(0.3, 0.9999, 20001)
    below, above = (drift(q, found + shift, rho).max() for shift in (-5e-5, 5e-5))  # resolved to 1e-5 of the strongest
    assert below > 0 > above


@pytest.mark.slow
def test_recovery_state_that_fades_into_q_equal_0():
    """tanh, independent views, a Gaussian variable: |q| falls to 0 where the threshold reaches its second moment."""
    problem = make_problem("tanh", ({"law": "gaussian", "second_moment": 2.0},), tau=4.0, m=4)
    found = vanishing_strength(problem, 0.5)
    at = learnability(with_noise(problem, found, 0.5))
    assert at.learnable_moments[0] == pytest.approx(2.0, abs=2e-4)  # 1e-5 of the strongest times the slope
    assert math.isnan(vanishing_strength(problem, 0.5, 0.5 * found))


def test_any_noise_does_harm_to_tanh():
    problem = make_problem("tanh", ({"law": "gaussian", "second_moment": 2.0},), tau=4.0, m=4)
    for correlation in (-1.0, 0.0):
        assert recovery_similarity(with_noise(problem, 0.02, correlation)) < recovery_similarity(problem)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_no_noise_is_best_where_all_noise_does_harm(name):
    tau = {"tanh": 4.0, "relu": 0.4}[name]
    design = best_augmentation(make_problem(name, ({"law": "gaussian", "second_moment": 2.0},), tau=tau, m=4))
    for found in (design.similarity, design.threshold):
        assert (found.strength, found.correlation) == (0.0, 0.0)
        assert found.value == found.noiseless


def test_independent_noise_can_help():
    """It smooths the kinks of hard_tanh: Lambda falls faster than what drives learning."""
    problem = make_problem("hard_tanh", ({"law": "gaussian", "second_moment": 2.0},), tau=4.0, m=4)
    assert recovery_similarity(problem) == 0.0
    assert recovery_similarity(with_noise(problem, 0.1, 0.0)) > 0.2


def test_two_features_have_the_better_of_two_states():
    other = {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}
    alone = [recovery_similarity(make_problem(hidden=(h,), tau=0.01, m=1)) for h in (RARE, other)]
    both = recovery_similarity(make_problem(hidden=(RARE, other), tau=0.01, m=1))
    assert both == pytest.approx(max(alone), abs=1e-8)  # digits of closures


def test_without_a_recovery_state_the_similarity_is_0():
    problem = make_problem(hidden=(RARE,), tau=1.0, m=1)
    assert recovery_similarity(problem) == 0.0
    assert math.isnan(vanishing_strength(problem, -1.0))


def test_the_noise_replaces_that_of_the_problem():
    problem = make_problem(noise="unequal")
    assert Closure(with_noise(problem, 0.0, 0.0))([0.5])[1] == Closure(make_problem())([0.5])[1]


def test_bad_input_is_refused():
    with pytest.raises(InputError, match=r"strongest = -1.0: give a positive variance"):
        best_augmentation(quadratic(), -1.0)
    with pytest.raises(InputError, match=r"strongest = 1000000000.0: give a positive variance up to 1e\+06"):
        best_augmentation(quadratic(), 1e9)
    with pytest.raises(InputError, match=r"prior\.name = 'l1'"):
        best_augmentation(make_problem(prior={"name": "l1", "strength": 1.0}))
