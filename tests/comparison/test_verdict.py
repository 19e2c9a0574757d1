import numpy as np
import pytest
from scipy import stats

import meanfield
from meanfield.comparison import rotations
from meanfield.comparison.comparison import judge
from meanfield.comparison.distributions import Group
from meanfield.comparison.rotations import deviations_from
from meanfield.comparison.runs import _quantities
from meanfield.comparison.sides import finished_runs
from meanfield.comparison.wording import format_comparison, summary_of_pair
from meanfield.families.alpha_contrastive import FAMILY
from meanfield.problems.file import parse_problem
from meanfield.problems.known_families import find_family
from meanfield.problems.variable import AGREES, CANNOT_TELL, DIFFERS
from meanfield.results.result import Result
from tests.example_problems import SMALL

TEXT = SMALL.replace("stop = 1.0\noutputs = 3", "stop = 2.0\noutputs = 5").replace(
    "cells = 200\nfeature_nodes = 15", "tolerance = 1e-4"
)


def with_runs(dimension, replicas, **settings):
    problem = parse_problem(TEXT)
    settings |= {"dimension": dimension, "replicas": replicas}
    return meanfield.with_values(problem, {f"particles.{key}": value for key, value in settings.items()})


@pytest.fixture(scope="module")
def text():
    return TEXT


@pytest.fixture(scope="module")
def sgd():
    """Runs with weights, enough for many comparisons."""
    return meanfield.simulate_sgd(with_runs(128, 160, method="projected", snapshots=(0.0, 2.0)), workers=1)


@pytest.fixture(scope="module")
def chain():
    return meanfield.simulate_sgd(with_runs(4096, 160, method="chain"), workers=1)


def some(runs, start, count):
    return runs.isel(replica=slice(start, start + count))


def verdict(*datasets):
    return meanfield.compare(*datasets).attrs["verdict"]


def judged(first, second, places):
    """Verdict on two results whose times and snapshots are those of a pair that was compared."""
    return judge(*map(Result.of, (first, second, places)), []).verdict


def reason(*datasets):
    return str(meanfield.compare(*datasets)["reason"].values[0])


@pytest.mark.slow  # its rate is tested with more pairs in test_rotations.py, and a true pair with weights below
def test_false_alarms_of_weights(density, sgd, monkeypatch):
    """40 true pairs in q, W1 and KS, of four runs each: 5 % give 2; 8 and more one seed in 1000."""
    monkeypatch.setattr(rotations, "ROTATIONS", 199)
    places = meanfield.compare(density, some(sgd, 0, 4)).isel(pair=0)
    found = [judged(density, some(sgd, start, 4), places) for start in range(0, 160, 4)]
    assert found.count(DIFFERS) < 8
    assert found.count(AGREES) > 30


def test_error_of_a_hundredth_is_found(ode, chain, density):
    """Eight runs at N = 4096 find it in all of 20 comparisons; without it they differ as often as by chance."""
    wrong = ode.assign(q=ode["q"] + 0.01 * (ode["time"] > 0))
    places = meanfield.compare(ode, some(chain, 0, 8)).isel(pair=0)
    groups = [some(chain, start, 8) for start in range(0, 160, 8)]
    assert [judged(wrong, group, places) for group in groups].count(DIFFERS) == 20
    assert [judged(ode, group, places) for group in groups].count(DIFFERS) < 6  # 5 % of 20: 3e-4
    assert verdict(density.assign(q=density["q"] + 0.01), groups[0]) == DIFFERS


def test_the_reason_names_the_time_and_a_remedy(ode, chain):
    wrong = ode.copy(deep=True)
    wrong["q"][3] += 0.03
    text = reason(wrong, some(chain, 0, 8))
    assert "q at t = 1.5" in text
    assert "times the scatter of single runs, more than a finite N explains but a small one" in text
    assert "data of own runs that the limit does not assume, such as heavy tails with a common radius" in text
    assert "Repeat with a larger N (particles.dimension): what falls with it" in reason(
        ode.assign(q=ode["q"] + 0.01 * (ode["time"] > 0)), some(chain, 0, 8)
    )
    report = meanfield.compare(wrong, some(chain, 0, 8))
    rows = dict(summary_of_pair(Result.of(report.isel(pair=0))))
    assert "at t = 1.5" in rows["max |difference of q|"]
    assert "chance: up to" in rows["  in standard errors, max"]
    assert "DIFFERS (p = " in format_comparison(report)


def test_weights_are_judged_when_the_overlap_is_right(density, sgd):
    wrong = density.assign({name: density[name].roll(w=8, roll_coords=False) for name in ("P", "P_w")})
    report = meanfield.compare(wrong, some(sgd, 0, 16))
    assert report.attrs["verdict"] == DIFFERS
    assert "distance of w" in str(report["reason"].values[0])
    assert (report["W1"] > report["W1_chance"]).any()
    right = meanfield.compare(density, some(sgd, 0, 16))
    assert (right["W1"] < right["W1_chance"]).all()
    assert (right["W1_given_u"] < right["W1_given_u_chance"]).all()


