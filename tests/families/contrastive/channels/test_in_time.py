"""Several channels under schedules and phases: overlaps, their covariance, densities and SGD.

Random schedules have fixed seeds. The reference integrates the equations of the overlaps by SciPy from corner to
corner, with the averages of the constant problem of each time.
"""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.channels import randomised
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.polynomials import batch_terms, terms_at
from meanfield.problems.base import corners_of
from tests.families.contrastive.channels.problems import standard
from tests.references_in_time import inside, integrated, table, verdicts

PAIR = np.triu_indices(2, 1)
CHANGES = (
    {"model.batch_size": 7, "features[1].hidden": {"law": "rademacher"}},
    {"decorrelation.penalty": "absolute", "decorrelation.strength": 0.2},
    {"augmentation": {"variance": [0.3, 0.2]}, "model.learning_rate": 0.02},
    {"decorrelation.strength": 0.0, "model.centering": "population"},
)
"""What a phase changes, by problems whose averages are exact and take a millisecond to prepare."""


def random_schedule(rng, largest):
    """Table or shape whose values are between 0 and `largest`."""
    kind = rng.integers(3)
    if kind < 2:
        times, values = [0.0, *np.sort(rng.uniform(0.2, 1.8, 2)).tolist()], (largest * rng.uniform(0, 1, 3)).tolist()
        return table(times, values, 2.0, ["linear", "step"][kind])
    ends = {"end": 0.1 * largest, "warmup": rng.uniform(0.3, 1.0), "duration": 1.7}
    return {"schedule": "warmup_cosine", "peak": largest, **ends}


def driven(seed, phases=True, **values):
    """Problem of two features and channels until t = 2 with three schedules and, if asked for, two phases."""
    rng = np.random.default_rng(seed)
    schedules = {
        "model.learning_rate": random_schedule(rng, 0.04),
        "prior": {"name": "l2", "strength": random_schedule(rng, 2.0)},
        "decorrelation.strength": random_schedule(rng, 0.1),
    }
    times = {"time.stop": 2.0, "time.outputs": 3}
    change = {"set": CHANGES[seed % len(CHANGES)], "stop": 2.0}
    both = {"phases": [{"stop": rng.uniform(0.5, 1.5)}, change]} if phases else {}
    return meanfield.with_values(standard(), schedules | times | both | values)


def overlaps(problem):
    """q and M at the output times, one vector for each, by averages of the constant problem of each time."""
    times, size = problem.time.outputs_at, problem.initial_overlap.size

    def velocity(t, vector, low, high):
        now = meanfield.at_time(problem, max(inside(t, low, high), 1e-12))  # no rate is 0
        q, M = vector[:size].reshape(-1, 2), np.array([[1.0, vector[size]], [vector[size], 1.0]])
        P, D, noise = ChannelClosure(now)(q, M)
        tau = now.model.learning_rate
        n = tau * np.diag(D) + 0.5 * np.diag(noise)
        return np.append(tau * P - q * n, (tau * (D + D.T) + noise - M * (n[:, None] + n))[PAIR])

    start = np.append(problem.initial_overlap, problem.initial_channel_overlap[PAIR])
    hundredth = {"rtol": 1e-10, "atol": 1e-10}  # of what is asked of the order parameters
    return integrated(velocity, start, times, corners_of(problem), hundredth)


def vectors(run):
    """q and M of a result in the same way."""
    q = run["q"].values
    return np.column_stack([q.reshape(len(q), -1), run["M"].values[:, 0, 1]])


@pytest.mark.slow  # batches and moments follow SciPy, too, and densities below go through phases, all by default
@pytest.mark.parametrize("seed", range(8))
def test_order_parameters_follow_any_schedules_and_phases(seed):
    problem = driven(seed)
    found = meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    assert vectors(found) == pytest.approx(overlaps(problem), abs=1e-8)  # ODE_ACCURACY


LAWS = {
    "model.batch_size": {"times": [0.0, 0.7], "values": [2, 9], "interpolation": "step"},
    "features[1].hidden": {
        "law": "three_point",
        "second_moment": {"schedule": "linear", "start": 1.0, "end": 1.5, "duration": 2.0},
        "fourth_moment": {"schedule": "exponential", "start": 6.0, "rate": 0.3},
    },
}
NOISE = {
    "augmentation": {
        "variance": [{"schedule": "linear", "start": 0.0, "end": 0.8, "duration": 1.5}, 0.4],
        "correlation": {"schedule": "cosine", "start": 0.5, "end": -0.5, "duration": 2.0},
    }
}
"""Numbers that change averages as functions of the overlaps."""


def with_others(*others, **values):
    return meanfield.with_values(driven(0, phases=False), {k: v for each in others for k, v in each.items()} | values)


