"""Limits of published rules against equations in closed form that are integrated here, and what those rest on."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.stats import norm

import meanfield
from validation.update_rule.papers import (
    clipping,
    continual_learning,
    erf_networks,
    independent_components,
    linear_regression,
    mean_teacher,
    missing_data,
    noisy_labels,
    optimal_perceptron,
    perceptron_rules,
    phase_diagram,
    phase_retrieval,
)

LATE = 5.0
"""Time of the comparisons."""


def integrated(velocity, start, **options):
    """State at LATE."""
    return solve_ivp(lambda t, x: velocity(*x), (0.0, LATE), start, rtol=1e-10, atol=1e-12, **options).y[:, -1]


def of_rule(problem):
    """R, Q and side variables at LATE of a problem of one student, and their tolerance."""
    time = {"stop": LATE, "outputs": 2}
    problem = meanfield.with_value(problem, "time", time)
    last = meanfield.solve(problem, "order_parameters").isel(time=-1)
    found = [float(last["R"].item()), float(last["Q"].item()), *(last["v"].values if "v" in last else [])]
    return np.array(found), 5.0 * problem.order_parameters.tolerance


def perceptron_velocity(rule):
    def velocity(R, Q):
        w, k = R / np.sqrt(Q), np.sqrt(2.0 / np.pi)
        a, b = np.arccos(w), np.sqrt(1.0 - w * w)
        y, s, square = {
            "hebb": (k, R * k, 1.0),
            "perceptron": (0.5 * k * (1 - w), -0.5 * k * np.sqrt(Q) * (1 - w), a / np.pi),
            "adatron": (np.sqrt(Q) * (b - w * a) / np.pi, -Q * (a - w * b) / np.pi, Q * (a - w * b) / np.pi),
        }[rule]
        return y, 2.0 * s + square

    return velocity


def decaying_regression(R, Q, rate=1.5, decay=0.3, sigma=linear_regression.SIGMA):
    square = rate**2 * (1.0 - 2.0 * R + Q + sigma**2)
    return rate * (1.0 - R) - decay * R, 2.0 * rate * (R - Q) + square - 2.0 * decay * Q


def petrels(R, Q, v, p=0.5, omega=missing_data.OMEGA):
    kappa = (Q + p * omega * R**2) / Q**2
    return v * R * ((1.0 + p * omega) / Q - kappa), v**2 * kappa, v * (missing_data.FORGETTING - v * kappa)


def grouse(R, Q, p=0.5, rate=missing_data.RATE, omega=missing_data.OMEGA):
    signal = p * omega
    return rate * signal * R * (1.0 - R**2) - 0.5 * rate**2 * R * (1.0 + signal * R**2), 0.0


def phase(R, Q, rate=1.0 / 12.0):
    y, s = 3.0 * rate * R * (1.0 - Q), rate * (Q + 2.0 * R**2 - 3.0 * Q**2)
    square = rate**2 * (3.0 * Q + 12.0 * R**2 - 6.0 * Q**2 - 24.0 * Q * R**2 + 15.0 * Q**3)
    back = (s + 0.5 * square) / Q
    return y - R * back, 0.0


def clipped(R, Q, rate=0.7, c=clipping.CLIP):
    """By Stein's lemma, and the second moment of a clipped normal variable."""
    inside, square, spread = 0.0, 0.0, np.sqrt(1.0 - 2.0 * R + Q)
    for chance, size in ((1.0 - clipping.BURSTS, clipping.SMALL), (clipping.BURSTS, clipping.LARGE)):
        law = norm(size, spread)  # noise of the other sign gives the same
        within = law.cdf(c) - law.cdf(-c)
        inside += chance * within
        square += chance * (quad(lambda r, law=law: r * r * law.pdf(r), -c, c)[0] + c**2 * (1.0 - within))
    return rate * (1.0 - R) * inside, 2.0 * rate * (R - Q) * inside + rate**2 * square


CASES = {
    "Hebb": (lambda: perceptron_rules.problem_of("hebb"), perceptron_velocity("hebb"), [0.0, 1.0]),
    "perceptron": (lambda: perceptron_rules.problem_of("perceptron"), perceptron_velocity("perceptron"), [0.0, 1.0]),
    "Adatron": (lambda: perceptron_rules.problem_of("adatron"), perceptron_velocity("adatron"), [0.0, 1.0]),
    "ICA": (
        lambda: independent_components.problem_of(0.6),
        lambda R, Q: (independent_components.velocity(R, independent_components.RATE), 0.0),
        [0.6, 1.0],
    ),
    "regression": (lambda: linear_regression.problem_of(1.5, 0.3), decaying_regression, [0.0, 1.0]),
    "GROUSE": (lambda: missing_data.problem_of("grouse", 0.5), grouse, [0.3, 1.0]),
    "Oja with imputation": (lambda: missing_data.problem_of("oja", 0.5), grouse, [0.3, 1.0]),
    "PETRELS": (lambda: missing_data.problem_of("petrels", 0.5), petrels, [0.3, 1.0, 0.5]),
    "phase retrieval": (lambda: phase_retrieval.problem_of(1, 0.1), phase, [0.1, 1.0]),
    "noisy perceptron": (
        lambda: noisy_labels.problem_of("perceptron", 0.1),
        lambda R, Q: noisy_labels.velocity("perceptron", R, Q, 0.1),
        [0.0, 1.0],
    ),
    "clipping": (lambda: clipping.problem_of("bursts", "clipped", 0.7), clipped, [0.0, 0.1]),
}


