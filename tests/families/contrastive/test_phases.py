"""Phases of the limit: order parameters and densities go on from one law, prior or rate to the next.

Random phases have fixed seeds. The reference integrates the reduced equations by SciPy from corner to corner, with the
vector field of the constant problem of each time.
"""

from functools import lru_cache

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.order_parameters import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise
from meanfield.problems.base import corners_of
from meanfield.problems.problem_keys import at_time
from tests.example_problems import make_problem
from tests.families.contrastive.test_in_time import LINES
from tests.references_in_time import inside, integrated, random_schedule

SCHEMES = ("lagrangian", "eulerian")


def hidden(rng):
    second = rng.uniform(0.6, 1.6)
    return {"law": "three_point", "second_moment": second, "fourth_moment": second**2 * rng.uniform(1.2, 4.0)}


def rate(rng):
    """A number or a schedule, above 0, where there is a problem of every time."""
    found = random_schedule(rng, 0.15)
    if "peak" in found:
        found |= {"start": 0.001, "end": 0.002}
    return found if rng.random() < 0.5 else rng.uniform(0.02, 0.15)


CHANGES = {
    "features[0].hidden": hidden,
    "model.learning_rate": rate,
    "model.batch_size": lambda rng: int(rng.integers(2, 30)),
    "model.centering": lambda rng: ["none", "population", "batch"][rng.integers(3)],
    "model.activation": lambda rng: ["quadratic", "cubic", "tanh"][rng.integers(3)],
    "augmentation": lambda rng: {"variance": rng.uniform(0.0, 0.5, 2).tolist(), "correlation": rng.uniform(-1.0, 1.0)},
    "prior.strength": lambda rng: rng.uniform(0.0, 2.0),
}


def random_phases(seed, *lines, keys=tuple(CHANGES)):
    """Problem of two to four phases, each of which changes some keys; one ends at an output time."""
    rng = np.random.default_rng(seed)
    problem = make_problem(*LINES, "model.learning_rate = 0.1", "prior = { name = 'l2', strength = 0.5 }", *lines)
    ends = [*np.sort(rng.uniform(0.3, 5.7, rng.integers(1, 4))), 6.0]
    ends[rng.integers(len(ends) - 1)] = 3.0
    changed = [rng.choice(keys, rng.integers(1, min(4, len(keys) + 1)), replace=False) for _ in ends]
    return meanfield.with_value(
        problem,
        "phases",
        [
            {"stop": float(end), "set": {str(key): CHANGES[key](rng) for key in some}}
            for end, some in zip(np.unique(ends), changed, strict=False)
        ],
    )


@lru_cache(maxsize=1000)
def field_of(problem):
    return VectorField(problem, Closure(problem, tabulated=False))  # whose tables would take longer than few values


@lru_cache(maxsize=1000)
def noise_of(problem):
    return StepNoise(field_of(problem))


def overlaps(problem):
    """Overlaps at the output times."""

    def velocity(t, q, low, high):
        return field_of(at_time(problem, inside(t, low, high)))(q)

    return integrated(velocity, problem.initial_overlap, problem.time.outputs_at, corners_of(problem))


def covariance(problem):
    """N times the variance of the overlap of one feature at the output times, from J and S of each time."""

    def velocity(t, y, low, high):
        problem_now = at_time(problem, inside(t, low, high))
        field, q = field_of(problem_now), y[:1]
        return np.array([field(q)[0], 2.0 * field.jacobian(q)[0, 0] * y[1] + noise_of(problem_now)(q)[0, 0]])

    start, times = np.append(problem.initial_overlap, 0.0), problem.time.outputs_at
    hundredth = {"rtol": 1e-8, "atol": 1e-11}  # of what is asked of the covariance
    return integrated(velocity, start, times, corners_of(problem), hundredth)[:, 1]


def check_order_parameters(problem):
    found = meanfield.solve_order_parameters(problem)
    assert found.attrs["status"] == "complete"
    assert found["q"].values == pytest.approx(overlaps(problem), abs=1e-8)  # ODE_ACCURACY
    for t, q, g, diffusion in zip(*(found[name].values for name in ("time", "q", "g", "Lambda")), strict=True):
        right, noise = field_of(at_time(problem, float(t))).closure(q)
        # a table of the schedule, resolved to 1e-12
        assert g == pytest.approx(right, rel=1e-9, abs=1e-12)
        assert diffusion == pytest.approx(noise, rel=1e-9)


@pytest.mark.parametrize("seed", range(6, 9))
def test_order_parameters_go_through_any_phases(seed):
    check_order_parameters(random_phases(seed))


INDEPENDENT = tuple(key for key in CHANGES if key != "model.centering")