@pytest.mark.parametrize("penalty", ["square", pytest.param("absolute", marks=pytest.mark.slow)])
def test_order_parameters_follow_batches_and_moments(penalty):
    problem = with_others(LAWS, **{"decorrelation.penalty": penalty, "time.stop": 1.0})
    found = meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    assert vectors(found) == pytest.approx(overlaps(problem), abs=1e-8)  # ODE_ACCURACY


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["quadratic", "tanh"])
def test_order_parameters_follow_noise_by_quadratures_that_the_extremes_need(activation):
    problem = with_others(NOISE, SIGNS, **{"model.activation": activation, "decorrelation.strength": 0.0})
    found = meanfield.solve_order_parameters(problem)
    error = float(found["q_error"].max()) if "q_error" in found else 1e-8  # ODE_ACCURACY, where rules are exact
    assert np.abs(vectors(found) - overlaps(problem)).max() <= error


def test_covariances_follow_moments_that_hardly_change():
    moving = {"schedule": "linear", "start": 1.1, "end": 1.1 + 1e-7, "duration": 2.0}
    found, known = (
        meanfield.solve_order_parameters(driven(3, phases=False, **{"time.stop": 0.5} | values))[
            "overlap_covariance"
        ].values
        for values in ({"features[0].hidden.second_moment": moving}, {})
    )
    assert found == pytest.approx(known, rel=1e-5, abs=1e-5 * np.abs(known).max())  # six digits of J and Cov(X)


RANDOM = {"decorrelation.penalty": "smooth_absolute", "decorrelation.parameters": {"width": 0.1}}
SMOOTH = {"features[1].hidden": LAWS["features[1].hidden"]}


@pytest.mark.parametrize(
    "changes", [SMOOTH, pytest.param(SMOOTH | NOISE, marks=pytest.mark.slow)], ids=["law", "noise"]
)
def test_averages_by_random_batches_are_at_all_times_those_of_the_constant_problem(changes, monkeypatch):
    monkeypatch.setattr(randomised, "MOST_BATCHES", 2**8)
    problem = with_others(changes, RANDOM)
    averages = ChannelsInTime(problem)
    assert averages.at_random
    q, M = problem.initial_overlap, problem.initial_channel_overlap
    for t in (0.4, 1.7):
        known = ChannelClosure(meanfield.at_time(problem, t))
        for number, run in enumerate(averages.runs):
            for found, each in zip(run.at(t)(q, M), known.randomisations[number](q, M), strict=True):
                # rules over one sample are right to 1e-3 of what has no penalty, and mostly to rounding
                assert found == pytest.approx(each, rel=1e-12, abs=1e-12)  # rounding: the same batches


@pytest.mark.parametrize(
    "changes",
    [
        {"model.centering": "batch"},
        {"decorrelation.penalty": "absolute"},
        {"decorrelation.penalty": "absolute", "model.activation": "tanh", "model.batch_size": 1},
        {"decorrelation.penalty": "smooth_absolute", "decorrelation.parameters": {"width": 0.1}},
    ],
    ids=["polynomials", "linear", "fourier", "random"],
)
def test_averages_at_another_strength_and_rate_are_those_of_their_problem(changes, monkeypatch):
    monkeypatch.setattr(randomised, "MOST_BATCHES", 2**6)
    largest = meanfield.with_values(standard(), {"decorrelation.strength": 0.3, "model.learning_rate": 0.1, **changes})
    q, M = largest.initial_overlap, largest.initial_channel_overlap
    for strength in (0.2, 0.0):
        problem = meanfield.with_values(largest, {"decorrelation.strength": strength, "model.learning_rate": 0.01})
        found, known = ChannelClosure(largest).at(problem)(q, M), ChannelClosure(problem)(q, M)
        for part, right in zip(found, known, strict=True):
            assert part == pytest.approx(right, rel=1e-9, abs=1e-12)  # quadratures may be others


@pytest.mark.parametrize("linear", [False, True])
def test_averages_are_polynomials_in_the_strength(linear):
    arguments = 2, 2, 4, not linear
    made = batch_terms(*arguments, 0.013, linear).coefficient
    found = terms_at(0.013, *arguments, 0.1, linear).coefficient
    assert found == pytest.approx(made, rel=1e-12, abs=1e-15)  # rounding, relative to those of the largest strength


def test_what_is_on_the_way_has_the_numbers_of_its_time():
    problem = driven(1)
    run = meanfield.solve_order_parameters(problem)
    for i in (0, 1):
        averages = ChannelClosure(meanfield.at_time(problem, float(run["time"][i])))(run["q"][i], run["M"][i])
        for name, value in zip(("P_gain", "D", "Lambda"), averages, strict=True):
            assert run[name].values[i] == pytest.approx(value, rel=1e-12, abs=1e-14)  # rounding


