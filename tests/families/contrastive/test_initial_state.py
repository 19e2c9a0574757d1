"""Starts from results and from weights in files: what continues a run equals the unbroken one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import ks_2samp

import meanfield
from meanfield import InputError
from meanfield.mckean_vlasov.weight_law import WeightLaw, law_of_samples
from meanfield.problems.known_families import find_family
from tests.example_problems import make_problem

LINES = ("time = { stop = 4.0, outputs = 9 }", "density.tolerance = 1e-5", "particles.dimension = 300")


def unbroken(**values):
    """Problem until t = 4 with a prior under which overlaps alone do not close."""
    return meanfield.with_values(make_problem(*LINES), {"prior.name": "l1", "prior.strength": 0.5} | values)


def from_file(problem, path, **values):
    """The same problem from a file on, for the second half of the time."""
    start = {"initial": {"from": str(path)} | values, "features[0].initial_overlap": None}
    return meanfield.with_values(problem, start | {"time.stop": 2.0, "time.outputs": 5})


@pytest.mark.parametrize("scheme", ["lagrangian", "eulerian"])
@pytest.mark.parametrize("law", ["gaussian", "rademacher"])
def test_a_density_that_goes_on_from_a_file_is_the_unbroken_one(scheme, law, tmp_path):
    problem = unbroken(**{"density.scheme": scheme, "features[0].coordinate.law": law})
    whole = meanfield.solve_density(problem)
    meanfield.save(whole, tmp_path / "whole.nc")
    rest = meanfield.solve_density(from_file(problem, tmp_path / "whole.nc", time=2.0))
    assert rest.attrs["status"] == "complete"
    for name in ("q", "r"):
        gap = np.abs(rest[name].values - whole[name].values[4:])
        assert np.all(gap <= rest[f"{name}_error"].values + whole[f"{name}_error"].values[4:])


def test_overlaps_go_on_from_those_of_a_result(tmp_path):
    problem = unbroken(**{"prior.name": "none"})
    whole = meanfield.solve_order_parameters(problem)
    meanfield.save(whole, tmp_path / "whole.nc")
    rest = meanfield.solve_order_parameters(from_file(problem, tmp_path / "whole.nc", time=2.0))
    assert rest["q"].values == pytest.approx(whole["q"].values[4:], abs=1e-8)  # ODE_ACCURACY


def test_runs_go_on_with_their_own_weights(tmp_path):
    problem = unbroken(**{"particles.replicas": 3, "particles.snapshots": [2.0], "particles.dimension": 60})
    whole = meanfield.simulate_sgd(problem)
    meanfield.save(whole, tmp_path / "runs.nc")
    values = {"particles.snapshots": [0.0]}
    for method in ("plain", "projected"):
        rest = from_file(problem, tmp_path / "runs.nc", time=2.0)
        rest = meanfield.simulate_sgd(meanfield.with_values(rest, values | {"particles.method": method}))
        assert np.array_equal(rest["weights"][:, 0], whole["weights"][:, 0])
        assert np.array_equal(rest["U"], whole["U"])


def test_runs_that_go_on_draw_other_numbers_than_those_before(tmp_path):
    """With one seed for both: a run from the start of another would be that one, and its noise would come twice."""
    values = {"particles.replicas": 2, "particles.snapshots": [0.0, 2.0], "particles.dimension": 60}
    whole = meanfield.simulate_sgd(unbroken(**values))
    meanfield.save(whole, tmp_path / "runs.nc")
    for method in ("plain", "projected", "chain"):
        own = {"particles.method": method, "particles.snapshots": None, "prior.name": "l2"}
        first, second = (from_file(unbroken(**values | own), tmp_path / "runs.nc", time=time) for time in (0.0, 2.0))
        found = meanfield.simulate_sgd(first)["q"].values
        assert np.array_equal(meanfield.simulate_sgd(first)["q"].values, found)
        ended, known = meanfield.simulate_sgd(second)["q"].values, whole["q"].values
        assert found[:, 0] == pytest.approx(known[:, 0], abs=1e-14)  # rounding
        steps = [np.diff(q[:, :5, 0], axis=1) for q in (known, found, ended)]
        assert not np.isclose(steps[0], steps[1]).any()
        assert not np.isclose(steps[1], steps[2]).any()


def test_runs_that_go_on_have_the_law_of_the_unbroken_ones(tmp_path):
    """The statistic of two samples exceeds its bound once in 1000 times, and is 0.07 if numbers come twice.

    The seed is fixed.
    """
    whole = meanfield.parse_problem("""
    model = { activation = "quadratic", learning_rate = 0.2, batch_size = 4 }
    features = [{ hidden = { law = "laplace", second_moment = 1.2 }, initial_overlap = 0.3 }]
    time = { stop = 2.0, outputs = 3 }
    particles = { dimension = 40, replicas = 4000 }
    """)
    known = meanfield.simulate_sgd(whole)
    meanfield.save(known, tmp_path / "whole.nc")
    rest = meanfield.with_values(from_file(whole, tmp_path / "whole.nc", time=1.0), {"time.stop": 1.0})
    found = meanfield.simulate_sgd(rest)
    gap = ks_2samp(found["q"].values[:, -1, 0], known["q"].values[:, -1, 0])
    assert gap.statistic <= 1.95 * np.sqrt(2 / 4000)


def test_runs_draw_their_weights_from_a_density(tmp_path):
    """Moments of 60,000 weights are within five standard errors of those of the density: 1e-6 false alarms of two."""
    problem = unbroken(**{"particles.replicas": 20, "particles.dimension": 3000, "particles.snapshots": [0.0]})
    whole = meanfield.solve_density(problem)
    meanfield.save(whole, tmp_path / "whole.nc")
    start = meanfield.with_value(from_file(problem, tmp_path / "whole.nc", time=2.0), "time.stop", 0.01)
    w = meanfield.simulate_sgd(start)["weights"].values[:, 0]
    cells = whole["P_w"].isel(time=4) * np.diff(whole["w_bnds"].values, axis=1)[:, 0]
    for power in (1, 4):
        mean, spread = ((cells * np.abs(whole["w"]) ** (power * k)).sum().item() for k in (1, 2))
        error = np.sqrt((spread - mean**2) / w.size)
        assert abs((np.abs(w) ** power).mean() - mean) <= 5.0 * error


CHANNELS = """
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10, channels = 2 }
features = [{ initial_overlap = [0.6, 0.2], hidden = { law = "three_point", second_moment = 1.2, fourth_moment = 7.2 }}]
decorrelation = { penalty = "square", strength = 0.1 }
time = { stop = 4.0, outputs = 5 }
density.tolerance = 1e-3
particles = { dimension = 80, replicas = 2, snapshots = [2.0] }
"""


@pytest.mark.parametrize("method", ["order_parameters", "density"])
def test_several_channels_go_on_from_their_overlaps(method, tmp_path):
    """From order parameters or a density of Gaussian weights."""
    problem = meanfield.parse_problem(CHANNELS)
    whole = meanfield.solve(problem, method)
    meanfield.save(whole, tmp_path / "whole.nc")
    rest = from_file(problem, tmp_path / "whole.nc", time=2.0)
    rest = meanfield.solve(meanfield.with_value(rest, "time.outputs", 3), method)
    for name in ("q", "M", "P_w") if method == "density" else ("q", "M"):
        found, known = rest[name], whole[name][2:]
        if name == "P_w":
            known, found = known.interp(w=rest["w"][60:180]), found[:, 60:180]
        # that of the order parameters, and of linear interpolation between 240 cells of other widths
        assert np.abs(found.values - known.values).max() <= (2e-3 if name == "P_w" else 2e-7)


@pytest.mark.slow
def test_a_density_of_channels_goes_on_under_a_prior_that_is_not_linear(tmp_path):
    """As a run with a phase for each prior does; cells solve both."""
    problem, prior = meanfield.parse_problem(CHANNELS), {"prior.name": "l1", "prior.strength": 0.3}
    problem = meanfield.with_values(problem, {"density.tolerance": 5e-3, "particles.snapshots": None})
    meanfield.save(meanfield.solve_density(problem), tmp_path / "before.nc")
    phases = [{"stop": 2.0}, {"stop": 4.0, "set": prior}]
    whole = meanfield.solve_density(meanfield.with_value(problem, "phases", phases))
    rest = from_file(problem, tmp_path / "before.nc", time=2.0)
    rest = meanfield.solve_density(meanfield.with_values(rest, prior | {"time.outputs": 3}))
    for name in ("q", "M", "r"):
        allowed = rest[f"{name}_error"].values + whole[f"{name}_error"].values[2:]
        assert np.all(np.abs(rest[name].values - whole[name].values[2:]) <= allowed + 1e-7)  # where errors are 0


@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_runs_of_several_channels_go_on_with_their_own_weights(method, tmp_path):
    problem = meanfield.parse_problem(CHANNELS)
    whole = meanfield.simulate_sgd(problem)
    meanfield.save(whole, tmp_path / "runs.nc")
    rest = from_file(problem, tmp_path / "runs.nc", time=2.0)
    rest = meanfield.with_values(rest, {"particles.method": method, "particles.snapshots": None})
    rest = meanfield.simulate_sgd(rest)
    for name in ("q", "M"):
        assert rest[name].values[:, 0] == pytest.approx(whole[name].values[:, 2], abs=1e-13)  # rounding
    if method != "chain":
        assert np.array_equal(rest["weights"][:, 0], whole["weights"][:, 0])
        assert np.array_equal(rest["U"], whole["U"])


def test_channels_without_a_law_of_their_weights_are_no_start_of_a_density(tmp_path):
    rng = np.random.default_rng(5)
    axes = np.sqrt(80) * np.linalg.qr(rng.standard_normal((80, 3)))[0]
    np.savez(tmp_path / "mine.npz", weights=axes[:, :2] @ [[0.6, 0.0], [0.8, 1.0]], U=axes[:, :1])
    problem = from_file(meanfield.parse_problem(CHANNELS), tmp_path / "mine.npz")
    problem = meanfield.with_values(problem, {"particles.snapshots": [0.0], "particles.replicas": 1})
    with pytest.raises(InputError, match=r"initial.from = '.*mine.npz': has weights at 80 .*at least; name more runs"):
        meanfield.solve_density(problem)
    with pytest.raises(InputError, match=r"scheme = 'finite_volumes': initial\.from: cells take .*\"particles\""):
        meanfield.solve_density(many_weights(tmp_path, {"density.scheme": "finite_volumes"})[0])
    meanfield.save(meanfield.solve_order_parameters(problem), tmp_path / "q.nc")
    with pytest.raises(
        InputError, match=r"q\.nc': a density of several channels takes a law .*name such a density, or"
    ):
        meanfield.solve_density(from_file(meanfield.parse_problem(CHANNELS), tmp_path / "q.nc", time=2.0))
    q = meanfield.solve_order_parameters(problem)["q"].values[0]
    assert q == pytest.approx(np.array([[0.6, 0.0]]), abs=1e-12)  # rounding
    assert meanfield.simulate_sgd(problem)["q"].values[0, 0] == pytest.approx(q, abs=1e-12)  # rounding


def many_weights(folder, changes):
    """Problem that starts from weights that are no Gaussians, and these."""
    rng, n = np.random.default_rng(5), 40_000
    U = rng.standard_normal((n, 1))
    skew = rng.exponential(size=(n, 2)) - 1.0
    axes = np.sqrt(n) * np.linalg.qr(np.hstack([U, skew]))[0]
    axes *= np.sign((axes * np.hstack([U, skew])).sum(axis=0))
    weights = axes @ np.array([[0.6, 0.2], [0.8, 0.1], [0.0, np.sqrt(0.95)]])
    np.savez(folder / "many.npz", weights=weights, U=axes[:, :1])
    settings = {"particles.dimension": n, "particles.snapshots": [0.0], "time.stop": 2.0, "time.outputs": 3}
    problem = from_file(
        meanfield.with_values(meanfield.parse_problem(CHANNELS), settings | changes), folder / "many.npz"
    )
    return meanfield.with_value(problem, "time.outputs", 3), weights, axes[:, 0]


L1 = {"prior.name": "l1", "prior.strength": 1.0, "density.tolerance": 5e-3}


def test_a_density_of_channels_starts_from_a_sample_of_weights(tmp_path):
    problem, weights, u = many_weights(tmp_path, L1)
    found = meanfield.solve_density(problem)
    assert found.attrs["status"] == "complete"
    assert "a sample of weights" in found.attrs["warning"]
    assert found["q"].values[0] == pytest.approx(u[None] @ weights / len(u), abs=1e-12)  # rounding
    assert found["M"].values[0] == pytest.approx(weights.T @ weights / len(u), abs=1e-12)  # rounding
    work = np.abs(weights).mean(axis=0)
    assert np.all(np.abs(found["r"].values[0] - work) <= found["r_error"].values[0])
    # The law itself: moments that overlaps do not tell, within five standard errors of the sample.
    w, v = found["w_sample"].values[0], found["u_sample"].values[:, 0]
    for a, b, c in ((3, 0, 0), (1, 2, 0), (2, 0, 1), (2, 2, 0)):
        ours, known = (x[:, 0] ** a * x[:, 1] ** b * y**c for x, y in ((w, v), (weights, u)))
        assert abs(ours.mean() - known.mean()) <= 5.0 * known.std() / np.sqrt(len(u)), (a, b, c)


@pytest.mark.slow
def test_a_density_from_runs_and_from_particles_goes_on_as_sgd_and_the_unbroken_one(tmp_path):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    problem = meanfield.with_values(meanfield.parse_problem(CHANNELS), L1)
    problem = meanfield.with_values(problem, {"density.scheme": "particles", "particles.dimension": 2000})
    problem = meanfield.with_value(problem, "particles.replicas", 16)
    whole = meanfield.solve_density(problem)
    meanfield.save(whole, tmp_path / "whole.nc")
    rest = meanfield.with_value(from_file(problem, tmp_path / "whole.nc", time=2.0), "time.outputs", 3)
    found = meanfield.solve_density(meanfield.with_value(rest, "particles.snapshots", [0.0, 2.0]))
    for name in ("q", "M", "r"):
        allowed = found[f"{name}_error"].values + whole[f"{name}_error"].values[2:]
        assert np.all(np.abs(found[name].values - whole[name].values[2:]) <= allowed)
    runs = meanfield.simulate_sgd(problem)
    meanfield.save(runs, tmp_path / "runs.nc")
    after = meanfield.with_value(from_file(problem, tmp_path / "runs.nc", time=2.0), "time.outputs", 3)
    after = meanfield.with_value(after, "particles.snapshots", [0.0, 2.0])
    assert meanfield.compare(meanfield.solve_density(after), meanfield.simulate_sgd(after)).attrs["verdict"] == "AGREES"


def test_a_file_that_changes_is_another_start(tmp_path):
    """A problem keeps what it has read; its fingerprint says what that was."""
    np.savez(tmp_path / "mine.npz", weights=np.ones(300), U=np.repeat([1.0, -1.0], 150))
    first = from_file(unbroken(), tmp_path / "mine.npz")
    np.savez(tmp_path / "mine.npz", weights=np.ones(300), U=np.tile([1.0, -1.0], 150))
    second = from_file(unbroken(), tmp_path / "mine.npz")
    kept = meanfield.with_value(first, "model.learning_rate", 0.01)
    read = [each.fingerprints()["initial.from"]["sha256"] for each in (first, kept, second)]
    assert read[0] == read[1] != read[2]


def test_laws_of_samples_have_their_norm_and_overlaps():
    rng = np.random.default_rng(1)
    u = rng.standard_normal(20_000)
    w = 0.6 * u + 0.8 * rng.laplace(scale=np.sqrt(0.5), size=len(u))
    w /= np.sqrt(w @ w / len(w))
    nodes = np.linspace(-4.0, 4.0, 17)[:, None]
    weight = np.exp(-0.5 * nodes[:, 0] ** 2)
    law = law_of_samples(w, u[:, None], (nodes, weight / weight.sum()), 0.1)
    q, square = law.moments
    assert q == pytest.approx(u @ w / len(w), abs=1e-6)  # cells are read off again
    assert square == pytest.approx(1.0, abs=1e-6)  # as in the line above
    at_one = law.at(np.array([[1.0]]))[0]
    quartiles, z = 0.6 + 0.8 * np.sqrt(0.5) * np.array([-np.log(2.0), 0.0, np.log(2.0)]), ndtri([0.25, 0.5, 0.75])
    assert at_one.quantile(z) == pytest.approx(quartiles, abs=0.06)  # three standard errors of 1,600 samples nearby


def gaussian_law():
    """Law of w = u/2 + 0.9 xi at seven nodes."""
    edges, u = np.linspace(-8.0, 8.0, 81), np.linspace(-3.0, 3.0, 7)[:, None]
    P = np.diff(ndtr((edges - 0.5 * u) / 0.9)) / 0.2
    return WeightLaw(u, np.full(7, 1 / 7), edges, P, {})


def test_a_gaussian_law_is_known_between_its_cells():
    law, fine = gaussian_law(), np.linspace(-6.0, 6.0, 301)
    exact = np.diff(ndtr((fine - 0.5 * law.u) / 0.9)) / 0.04
    assert law.cell_average(fine, law.u) == pytest.approx(exact, abs=1e-9)  # scores of a Gaussian are straight lines


def test_weights_are_drawn_between_nodes():
    """Mean and spread of a million weights are within five standard errors: 1e-6 false alarms of two."""
    n, rng = 1_000_000, np.random.default_rng(3)
    w = gaussian_law().sample(np.full((n, 1), 0.3), rng)
    assert abs(w.mean() - 0.15) <= 5.0 * 0.9 / np.sqrt(n)
    assert abs(w.std() - 0.9) <= 5.0 * 0.9 / np.sqrt(2 * n)


def test_weights_of_several_features_are_not_drawn_between_nodes(tmp_path):
    """Those of the nearest node would be drawn, whose overlaps and norm are right."""
    nodes, law = np.zeros((7, 2)), gaussian_law()
    nodes[:, 0] = law.u[:, 0]
    assert not replace(law, u=nodes).is_interpolated
    few = unbroken(density={"cells": 40, "feature_nodes": 3, "steps": 40})
    meanfield.save(meanfield.solve_density(few), tmp_path / "few.nc")
    with pytest.raises(InputError, match=r"initial.from = '.*few.nc': its density has 3 nodes in u.*name a result"):
        meanfield.simulate_sgd(from_file(few, tmp_path / "few.nc", time=0.0))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with files that are a start, and others that are none."""
    folder = tmp_path_factory.mktemp("starts")
    problem = unbroken(**{"prior.name": "none"})
    meanfield.save(meanfield.solve_order_parameters(problem), folder / "whole.nc")
    few = {"particles.record": "statistics", "particles.replicas": 2, "time.stop": 0.1}
    meanfield.save(meanfield.simulate_sgd(meanfield.with_values(problem, few)), folder / "ensemble.nc")
    other = meanfield.load_problem(find_family("alpha_contrastive").example_path)
    meanfield.save(meanfield.solve(other, "population"), folder / "other.nc")
    w, U = np.ones(300), np.repeat([1.0, -1.0], 150)
    np.savez(folder / "short.npz", w=w)
    np.savez(folder / "long.npz", weights=2.0 * w, U=U)
    np.savez(folder / "good.npz", weights=w, U=U)
    return folder


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"initial": {"from": "nothing.nc"}}, "no such file"),
        ({"initial": {"from": "whole.nc", "time": 1.3}}, r"initial.time = 1.3 is none of its output times, 0, 0.5"),
        ({"initial": {"from": "short.npz"}}, r"holds no 'weights' and 'U'; write it by numpy.savez"),
        ({"initial": {"from": "long.npz"}}, r"\|w\|\^2/N deviates from 1 by 3"),
        ({"initial": {"from": "good.npz"}, "particles.dimension": 40}, r"weights of N = 300; set it to that"),
        ({"initial": {"from": "good.npz", "time": 1.0}}, r"arrays have no time; remove initial.time"),
        ({"features[0].initial_overlap": 0.5}, r"the start is that of initial.from already"),
        ({"model.channels": 2}, r"has 1 channel\(s\), and the problem 2; make them equal"),
        ({"initial": {"from": "other.nc"}}, r"is a result of the family 'alpha_contrastive', and the problem of"),
        ({"initial": {"from": "ensemble.nc"}}, r"is a result of the kind 'ensemble' without 'q'; name a density"),
    ],
)
def test_what_cannot_be_a_start_is_refused(values, words, files, monkeypatch):
    monkeypatch.chdir(files)
    with pytest.raises(InputError, match=words):
        meanfield.with_values(from_file(unbroken(**{"prior.name": "none"}), "good.npz"), values)