@pytest.mark.parametrize("seed", [62, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(50, 62))])
def test_covariances_go_through_any_phases(seed):
    problem = random_phases(seed, keys=INDEPENDENT)
    found = meanfield.solve_order_parameters(problem)["q_covariance"].values[:, 0, 0]
    right = covariance(problem)
    # 1e-8 a step; where overlaps collapse within a tenth of a unit of time, 8e-6 is left, without phases too
    assert np.abs(found - right).max() <= 1e-5 * right.max()


def test_covariances_follow_a_warm_up_from_zero():
    """A rate of zero has no noise: what is asked of C is relative to that on the way."""
    rate = {"schedule": "warmup_cosine", "peak": 0.12, "warmup": 1.5, "duration": 4.0}
    problem = make_problem(*LINES, "time.stop = 2.0")
    found = meanfield.solve_order_parameters(meanfield.with_value(problem, "model.learning_rate", rate))
    almost = meanfield.with_value(problem, "model.learning_rate", rate | {"start": 1e-9, "end": 1e-9})
    right = covariance(almost)
    assert np.abs(found["q_covariance"].values[:, 0, 0] - right).max() <= 1e-6 * right.max()  # as in the test above


def test_covariances_are_left_out_where_a_phase_has_none():
    assert "q_covariance" not in meanfield.solve_order_parameters(curriculum(later={"model.centering": "batch"}))


def curriculum(prior="l2", later=(), **values):
    """Problem whose second phase, from t = 2.3 on, has another hidden law and a prior of another strength."""
    law = {"law": "three_point", "second_moment": 1.5, "fourth_moment": 6.0}
    phases = [{"stop": 2.3}, {"stop": 6.0, "set": {"features[0].hidden": law, "prior.strength": 1.5} | dict(later)}]
    problem = make_problem(*LINES, "model.learning_rate = 0.1", f"prior = {{ name = '{prior}', strength = 0.5 }}")
    return meanfield.with_values(problem, values | {"phases": phases})


@pytest.mark.parametrize("scheme", SCHEMES)
def test_densities_of_phases_have_the_overlaps_of_the_order_parameters(scheme):
    """A linear prior leaves the overlaps as they are, whatever its strength; E[w phi(w)] is this strength."""
    found = meanfield.solve_density(curriculum(**{"density.scheme": scheme}))
    assert found.attrs["status"] == "complete"
    known = meanfield.solve_order_parameters(curriculum())
    error = np.abs(found["q"].values - known["q"].values)
    assert np.all(error <= found["q_error"].values + 1e-8)  # ODE_ACCURACY
    assert found["q_error"].max() <= 1e-6  # density.tolerance
    strength = np.where(found["time"].values < 2.3, 0.5, 1.5)
    assert np.all(np.abs(found["r"].values - strength) <= found["r_error"].values + 1e-12)  # r is not small: rounding


@pytest.mark.parametrize("later", [{"prior.name": "l1"}, {"model.learning_rate": 0.02, "model.batch_size": 3}])
def test_both_schemes_agree_under_priors_that_change(later):
    found = [
        meanfield.solve_density(curriculum("log_cosh", later, **{"density.scheme": scheme, "density.tolerance": 1e-5}))
        for scheme in SCHEMES
    ]
    assert [each.attrs["status"] for each in found] == ["complete", "complete"]
    for name in ("q", "r"):
        allowed = sum(each[f"{name}_error"] for each in found)
        assert np.all(np.abs(found[0][name] - found[1][name]) <= allowed)


def test_two_features_whose_closures_are_tiled_go_through_phases():
    one = {"hidden": {"law": "rademacher"}, "coordinate": {"law": "rademacher"}}
    two = [one | {"initial_overlap": q} for q in (0.5, 0.3)]
    law = {"law": "three_point", "second_moment": 1.2, "fourth_moment": 3.0}
    problem = curriculum(later={"features[1].hidden": law}, features=two)
    found = meanfield.solve_density(problem)
    error = np.abs(found["q"].values - meanfield.solve_order_parameters(problem)["q"].values)
    assert np.all(error <= found["q_error"].values + 1e-8)  # ODE_ACCURACY


@pytest.mark.parametrize("method", ["density", "order_parameters"])
def test_every_phase_is_checked(method):
    """The second phase has a law without the moments that the closure needs, or a prior that closes no equations."""
    heavy = {"features[0].hidden": {"law": "student_t", "second_moment": 1.0, "degrees_of_freedom": 3.5}}
    with pytest.raises(meanfield.InputError, match="degrees_of_freedom"):
        meanfield.solve(curriculum(later=heavy), method)
    if method == "order_parameters":
        with pytest.raises(meanfield.InputError, match=r"prior\.name = 'l1'"):
            meanfield.solve(curriculum(later={"prior.name": "l1"}), method)
