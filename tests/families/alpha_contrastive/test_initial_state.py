"""Starts from weights and densities: what continues a run equals the unbroken one, or has its law."""

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.families.alpha_contrastive.initial_state import CircleLaw, SphereLaw
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.problems.known_families import find_family

EXAMPLE = meanfield.load_problem(find_family("alpha_contrastive").example_path)
UNIFORM = {"law": "uniform"}
SPACE = {"data.points": [[1.1, 0.2, -0.4], [-0.5, 0.9, 0.3], [0.2, -0.8, 0.9], [-0.3, 0.1, 0.7]]}
TWO_LAYERS = {"model.layers": 2, "model.outputs": 3, "filters.start": {"law": "fan_in"}}
TOKENS = {
    "law": "tokens",
    "places": 2,
    "vocabulary": 4,
    "generators": 3,
    "tokens_per_place": 1,
    "pattern_tokens": 2,
    "seed": 1,
}


def rest_of(problem, path, **values):
    """The second half of a problem, from a file on."""
    half = {
        "time.stop": 0.5,
        "time.outputs": 3,
        "initial.from": str(path),
        "initial.time": 0.5,
        "filters.start": UNIFORM,
    }
    return meanfield.with_values(problem, half | values)


def two_layers():
    changes = {"data": {"law": "tokens", **TOKENS}, "importance": {"kind": "quadratic"}, "filters.count": 3}
    return meanfield.with_values(EXAMPLE, TWO_LAYERS | changes)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with results of one layer and of two."""
    folder = tmp_path_factory.mktemp("starts")
    for method in ("density", "population", "particles", "critical_points"):
        meanfield.save(meanfield.solve(EXAMPLE, method), folder / f"{method}.nc")
    for method in ("population", "particles"):
        meanfield.save(meanfield.solve(two_layers(), method), folder / f"two_{method}.nc")
    return folder


@pytest.mark.parametrize("case", ["one layer", "two layers"])
def test_exact_flows_and_runs_go_on_with_their_weights(case, files):
    problem, prefix = (EXAMPLE, "") if case == "one layer" else (two_layers(), "two_")
    whole = meanfield.load(files / f"{prefix}population.nc")
    rest = meanfield.solve(rest_of(problem, files / f"{prefix}population.nc"), "population")
    names = ("weights", "energy") if case == "one layer" else ("weights", "top", "energy")
    for name in names:
        np.testing.assert_allclose(rest[name], whole[name][2:], rtol=0, atol=1e-8)  # ten tolerances of a step
    whole = meanfield.load(files / f"{prefix}particles.nc")
    rest = meanfield.solve(rest_of(problem, files / f"{prefix}particles.nc"), "particles")
    for name in set(names) - {"energy"}:
        assert np.array_equal(rest[name][:, 0], whole[name][:, 2])


ON_SPHERE = meanfield.with_values(EXAMPLE, SPACE | {"filters.start": UNIFORM})


@pytest.mark.parametrize(
    ("problem", "compared"),
    [(EXAMPLE, "moment_cos"), pytest.param(ON_SPHERE, "second_moment", marks=pytest.mark.slow)],
)
def test_a_density_that_goes_on_is_the_unbroken_one(problem, compared, tmp_path):
    whole = meanfield.solve(problem, "density")
    meanfield.save(whole, tmp_path / "whole.nc")
    rest = meanfield.solve(rest_of(problem, tmp_path / "whole.nc"), "density")
    for one in (compared, "G"):
        gap = np.abs(rest[one].values - whole[one].values[2:])
        assert np.all(gap <= rest[f"{one}_error"].values + whole[f"{one}_error"].values[2:]), one
    # what it is at the start to the width of its cells: 100 on the circle, 24 along a meridian
    assert np.abs(rest[compared][0] - whole[compared][2]).max() <= (2e-3 if problem is EXAMPLE else 1e-2)


def test_filters_are_drawn_from_a_density(files):
    """Moments of 40,000 filters are within five standard errors: 1e-5 false alarms of 16."""
    problem = rest_of(EXAMPLE, files / "density.nc", **{"filters.count": 10_000, "particles.replicas": 4})
    short = meanfield.with_values(problem, {"time.stop": 0.05, "time.outputs": 2, "training.batch_size": 2})
    found = meanfield.solve(short, "particles")
    known = meanfield.load(files / "density.nc").isel(time=2)
    for name in ("moment_cos", "moment_sin"):
        gap = np.abs(found[name].values[:, 0].mean(axis=0) - known[name].values)
        assert np.all(gap <= 5.0 * np.sqrt(0.5 / 40_000) + known[f"{name}_error"].values)


def test_points_of_the_sphere_are_drawn_from_cells():
    """Shares of cells of 100,000 points are within five standard errors: 3e-5 false alarms of 32."""
    rng = np.random.default_rng(4)
    mass = rng.uniform(0.5, 1.5, (4, 8))
    law = SphereLaw(mass / mass.sum())
    w = law.sample(rng, 100_000)
    assert np.abs(np.linalg.norm(w, axis=1) - 1.0).max() <= 1e-12  # rounding
    share = np.bincount(SphereCells(4).numbers(w), minlength=32) / len(w)
    assert np.all(np.abs(share - law.mass.ravel()) <= 5.0 * np.sqrt(law.mass.ravel() / len(w)))


def test_the_law_of_filters_has_their_shares():
    angle = np.array([-3.0, -1.0, 0.5, 2.0])
    law = CircleLaw.between(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    assert law.masses(np.array([-3.0, -1.0, 0.5, 2.0, 2.0 * np.pi - 3.0])) == pytest.approx(np.full(4, 0.25), abs=1e-14)
    turned = np.linspace(-np.pi, np.pi, 7) + 1.3
    assert law.masses(turned).sum() == pytest.approx(1.0, abs=1e-14)  # rounding, as in the line before


def test_a_density_starts_from_filters(files):
    """From those of three runs of 20 filters; the error is that of the space between neighbours."""
    density = meanfield.solve(rest_of(EXAMPLE, files / "particles.nc"), "density")
    runs = meanfield.load(files / "particles.nc").isel(time=2)
    for name in ("moment_cos", "moment_sin"):
        gap = np.abs(density[name].values[0] - runs[name].values.mean(axis=0))
        assert np.all(gap <= density[f"{name}_error"].values[0])
    assert np.abs(density["moment_cos"].values[0, 0] - runs["moment_cos"].values.mean(axis=0)[0]) < 0.01
    assert "density.tolerance" in density.attrs["warning"]


def test_arrays_are_filters_that_the_problem_lists(files):
    values = [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]]
    np.savez(files / "mine.npz", weights=np.array(values))
    mine = {"filters.count": 3, "initial": {"from": str(files / "mine.npz")}, "filters.start": UNIFORM}
    listed = {"filters.count": 3, "filters.start": {"law": "points", "values": values}}
    first, second = (meanfield.with_values(EXAMPLE, given) for given in (mine, listed))
    for method, times in (("population", slice(None)), ("particles", 0)):  # SGD draws numbers of its own from a file
        found, known = (meanfield.solve(problem, method)["weights"].isel(time=times) for problem in (first, second))
        assert found.equals(known)
    assert "they start from mine.npz" in " ".join(str(meanfield.explain(first)).split())
    runs, flow = meanfield.solve(first, "particles"), meanfield.solve(first, "population")
    assert "start" not in str(meanfield.compare(flow, runs)["reason"].values[0])


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("critical_points", {}, "is a result of the kind 'critical_points', without a time; name an exact flow"),
        ("population", {"initial.time": 0.3}, "initial.time = 0.3 is none of its output times, 0, 0.25, 0.5"),
        ("population", {"filters.count": 3}, r"has 20 where the problem has 3 \(filters.count\)"),
        ("two_population", {}, r"has 2 where the problem has 1 \(places of data\)"),
        ("density", SPACE, "has a density of filters with 2 coordinates and one layer, and the problem filters with 3"),
        ("density", {"filters.start": {"law": "random"}}, "filters.start: the start is that of initial.from already"),
        ("particles", {"particles.replicas": 4}, "initial.from has 3 runs, each the start of one; lower replicas to 3"),
    ],
)
def test_what_cannot_be_a_start_is_refused(name, values, words, files):
    with pytest.raises(InputError, match=words):
        rest_of(EXAMPLE, files / f"{name}.nc", **values)


def test_single_filters_on_a_sphere_are_no_density(files):
    np.savez(files / "space.npz", weights=np.eye(3))
    start = {"initial": {"from": str(files / "space.npz")}, "filters.start": UNIFORM, "filters.count": 3}
    with pytest.raises(InputError, match="single filters on a sphere are no start of a density; name a density"):
        meanfield.solve(meanfield.with_values(EXAMPLE, SPACE | start), "density")