def test_rotated_distances_are_those_that_are_reported(density, sgd):
    """W1 at 64 points is that of the samples, of which a group has at least 100, up to 8 %; KS misses its peaks."""
    runs = some(sgd, 0, 8)
    report = meanfield.compare(density, runs)
    for quantity in _quantities(*map(Result.of, (density, runs, report.isel(pair=0)))):
        mean = np.abs(quantity.rows.mean(axis=0))
        for name, measure in quantity.measures.items():
            if name.startswith(("W1", "KS")):
                ratio = measure(mean) / report[name].values[0][quantity.where]
                if name.startswith("W1"):
                    assert ratio == pytest.approx(1.0, abs=0.08)  # 64 points for samples of 100 or more
                else:
                    assert np.all(ratio < 1 + 1e-6)  # rounding: points miss peaks, and never exceed them
                assert np.all(ratio > 0.6)


def test_weights_of_a_group_scatter_as_a_ratio_of_means_does():
    """600 runs of 500 independent pairs (w, u) with correlation 0.6: the variance of F_n of a group is known."""
    rng = np.random.default_rng(3)
    u = rng.normal(size=(600, 500))
    w = 0.6 * u + 0.8 * rng.normal(size=(600, 500))
    group = Group(0.75)
    membership = group.membership(u)
    shrink = 1 / (1 + group.width**2)
    law = stats.norm(0.6 * 0.75 * shrink, np.sqrt(0.36 * group.width**2 * shrink + 0.64))
    points = np.array([-0.5, 0.3, 1.0])
    rows = deviations_from(w, membership, points, law.cdf(points))
    pooled = [(membership * (w <= point)).sum() / membership.sum() for point in points]
    assert rows.mean(axis=0) == pytest.approx(pooled - law.cdf(points), abs=1e-12)  # rounding
    ratio = membership[..., None] * ((w[..., None] <= points) - law.cdf(points)) / membership.mean()
    spread = ratio.reshape(-1, 3).var(axis=0) / 500
    assert rows.var(axis=0) == pytest.approx(spread, rel=0.23)  # 4 errors sqrt(2 / 600) of a variance: 3 in 1e4 seeds


def test_no_number_of_runs_helps_where_results_share_no_quantity():
    """More runs were asked for; statistics of earlier versions have energies, and a density of filters has none."""
    problem = meanfield.with_value(meanfield.load_problem(FAMILY.example_path), "particles.record", "statistics")
    filters, runs = meanfield.solve(problem, "density"), meanfield.solve(problem, "particles")
    later = [name for name in runs.variables if str(name).startswith(("moment", "G_"))]
    assert "hold no quantity in common" in reason(filters, runs.drop_vars(later))


def test_few_runs_differ_or_cannot_tell(density, ode, chain):
    pair = some(chain, 0, 2)
    assert verdict(density, pair) == CANNOT_TELL
    assert "take 4 or more" in reason(density, pair)
    assert verdict(density.assign(q=density["q"] - 0.5), pair) == DIFFERS
    single = some(chain, 0, 1)
    assert "no runs whose scatter" in reason(density, single)
    report = meanfield.compare(ode, single)  # order parameters predict the scatter
    assert report.attrs["verdict"] == AGREES
    # four times after the start, in two directions; the predicted variance is known
    away = (ode["q"] - single["q"].isel(replica=0)).values[1:, 0] / np.sqrt(ode["q_covariance"].values[1:, 0, 0] / 4096)
    assert report["q_chance"].item() == pytest.approx(stats.norm.isf(0.05 / 8), rel=1e-6)  # 1e9 degrees of freedom
    assert report["p_value"].item() == pytest.approx(min(1.0, 8 * stats.norm.sf(np.abs(away).max())), rel=1e-6)
    assert verdict(ode.assign(q=ode["q"] + 0.1), single) == DIFFERS


def test_statistics_are_judged(ode, chain):
    ensemble = meanfield.simulate_sgd(with_runs(4096, 200, method="chain", record="statistics"), workers=1)
    found = meanfield.compare(ode, ensemble)
    assert found.attrs["verdict"] == AGREES
    assert "step" not in str(found["reason"].values[0])  # runs at finite N scatter by more than a step
    assert verdict(ode.assign(q=ode["q"] + 0.01), ensemble) == DIFFERS
    assert verdict(ensemble, chain) == AGREES
    vast = ensemble.assign(q_covariance=ensemble["q_covariance"] * 0.0 + 1e300)  # its square overflows
    assert verdict(vast, ensemble) == CANNOT_TELL