@pytest.mark.slow  # rules of a study's own, which take longer to compile than to run
@pytest.mark.parametrize("name", CASES)
def test_limits_of_rules_are_solutions_of_closed_forms(name):
    made, velocity, start = CASES[name]
    found, tolerance = of_rule(made())
    assert np.abs(found - integrated(velocity, np.array(start))).max() < tolerance
    assert np.abs(found - start).max() > 0.01


def averaged(times, weight=1.0):
    """Errors of a student and of its average, by equations of |w - u|^2/N, (w - u).(w' - u)/N and |w' - u|^2/N."""
    rate, seen, follows = mean_teacher.RATE, mean_teacher.SEEN, mean_teacher.AVERAGING

    def velocity(t, x):
        student, both, average = x
        square = seen * (mean_teacher.SIGMA**2 + student + 2.0 * weight * (student - both))
        square += weight**2 * (student - 2.0 * both + average)
        return (
            2.0 * rate * (weight * (both - student) - seen * student) + rate**2 * square,
            rate * (weight * (average - both) - seen * both) + follows * (student - both),
            2.0 * follows * (both - average),
        )

    path = solve_ivp(velocity, (0.0, times[-1]), [2.0] * 3, t_eval=times, rtol=1e-10, atol=1e-12).y
    return 0.5 * path[[0, 2]].T


def one_unit(times):
    network = erf_networks.Network(np.zeros((1, 1)), np.full((1, 1), 0.25), np.ones(1), 1.0, 0.0, phase_diagram.SIGMA)
    return erf_networks.errors(network, np.append(0.0, times))[1:]


CURVES = {
    "mean teacher": (lambda: mean_teacher.problem_of(1.0), 20.0, averaged),
    "two tasks": (lambda: continual_learning.problem_of(0.7), 120.0, lambda t: continual_learning.errors(0.7, t)),
    "erf unit": (lambda: phase_diagram.problem_of(1.0), 5.0, one_unit),
    "optimal perceptron": (
        lambda: optimal_perceptron.problem_of("optimal"),
        20.0,
        lambda t: optimal_perceptron.exact(np.append(0.0, t))[1:],
    ),
}


@pytest.mark.slow  # rules of a study's own, which take longer to compile than to run
@pytest.mark.parametrize("name", CURVES)
def test_errors_of_rules_are_closed_forms(name):
    made, stop, exact = CURVES[name]
    problem = meanfield.with_value(made(), "time", {"stop": stop, "outputs": 5})
    found = meanfield.solve(problem, "order_parameters")
    allowed = 3.0 * float(found["observables_error"].max()) + 1e-8  # its own error, and that of what is held against it
    assert np.abs(found["observables"].values[1:] - exact(found["time"].values[1:]).reshape(4, -1)).max() < allowed
    assert allowed < 1e-4


def test_erf_networks_have_the_numbers_of_the_theory():
    """Reference numbers of update_rules.md, section 10.8, at t = 4: those of rules, which are quadrature."""
    R, Q = np.array([[0.3], [0.05]]), np.array([[0.5, 0.1], [0.1, 0.4]])
    network = erf_networks.Network(R, Q, np.array([0.5, 0.8]), 0.9, 0.5)
    known = (
        np.array([[0.5857469930], [0.5152762774]]),
        np.array([[0.5952013893, 0.1960451128], [0.1960451128, 0.4160933195]]),
        np.array([0.5285969021, 0.7370950317]),
    )
    assert erf_networks.errors(network, np.array([0.0, 4.0]))[-1] == pytest.approx(erf_networks.error(*known), abs=1e-9)


def test_label_noise_of_erf_networks():
    """Reference numbers of one unit with noise of 0.3 at t = 4."""
    network = erf_networks.Network(np.array([[0.2]]), np.array([[0.6]]), np.ones(1), 1.2, 0.0, 0.3)
    known = erf_networks.error(np.array([[0.8500389860]]), np.array([[0.8681226914]]), np.ones(1))
    assert erf_networks.errors(network, np.array([0.0, 4.0]))[-1] == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_noise_of_squares_where_nothing_is_known(width):
    """c = <s^2 (y^2 - mean s^2)^2> by Gauss-Hermite, of which four nodes are exact for moments up to 7."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    y, s = np.meshgrid(nodes, nodes, indexing="ij")
    both = np.outer(weights, weights) / weights.sum() ** 2
    # The other units enter by the mean and the square of the sum of their squares, which is chi-square distributed.
    others, n = s**2, width - 1
    miss = y**2 - others / width
    wanted = np.sum(both * others * (miss**2 - 2.0 * miss * n / width + n * (n + 2) / width**2))
    assert phase_retrieval.noise(width) == pytest.approx(wanted, rel=1e-12)
