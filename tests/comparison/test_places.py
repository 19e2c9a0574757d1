"""Results of other output times are compared at those that they share, and what is left out is said."""

import numpy as np
import pytest

import meanfield
from meanfield.comparison.inputs import at_common_places
from meanfield.comparison.wording import format_comparison, rows_of_pair
from meanfield.families.alpha_contrastive import FAMILY as FILTERS
from meanfield.problems.file import parse_problem
from meanfield.results.result import Result
from tests.example_problems import SMALL

RUNS = SMALL.replace("replicas = 3", "replicas = 6\nsnapshots = [0.0, 0.25, 1.0]").replace("outputs = 3", "outputs = 5")


def limit_with(stop, outputs):
    text = SMALL.replace("stop = 1.0\noutputs = 3", f"stop = {stop}\noutputs = {outputs}")
    return meanfield.solve_order_parameters(parse_problem(text))


@pytest.fixture(scope="module")
def runs():
    return meanfield.simulate_sgd(parse_problem(RUNS))


def left_out(*results):
    return str(meanfield.compare(*results, labels=["limit", "runs"])["left_out"].values[0])


def test_common_times_are_matched_by_value(runs):
    """Five outputs to 1 and seven to 1.5 are equal; of three outputs to 1.5 those at 0 and .75 are among the five."""
    right = meanfield.compare(limit_with(1.0, 5), runs)
    for limit in (limit_with(1.5, 7), limit_with(2.0, 9)):
        report = meanfield.compare(limit, runs)
        assert np.array_equal(report["time"], right["time"])
        assert np.allclose(report["q_difference"], right["q_difference"], rtol=0, atol=2e-8)  # twice ODE_ACCURACY
    report = meanfield.compare(limit_with(1.5, 3), runs)
    assert report["time"].values.tolist() == [0.0, 0.75]
    at_both = right["q_difference"].sel(time=[0.0, 0.75])
    assert np.allclose(report["q_difference"], at_both, rtol=0, atol=2e-8)  # twice ODE_ACCURACY


def test_the_number_of_times_is_said(runs):
    assert "compared at 3 of 5 times" in left_out(limit_with(1.0, 3), runs)
    assert "times" not in left_out(limit_with(1.0, 5), runs)
    report = meanfield.compare(limit_with(1.0, 3), runs)
    assert "compared at 3 of 5 times" in " ".join(format_comparison(report).split())
    assert "compared at 3 of 5 times" in dict(rows_of_pair(Result.of(report.isel(pair=0))))["left out"]


def test_times_of_steps_and_of_single_precision_are_those_of_the_problem(runs):
    """Own loops record at k/N, and some in single precision: half a step and seven digits are no other time."""
    for times in (np.rint(runs["time"] * 64) / 64, runs["time"].astype("f4"), runs["time"] + 0.4 / 64):
        both = [Result.of(limit_with(1.0, 5)), Result.of(runs.assign_coords(time=times))]
        same = at_common_places(both, ["limit", "runs"])
        assert all(np.array_equal(result.dataset["time"], runs["time"]) for result in same)


def test_weights_are_compared_at_common_times_alone(density, runs):
    """A density with three outputs has none at t = .25, and that at t = 0 or .5 is no substitute."""
    report = meanfield.compare(density, runs)
    assert report["snapshot_time"].values.tolist() == [0.0, 1.0]
    assert "weights at t = 0.25" in left_out(density, runs)


def test_what_one_result_does_not_hold_is_said(density, runs):
    limit = limit_with(1.0, 5)
    assert "r, which only runs holds" in left_out(limit, runs.assign(r=runs["r"] + 1.0))
    assert "r," not in left_out(limit, runs)  # it vanishes without a prior
    assert "weights, which are compared with a density alone" in left_out(limit, runs)
    few = runs.isel(replica=slice(0, 2))
    assert "weights, which take 4 or more runs" in left_out(density.assign(q_variance=density["q"]), few)


def test_gaps_are_said(density, runs):
    gap = runs.copy(deep=True).assign_attrs(status="interrupted")
    gap["q"].values[:, 3:] = gap["r"].values[:, 3:] = np.nan
    assert "q from t = 0.75 on, where values are missing" in left_out(limit_with(1.0, 5), gap)
    gap = runs.copy(deep=True).assign_attrs(status="interrupted")
    gap["q"].values[4, 3:] = np.nan
    assert "1 of the 6 runs of runs, which ended before the others" in left_out(limit_with(1.0, 5), gap)
    gap = runs.assign(weights=runs["weights"].copy(deep=True)).assign_attrs(status="interrupted")
    gap["weights"].values[1, 2, 0] = np.nan
    assert "weights from t = 0.25 on, where one of the two has none, or not of all runs" in left_out(density, gap)


def test_runs_that_do_not_scatter_are_said(runs):
    same = runs.copy(deep=True)
    same["q"].values[:, 2] = 0.6
    assert "q at t = 0.5, where runs do not scatter" in left_out(limit_with(1.0, 5), same)
    assert "scatter" not in left_out(limit_with(1.0, 5), runs)  # at the start, which is given, the two are equal


def test_other_numbers_of_moments_are_matched():
    """Densities of filters with more and with fewer moments."""
    problem = meanfield.load_problem(FILTERS.example_path)
    density = meanfield.solve(problem, "density")
    report = meanfield.compare(density, density.isel(harmonic=[0, 2]), labels=["all", "some"])
    assert report.attrs["verdict"] == "AGREES"
    assert f"compared at 2 of {density.sizes['harmonic']} entries of harmonic" in str(report["left_out"].values[0])


def test_times_that_are_no_output_times_are_told_apart():
    time = parse_problem(RUNS).time  # outputs at 0, .25, .5, .75 and 1
    times = np.array([0.0, 0.25, 1.0, 0.2, 1.25, -0.25, 1e308, -1e308, np.inf, -np.inf, np.nan])
    assert time.output_of(times).tolist() == [0, 1, 4, *[-1] * 8]
    assert time.output_of(np.array([0.2, 0.1]), allowed=0.06).tolist() == [1, -1]
