"""Density of weights along eigenvectors: moments, and the comparison with weights that obey it, or not quite."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.density import deviations, distances
from meanfield.ingredients.spectra import interpolated
from meanfield.problems.file import load_problem
from meanfield.problems.known_families import find_family
from meanfield.problems.problem_keys import with_values
from meanfield.results.result import Result
from tests.families.hidden_manifold.problems import solved

CHANGES = {"time": {"stop": 4.0, "outputs": 3}, "order_parameters": {"tolerance": 1e-6}}


@pytest.fixture(scope="module")
def density():
    return solved("density", **CHANGES)


def test_moments_are_those_of_the_order_parameters(density):
    width, w = np.diff(density["w_bnds"].values, axis=1)[:, 0], density["w"].values
    P = density["P_w"].values
    assert (P * width).sum(axis=-1) == pytest.approx(np.ones((3, 2)), abs=1e-8)  # 6 standard deviations are shown
    second = (P * (w * w - width**2 / 12) * width).sum(axis=-1)
    Sigma = np.einsum("tkk->tk", density["Sigma"].values)
    assert second == pytest.approx(Sigma, rel=1e-4)  # of cells, where the density is not constant
    path = solved("order_parameters", **CHANGES)
    for name in ("Q", "R", "generalisation_error"):
        assert np.array_equal(density[name], path[name])


def weights_of_sgd(density, factor=1.0, runs=8, D=400):
    """Weights that are drawn from the law, with standard deviations that are `factor` times as large."""
    rng = np.random.default_rng(1)
    node = rng.choice(density.sizes["rho"], (runs, D), p=density["rho_weight"].values)
    teacher = rng.standard_normal((runs, D, 2))
    at = density.isel(time=[0, 2])
    mean = np.einsum("trdkm,rdm->rtkd", at["regression"].values[:, node], teacher)
    noise = at["spread"].values[:, node].transpose(1, 0, 3, 2) * rng.standard_normal((runs, 1, 2, D))
    return xr.Dataset(
        {
            "S": (("replica", "snapshot_time", "student", "coordinate"), mean + factor * noise),
            "teacher_components": (("replica", "coordinate", "teacher"), teacher),
            "rho_of_coordinate": (("replica", "coordinate"), density["rho"].values[node]),
        },
        {"snapshot_time": [0.0, 4.0]},
    )


def test_weights_of_the_law_are_as_near_as_chance_has_it(density):
    """Twice the mean distance of 3200 independent weights, which chance exceeds in 1e-4 of cases; fixed seed."""
    right, wrong = weights_of_sgd(density), weights_of_sgd(density, 1.2)
    for runs, near in ((right, True), (wrong, False)):
        results = Result.of(density), Result.of(density).part(runs)
        found = distances(results, [(0, 1)])
        for name in ("W1", "KS"):
            ratio = found[name] / found[f"{name}_expected"]
            assert np.all(ratio < 2.0) if near else np.all(ratio > 3.0), name
        places = results[0].part(xr.Dataset(coords={"snapshot_time": [0.0, 4.0]}))
        (judged,) = deviations(*results, places)
        assert judged.rows.shape == (8, 4, 61)
        pooled = np.abs(judged.rows.mean(axis=0)).max(axis=-1)
        assert pooled == pytest.approx(found["KS"].ravel(), abs=4e-3)  # between the points


def test_the_law_between_nodes_is_the_polynomial_through_them(density):
    """Laws at eigenvalues of another rule, of which none is a node here: both are right to the tolerance."""
    finer = solved("density", **CHANGES | {"order_parameters": {"tolerance": 1e-10}})
    rho = finer["rho"].values
    for name in ("regression", "spread"):
        power = 1 if name == "regression" else 2
        between = interpolated(density["rho"].values, density[name].values[-1] ** power, rho)
        assert np.abs(between - finer[name].values[-1] ** power).max() < 1e-5


def test_more_latents_than_inputs():
    """Components at the eigenvalue 0 vanish and scatter nowhere; the others are judged at every snapshot."""
    example = load_problem(find_family("hidden_manifold").example_path)
    several = {"particles.replicas": 8, "particles.snapshots": [0.0, 0.5, 1.0], "time.stop": 1.0, "time.outputs": 3}
    problem = with_values(example, {"inputs.aspect_ratio": 2.0, "particles.dimension": 100, **several})
    limit, runs = (meanfield.solve(problem, method) for method in ("density", "particles"))
    found = meanfield.compare(limit, runs)
    assert found.attrs["verdict"] == "AGREES"
    assert np.isfinite(found["W1"].values).all()
    assert np.isfinite(found["KS"].values).all()
    assert "weights along 100 eigenvectors with the eigenvalue 0, where they vanish" in str(found["left_out"].values[0])
    wide = runs.assign(S=runs["S"] * 1.3)
    assert meanfield.compare(limit, wide).attrs["verdict"] == "DIFFERS"
    with pytest.raises(InputError, match=r"'S' is not 0 along eigenvectors of F F.T/N with the eigenvalue 0"):
        meanfield.compare(limit, runs.assign(S=runs["S"] + 0.01))


def test_students_without_scatter_are_said_to_be_left_out():
    still = {
        "output_weights": [1.0, 1.0],
        "on_teacher": [[0.3, 0.0], [0.0, 0.3]],
        "elsewhere": [[0.0, 0.0], [0.0, 0.4]],
    }
    at = {"time": {"stop": 0.5, "outputs": 2}, "particles": {"dimension": 60, "replicas": 4}}
    limit, runs = (solved(method, student=still, **at, order_parameters={}) for method in ("density", "particles"))
    words = str(meanfield.compare(limit, runs)["left_out"].values[0])
    assert "weights of student 1 at t = 0, to which no scatter is predicted" in words