def test_single_precision_changes_no_verdict(ode, density, chain, sgd):
    """Rounding of q(0) = 0.3 by 1e-8 was beyond what chance allows runs that all start alike."""
    ode, density, chain, sgd = (d.assign(q=d["q"] - 0.2) for d in (ode, density, chain, sgd))
    for prediction, runs in ((ode, some(chain, 0, 8)), (density, some(sgd, 0, 8)), (ode, some(chain, 0, 1))):
        right = meanfield.compare(prediction, runs)
        for pair in ((prediction, single(runs)), (single(prediction), runs), (prediction, shifted(runs))):
            report = meanfield.compare(*pair)
            assert report.attrs["verdict"] == right.attrs["verdict"]
            assert report["p_value"].item() == pytest.approx(right["p_value"].item(), abs=2e-3)  # ten rotations of 4999
            assert np.nan_to_num(np.abs(report["q_difference"] / report["q_standard_error"])).max() < 5.0
    assert verdict(some(chain, 0, 8), single(some(chain, 8, 8))) == AGREES
    assert verdict(density, single(density)) == AGREES


def single(result):
    """What a user keeps who works in single precision."""
    return result.assign({x: result[x].astype("f4") for x in result.data_vars if result[x].dtype == "f8"})


def shifted(runs):
    """Runs of own loops in single precision that are kept in double: starts differ by its rounding."""
    start = 3e-8 * (1.0 + np.random.default_rng(0).standard_normal((runs.sizes["replica"], 1)))
    changed = runs.copy(deep=True)
    changed["q"].values[:, 0] += start
    return changed


def test_two_sets_of_runs_are_judged(chain, sgd):
    other = meanfield.simulate_sgd(with_runs(1024, 6, method="chain"), workers=1)
    assert verdict(some(chain, 0, 8), other) == AGREES
    assert verdict(some(chain, 0, 8), other.assign(q=other["q"] + 0.1)) == DIFFERS


def test_stated_errors_are_allowed_for(density, chain):
    runs = some(chain, 0, 8)
    wrong = density.assign(q=density["q"] + 0.01)
    assert verdict(wrong, runs) == DIFFERS
    stated = wrong.assign(q_error=wrong["q_error"] + 0.012)
    assert verdict(stated, runs) == CANNOT_TELL
    assert "lower the tolerance" in reason(stated, runs)
    assert (
        verdict(density.assign(q_error=density["q_error"] + 10.0, P_error=density["P_error"] + 1.0), density)
        == CANNOT_TELL
    )


def test_predictions_agree_within_their_errors(density, ode):
    assert verdict(density, ode) == AGREES
    assert verdict(density, ode.assign(q=ode["q"] + 1e-4)) == DIFFERS
    fixed = parse_problem(TEXT.replace("tolerance = 1e-4", "cells = 200\nfeature_nodes = 31"))
    silent = meanfield.solve_density(fixed)  # states no error
    assert "has no error estimate" in reason(silent, ode)
    finer = meanfield.solve_density(parse_problem(TEXT.replace("tolerance = 1e-4", "tolerance = 1e-6")))
    assert verdict(density, finer) == AGREES
    shifted = density.assign(P=density["P"].roll(w=1, roll_coords=False))
    assert "L1 distance of P" in reason(density, shifted)


def test_unfinished_runs_are_judged_as_far_as_they_came(ode, chain):
    runs = some(chain, 0, 8).copy(deep=True).assign_attrs(status="interrupted")
    runs["q"][:, 3:] = np.nan
    assert verdict(ode, runs) == AGREES
    runs["q"][5:] = np.nan
    assert finished_runs(Result.of(runs)).dataset.sizes["replica"] == 5
    assert verdict(ode.assign(q=ode["q"] + 0.1), runs) == DIFFERS
    runs["q"][:] = np.nan
    assert verdict(ode, runs) == verdict(some(chain, 0, 8), runs) == CANNOT_TELL


def test_the_worst_verdict_stands_for_all_pairs(ode, density, chain):
    report = meanfield.compare(ode, density, some(chain, 0, 1))
    assert set(report["verdict"].values) == {AGREES}
    report = meanfield.compare(ode.assign(q=ode["q"] + 0.2), density, some(chain, 0, 8))
    assert list(report["verdict"].values) == [DIFFERS, DIFFERS, AGREES]
    assert report.attrs["verdict"] == DIFFERS


def test_the_remedy_names_the_keys_of_the_family():
    """SGD on a tree has its limit at small learning rates, and that of a density at many nodes."""
    path = find_family("latent_tree").example_path
    flow, runs = (meanfield.solve(meanfield.load_problem(path), method) for method in ("population", "particles"))
    text = reason(flow.assign(loss=flow["loss"] + 1.0), runs)
    assert "a smaller training.learning_rate, beside a density also a larger network.nodes_per_latent" in text
