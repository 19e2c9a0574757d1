"""What sweeps keep of results."""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive import FAMILY
from meanfield.families.contrastive.dynamics import solve_fixed_points
from meanfield.problems.family import resolve
from meanfield.problems.file import parse_problem
from meanfield.sweep.reductions import reduced
from tests.example_problems import SMALL, features, gaussian, make_problem


@pytest.fixture(scope="module")
def problem():
    return parse_problem(SMALL)


def test_final_values_and_trajectories_with_their_errors(problem):
    density = meanfield.solve_density(problem)
    kept = reduced(density, ["final", "trajectory"])
    assert np.array_equal(kept["q"].values, density["q"])
    assert kept["q_final"].values == density["q"].values[-1]
    assert kept["r_final"].dims == ()
    assert kept["q"].attrs == density["q"].attrs
    sgd = meanfield.simulate_sgd(problem)
    kept = reduced(sgd, ["final", "trajectory"])
    assert np.allclose(kept["q"].values, sgd["q"].mean("replica"), rtol=1e-14)  # rounding
    spread = sgd["q"].isel(time=-1, feature=0).std("replica", ddof=1) / np.sqrt(3)
    assert kept["q_final_error"].values == pytest.approx([float(spread)], rel=1e-12)  # rounding
    odes = reduced(meanfield.solve_order_parameters(problem), ["final"])
    assert list(odes) == ["q_final"]


def test_statistics_and_replicas_of_sgd_agree(problem):
    statistics = meanfield.simulate_sgd(meanfield.with_value(problem, "particles.record", "statistics"))
    replicas = meanfield.simulate_sgd(problem)
    one, other = (reduced(result, ["trajectory"]) for result in (statistics, replicas))
    for name in ("q", "r", "q_error", "r_error"):
        assert np.allclose(one[name].values, other[name].values, rtol=1e-9, atol=1e-15)  # rounding of variances


def test_one_replica_has_no_error(problem):
    single = meanfield.with_value(problem, "particles.replicas", 1)
    kept = reduced(meanfield.simulate_sgd(single), ["final"])
    assert np.isfinite(kept["q_final"].values).all()
    assert np.isnan(kept["q_final_error"].values).all()


def test_similarities_and_numbers_of_states(problem):
    names = ["similarity", "states"]
    fast, whole = (reduced(solve(problem), names) for solve in (solve_fixed_points, meanfield.find_stationary_states))
    assert float(fast["least_similarity"].values) == 0.0
    assert 0.5 < float(fast["similarity"].values) < 1.0
    assert (int(fast["state_count"].values), int(fast["stable_count"].values)) == (5, 3)
    for name in fast:
        # The same roots by other quadratures.
        assert fast[name].values == pytest.approx(whole[name].values, abs=1e-9)  # whose error is estimated below 1e-10


def test_fixed_points_are_those_of_the_dynamics(problem):
    fast, whole = solve_fixed_points(problem), meanfield.contrastive.analyse_dynamics(problem)
    for name in set(fast.variables):
        assert fast[name].identical(whole[name])


def test_growth_is_nan_where_no_overlap_is_not_stationary():
    leaning = '{ law = "discrete", values = [2.0, 0.0], probabilities = [0.25, 0.75] }'
    table = f"{{ hidden = {leaning}, initial_overlap = 0.5 }}"
    kept = reduced(solve_fixed_points(make_problem(features(table), 'model.activation = "relu"')), ["growth"])
    assert np.isnan(kept["uninformed_rate"].values).all()
    table = f"{{ hidden = {gaussian(1.2)}, initial_overlap = 0.5 }}"
    learnt = make_problem(features(table))
    kept = reduced(solve_fixed_points(learnt), ["growth"])
    assert np.array_equal(kept["uninformed_rate"].values, meanfield.contrastive.learnability(learnt).growth_rates)


def test_everything_is_kept_as_numbers_or_words(problem):
    result = solve_fixed_points(problem)
    kept = reduced(result, ["all"])
    assert set(kept) == set(result.variables) - {"tau"}  # which the axes of a sweep tell
    assert kept["kind"].dtype.kind == "U"
    assert all(variable.dtype == float for name, variable in kept.items() if name != "kind")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (3, "'returns:keep' returned int, not a Dataset or a dict of DataArrays"),
        ({"x": np.array("2026-01-01", "M8[D]")}, r"returned 'x' of type datetime64\[.*\]; return numbers or words"),
    ],
)
def test_what_a_function_of_a_user_returns_is_checked(problem, returned, message):
    with pytest.raises(ValueError, match=message):
        reduced(solve_fixed_points(problem), ["returns:keep"], {"returns:keep": lambda dataset: returned})


def test_every_method_keeps_reductions_that_exist():
    for method in FAMILY.methods.values():
        assert set(method.keep) <= set(FAMILY.reductions)
    assert all(callable(resolve(address)) for address in FAMILY.reductions.values())