def test_sgd_agrees_while_the_penalty_changes_and_differs_from_a_constant_one():
    """Channels begin together, and a penalty that sets in parts them. A verdict is wrong once in 20 times by chance."""
    apart = table([0.0, 1.0, 2.0], [0.0, 0.0, 0.2], 4.0)
    ensemble = {"dimension": 5_000, "replicas": 8, "seed": 1}
    values = {"decorrelation.strength": apart, "time.stop": 4.0, "time.outputs": 5, "particles": ensemble}
    problem = meanfield.with_values(standard(), values)
    assert verdicts(problem, "order_parameters", "decorrelation.strength", [0.15]) == ["AGREES", "DIFFERS"]


@pytest.mark.parametrize("key", ["decorrelation.strength", "model.learning_rate"])
@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_all_steps_have_the_penalty_and_the_rate_of_their_time(method, key):
    """Bits of the number up to the jump at t = 2, the third output, and none of them after it."""
    jump = {"times": [0.0, 2.0], "values": [0.05, 0.5], "interpolation": "step"}
    small = {"time.stop": 3.0, "time.outputs": 4, "particles": {"method": method, "dimension": 30}}
    fixed = meanfield.with_values(standard(), small | {key: 0.05})
    found, known = (
        meanfield.simulate_sgd(each)["q"].values for each in (meanfield.with_value(fixed, key, jump), fixed)
    )
    assert np.array_equal(found[:, :3], known[:, :3])
    assert not np.any(found[:, 3:] == known[:, 3:])


SIGNS = {
    "features": [
        {
            "hidden": {"law": "three_point", "second_moment": 1.5, "fourth_moment": 11.25},
            "coordinate": {"law": "rademacher"},
            "initial_overlap": [0.6, 0.4],
        }
    ],
    "time.outputs": 3,
}
"""One feature with two nodes in u."""

SCHEMES = ["finite_volumes", "particles"]


@pytest.mark.parametrize(  # cells agree with particles, which are held against overlaps, in the test below
    "scheme", [pytest.param("finite_volumes", marks=pytest.mark.slow), "particles"]
)
@pytest.mark.parametrize("seed", [9, pytest.param(3, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_densities_of_linear_priors_have_the_overlaps_within_their_errors(seed, scheme):
    """What particles say of chance is exceeded once in 100 times by each of five overlaps; the seed is fixed."""
    problem = driven(seed, **SIGNS, **{"density.scheme": scheme, "density.tolerance": 2e-3})
    found, known = meanfield.solve_density(problem), meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    for name in ("q", "M"):
        error = np.abs(found[name] - known[name])
        assert np.all(error <= found[f"{name}_error"] + 1e-8)  # ODE_ACCURACY
        assert found[f"{name}_error"].max() <= 2e-3  # the tolerance


def sparse(**values):
    """Problem whose prior sets in with a phase and fades, whose penalty jumps in another, and whose rate decays."""
    rates = {"model.learning_rate": {"schedule": "cosine", "start": 0.02, "end": 0.005, "duration": 2.0}}
    strength = {"schedule": "linear", "start": 12.0, "end": 0.0, "duration": 1.5}
    phases = [
        {"stop": 0.5},
        {"stop": 1.1, "set": {"prior": {"name": "l1", "strength": strength}}},
        {"stop": 2.0, "set": {"decorrelation.strength": table([0.0, 1.5], [0.0, 0.1], 2.0)}},
    ]
    return meanfield.with_values(standard(), SIGNS | rates | {"time.stop": 2.0, "phases": phases, **values})


def test_cells_and_particles_agree_under_a_prior_that_sets_in():
    by_cells, by_particles = (
        meanfield.solve_density(sparse(**{"density.scheme": scheme, "density.tolerance": 3e-3})) for scheme in SCHEMES
    )
    for name in ("q", "M", "r"):
        allowed = by_cells[f"{name}_error"] + by_particles[f"{name}_error"]
        assert np.all(np.abs(by_cells[name] - by_particles[name]) <= allowed + 1e-12)  # rounding of M_kk
    assert np.all(by_cells["r"][0] == 0.0)
    assert np.all(by_cells["r"][-1] > 1.0)  # of the largest strength of the phase


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_moves_while_the_rate_is_zero(scheme):
    rate = {"times": [0.0, 0.4, 0.8], "values": [0.0, 0.02, 0.0], "interpolation": "step"}
    values = {"model.learning_rate": rate, "prior": {"name": "l1", "strength": 2.0}, "time.stop": 1.2}
    problem = meanfield.with_values(standard(), SIGNS | values | {"density": {"scheme": scheme, "tolerance": 0.01}})
    found = meanfield.solve_density(meanfield.with_value(problem, "time.outputs", 7))  # 0.4 and 0.8 are among them
    assert found.attrs["status"] == "complete"
    q = found["q"].values
    assert q[:3] == pytest.approx(np.repeat(q[:1], 3, axis=0), abs=1e-3)  # of cells without their tails
    assert q[4:] == pytest.approx(np.repeat(q[4:5], 3, axis=0), abs=1e-12)  # rounding
    assert np.abs(q[4] - q[0]).max() > 1e-3
