"""Escape from the symmetric plateau: against the nonlinear equations, reference rates, and the chain of SGD."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.hidden_manifold import escape
from meanfield.families.hidden_manifold.escape import amplification, escape_times, linearised
from meanfield.families.hidden_manifold.escape_noise import no_noise
from meanfield.families.hidden_manifold.figures import describe
from meanfield.families.hidden_manifold.fixed_points import fixed_points_along, symmetrised
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.legs import steadily
from meanfield.families.hidden_manifold.order_parameters.system import (
    make_system,
    observables,
    packed,
    start_of,
    unpacked,
)
from tests.families.hidden_manifold.problems import problem, solved

START = {"initial": "random", "variance": 1.0, "on_teacher": None, "elsewhere": None}
RANDOM = {"student": START, "order_parameters": {"tolerance": 1e-6}}
ONE_BLOCK = {"inputs": {"aspect_ratio": 0.1, "spectrum": {"law": "atoms", "eigenvalues": [1.0]}}}
PATTERN = np.array([[0.5, -0.5], [-0.5, 0.5]])


def test_small_differences_grow_as_in_the_nonlinear_equations(monkeypatch):
    """Random profiles over two eigenvalues, of which the teacher prefers one, with both layers trained; no noise."""
    monkeypatch.setattr(escape, "noise_of_steps", lambda case, legs, *rest: [no_noise(2)] * len(legs))
    two = problem(
        inputs={"spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6], "teacher": [0.2, 1.8]}},
        training={"output_learning_rate": 0.2},
        **RANDOM,
    )
    system = make_system(two, two.inputs.eigenvalues.nodes(2), 10)
    times, size = np.array([0.0, 5.0, 40.0]), 1e-5
    found = amplification(two, steadily(system), times, 1e-9)
    start, total = start_of(two, system), np.zeros(3)
    for node in range(2):
        state = unpacked(system, start.copy())
        state.r[node] += size * PATTERN
        path = follow(steadily(system), packed(state), times, 1e-10)
        d = np.einsum("tkm,km->t", observables(system, path.state)["R"], PATTERN) / size
        variance = system.rho[node] * system.t[node, 0, 0] / (0.5 * system.weight[node])  # N Var of the profile there
        total += variance * d**2
    assert found.part == pytest.approx(np.sqrt(total), rel=1e-5)  # of differences that are not infinitely small
    assert found.part[2] > 1.2 * found.part[0]


def test_the_growth_rate_at_the_plateau():
    """Theory page: the only positive eigenvalue at the plateau of the first problem, .010314808."""
    first = problem()
    system = make_system(first, first.inputs.eigenvalues.nodes(10), 10)
    plateau = next(fixed_points_along(system, symmetrised(system, start_of(first, system))))
    B = np.empty((10, 10))
    linearised(plateau, system, PATTERN, np.empty(len(plateau)), B)
    assert np.linalg.eigvals(B).real.max() == pytest.approx(0.010314808, abs=2e-8)  # of 10 nodes


def test_times_of_the_reference():
    """Theory page, delta = .1: nonlinear equations from random starts escape at 19.8(3.0) and 60.2(1.4) on average."""
    stop = {"time": {"stop": 200.0, "outputs": 201}}
    result = solved("escape", **RANDOM | ONE_BLOCK | stop, particles={"dimension": 512})
    size = np.abs(np.random.default_rng(0).standard_normal(2000))
    part = result["antisymmetric_part"].values * 512**0.5
    for N, mean, error in ((512, 19.8, 3.0), (8192, 60.2, 1.4)):
        when = [result["time"].values[np.argmax(part * z >= 0.15 * N**0.5)] for z in size]
        assert np.mean(when) == pytest.approx(mean, abs=3.5 * error)  # its standard errors
    again = escape_times(result["time"].values, part, np.quantile(size, [0.9, 0.5, 0.1]) / 512**0.5)
    assert again[:2] == pytest.approx(result["escape_time_quantile"].values[:2], abs=3.0)  # of 2000 sizes
    assert "N = 512: of starts escape 10 % at t = 0, 50 % at t = 14" in describe(result)


def test_the_chain_of_sgd_amplifies_as_much():
    """Regression of the antisymmetric part at t = 10 on that at t = 0, whose slope has a standard error of about .1."""
    settings = {"dimension": 1024, "replicas": 40, "method": "chain", "seed": 1}
    small = problem(**RANDOM | ONE_BLOCK, time={"stop": 10.0, "outputs": 2}, particles=settings)
    predicted = meanfield.solve(small, "escape")["antisymmetric_part"].values
    R = meanfield.solve(small, "particles", workers=1)["R"].values
    first, last = np.einsum("rtkm,km->tr", R, PATTERN)
    slope = first @ last / (first @ first)
    error = np.sqrt(((last - slope * first) ** 2).sum() / 39 / (first @ first))
    assert error < 0.15
    assert slope == pytest.approx(predicted[1] / predicted[0], abs=3.5 * error)  # 1 in 2000 by chance
    assert first.std() == pytest.approx(predicted[0], rel=3.5 / np.sqrt(80))  # errors of a deviation of 40


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"student": START | {"output_weights": [1.0, 0.5]}}, r"student.output_weights = \[1.0, 0.5\]"),
        ({"teacher": {"output_weights": [1.0, 0.5]}}, "teacher.output_weights"),
        ({"teacher": {"overlap": [[1.0, 0.0], [0.0, 2.0]]}}, "teachers cannot be permuted"),
        ({"teacher": {"overlap": [[1.0, 1.0], [1.0, 1.0]]}}, "teachers cannot be permuted, or are one"),
        ({"student": START | {"output_weights": [1.0]}}, "student.output_weights has one unit"),
        (
            {"inputs": {"centered": False, "components": [{"weight": 1.0, "mean": [1.0, 0.0]}]}},
            "means tell teachers apart",
        ),
    ],
)
def test_problems_without_a_symmetric_plateau_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        solved("escape", **RANDOM | changes)


def test_an_informed_start_that_is_nearly_alike():
    """Against the nonlinear equations: what tells students apart is .005 at the start, and .02 at the end."""
    student = {"on_teacher": [[0.105, 0.1], [0.1, 0.105]]}
    changes = {"student": student, "time": {"stop": 150.0, "outputs": 16}, "order_parameters": {"tolerance": 1e-7}}
    result = solved("escape", **changes)
    R = solved(**changes)["R"].values
    d = np.einsum("tkm,km->t", R, PATTERN)
    assert result["antisymmetric_part"].values == pytest.approx(d, rel=2e-2)  # its square, and more, is left out
    assert result["antisymmetric_part"].values[0] == pytest.approx(d[0], rel=1e-7)  # tolerance of the order parameters
    assert describe(result) == "students are told apart later than the end"


def test_an_escape_after_the_end_is_said():
    result = solved("escape", **RANDOM | ONE_BLOCK, time={"stop": 2.0, "outputs": 2})
    assert np.isnan(result["escape_time_quantile"].values[1])
    assert "raise time.stop" in result.attrs["warning"]
    assert "later than the end" in describe(result)


def test_the_start_of_three_students_and_teachers():
    """Four independent numbers tell them apart; T of teachers that are not orthogonal lowers their variance."""
    overlap = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    three = problem(
        inputs=ONE_BLOCK["inputs"],
        teacher={"output_weights": [1.0] * 3, "overlap": overlap.tolist()},
        student=START | {"output_weights": [1.0] * 3},
        order_parameters={"tolerance": 1e-4},
        time={"stop": 0.01, "outputs": 2},
        particles={"dimension": 1000, "replicas": 200, "method": "chain"},
    )
    part = float(meanfield.solve(three, "escape")["antisymmetric_part"][0])
    R = meanfield.solve(three, "particles", workers=1)["R"].values[:, 0]
    apart = R - R.mean(axis=1, keepdims=True) - R.mean(axis=2, keepdims=True) + R.mean(axis=(1, 2), keepdims=True)
    square = (apart**2).sum(axis=(1, 2)) / part**2
    assert square.mean() == pytest.approx(4.0, abs=3.5 * np.sqrt(8.0 / 200))  # chi squared; 1 in 2000 by chance
    assert square.var() == pytest.approx(8.0, rel=0.7)  # twice the mean, not the square of it


def test_the_estimate_bounds_the_error():
    """Of Marchenko-Pastur nodes; the exact one has twice as many, and shorter steps. No noise is sampled.

    Two levels agree by chance at single times, where the error of this start was 19 times their difference.
    """
    at = {"time": {"stop": 20.175, "outputs": 21}, "student": {"on_teacher": [[0.0933, 0.1150], [0.1150, 0.0933]]}}
    exact = solved("escape", **at, order_parameters={"tolerance": 1e-7})["antisymmetric_part"].values
    for tolerance in (1e-2, 1e-4):
        result = solved("escape", **at, order_parameters={"tolerance": tolerance})
        error = np.abs(result["antisymmetric_part"].values - exact)
        assert np.all(error <= result["antisymmetric_part_error"].values + 1e-9)  # of what is exact
        assert np.all(result["antisymmetric_part_error"].values <= tolerance)


def test_noise_on_the_way_against_the_covariance_of_all_order_parameters(monkeypatch):
    """Which takes the whole Jacobian and other samples; the learning rate is large, so that noise matters."""
    blocks = {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.4, 1.6]}}}
    case = RANDOM | blocks | {"training": {"learning_rate": 1.5}, "time": {"stop": 6.0, "outputs": 4}}
    found, all_of_them = solved("escape", **case), solved(**case)
    covariance = np.einsum("km,tkmln,ln->t", PATTERN, all_of_them["R_covariance"].values, PATTERN)
    stated = np.einsum("km,tkmln,ln->t", np.abs(PATTERN), all_of_them["R_covariance_error"].values, np.abs(PATTERN))
    part, error = (found[f"antisymmetric_part{end}"].values for end in ("", "_error"))
    allowed = 1000 * 2 * part * error + 0.5 * stated + 1e-3 * covariance  # N, and steps of the covariance
    assert np.all(np.abs(1000 * part**2 - covariance) <= allowed)
    assert np.all(allowed[1:] < 0.1 * covariance[1:])
    monkeypatch.setattr(escape, "noise_of_steps", lambda case, legs, *rest: [no_noise(2)] * len(legs))
    assert part[-1] > 1.2 * solved("escape", **case)["antisymmetric_part"].values[-1]


RATES = {
    "learning_rate": {"schedule": "warmup_cosine", "peak": 0.4, "warmup": 20.0, "end": 0.05, "duration": 100.0},
    "output_learning_rate": {"times": [0.0, 40.0], "values": [0.0, 0.2], "interpolation": "step"},
    "weight_decay": {"schedule": "linear", "start": 0.0, "end": 0.01, "duration": 150.0},
}


LATER = [{"stop": 60.0}, {"stop": 150.0, "set": {"inputs.nonlinearity": "tanh", "teacher.output_weights": [1.2, 1.2]}}]
"""Phases in which inputs and the teacher's outputs are others."""


@pytest.mark.parametrize(
    "phases", [pytest.param(None, marks=pytest.mark.slow), LATER]
)  # one phase is the first of both
def test_differences_grow_at_the_rates_of_their_time(phases):
    """Against the nonlinear equations, as those of constant rates above."""
    changes = {
        "student": {"on_teacher": [[0.105, 0.1], [0.1, 0.105]]}, "training": RATES,
        "time": {"stop": 150.0, "outputs": 16}, "order_parameters": {"tolerance": 1e-7},
    }  # fmt: skip
    given = meanfield.with_value(problem(**changes), "phases", phases)
    result = meanfield.solve(given, "escape")
    d = np.einsum("tkm,km->t", meanfield.solve_order_parameters(given)["R"].values, PATTERN)
    part = result["antisymmetric_part"].values
    assert part == pytest.approx(d, rel=2e-2)  # its square, and more, is left out
    assert part[-1] > 1.4 * part[0]


def test_rates_that_stay_by_schedules_give_the_bits_of_numbers():
    case = RANDOM | ONE_BLOCK | {"time": {"stop": 3.0, "outputs": 4}, "order_parameters": {"tolerance": 1e-3}}
    found, known = (
        solved("escape", **case, training={"learning_rate": rate}) for rate in ({"times": [0.0], "values": [0.3]}, 0.3)
    )
    for name in ("antisymmetric_part", "antisymmetric_part_error", "antisymmetric_rate", "Q"):
        assert np.array_equal(found[name], known[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("phases", [None, [{"stop": 2.5}, {"stop": 4.0, "set": {"inputs.nonlinearity": "tanh"}}]])
def test_the_noise_of_sgd_is_that_of_each_time(monkeypatch, phases):
    """Variances of 400 chains are off by a quarter once in 2000 times; the noise adds a third, at rates that move."""
    rate = {"times": [0.0, 2.0, 4.0], "values": [2.0, 0.2, 1.5]}
    batch = {"times": [0.0, 3.0], "values": [1, 4], "interpolation": "step"}
    settings = {"dimension": 1000, "replicas": 400, "method": "chain", "seed": 3}
    case = problem(
        **RANDOM | ONE_BLOCK, time={"stop": 4.0, "outputs": 2}, particles=settings,
        training={"learning_rate": rate, "batch_size": batch},
    )  # fmt: skip
    case = meanfield.with_value(case, "phases", phases)
    part = meanfield.solve(case, "escape")["antisymmetric_part"].values[1]
    last = np.einsum("rkm,km->r", meanfield.solve(case, "particles", workers=1)["R"].values[:, 1], PATTERN)
    assert (last**2).mean() == pytest.approx(part**2, rel=3.5 * np.sqrt(2 / 400))
    monkeypatch.setattr(escape, "noise_of_steps", lambda case, legs, *rest: [no_noise(1)] * len(legs))
    assert part**2 > 1.3 * meanfield.solve(case, "escape")["antisymmetric_part"].values[1] ** 2


def test_students_that_are_alike_exactly_stay_so():
    student = {"on_teacher": [[0.1, 0.1], [0.1, 0.1]]}
    result = solved("escape", student=student, time={"stop": 1.0, "outputs": 2}, order_parameters={"tolerance": 1e-2})
    assert not result["antisymmetric_part"].values.any()
    assert not result["antisymmetric_part_error"].values.any()
    assert np.isnan(result["escape_time_quantile"].values).all()


def test_what_no_run_does_is_not_compared():
    """Students that stay alike for ever have the overlaps of no run, and a difference from runs is no error."""
    short = {"time": {"stop": 1.0, "outputs": 2}, "student": START, "order_parameters": {"tolerance": 1e-2}}
    both = [solved(method, **short) for method in ("escape", "order_parameters")]
    with pytest.raises(InputError, match="escape: is a result of kind 'escape', and its students stay alike"):
        meanfield.compare(*both)
