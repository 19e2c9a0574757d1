"""Starts of runs: one for all, or one for each, in verdicts, statistics and runs that are stopped."""

import numpy as np
import pytest

import meanfield
from meanfield.comparison.inputs import different_starts
from meanfield.problems.known_families import find_family
from meanfield.problems.problem_keys import with_values
from meanfield.results.result import Result
from meanfield.testing.methods import Example, check_resumption
from tests.families.latent_tree.problems import case_b

RUNS = {"particles.replicas": 8, "training.learning_rate": 0.05}


def of_example(**particles):
    problem = meanfield.load_problem(find_family("latent_tree").example_path)
    return with_values(problem, RUNS | {f"particles.{key}": value for key, value in particles.items()})


@pytest.fixture(scope="module")
def own():
    return meanfield.solve(of_example(common_start=False), "particles")


def test_each_run_draws_its_own_start_by_the_same_law(own):
    weights = own["weights"].isel(time=0).values
    nodes, outgoing = weights[:, :8].reshape(8, -1, 2), weights[:, 8:]
    assert np.allclose((nodes**2).sum(axis=-1), 1.0, atol=1e-12)  # on the sphere, but for rounding
    assert np.all(outgoing == 0.5)
    assert len(np.unique(nodes, axis=0)) == 8
    few = meanfield.solve(of_example(common_start=False, replicas=2), "particles")
    assert np.array_equal(few["weights"], own["weights"][:2])
    other = meanfield.solve(of_example(common_start=False, seed=1), "particles")
    assert not np.isin(other["weights"][:, 0, :8], nodes).any()


def test_advice_on_starts_names_the_key_that_draws_them(own):
    """Weights at the start are those of network.initial, whatever particles.seed is."""
    flow = Result.of(meanfield.solve(of_example(seed=7), "population"))
    runs = Result.of(meanfield.solve(of_example(common_start=True, seed=1), "particles"))
    assert different_starts(flow, runs) == ""
    other = with_values(of_example(common_start=True), {"network.initial.seed": 3})
    said = different_starts(flow, Result.of(meanfield.solve(other, "particles")))
    assert said == "They start with other weights: give both the same network.initial."


def test_runs_with_starts_of_their_own_go_on_where_they_stopped(tmp_path):
    for number, record in enumerate(("replicas", "statistics")):
        example = Example(find_family("latent_tree"))
        example.problem = of_example(common_start=False, record=record, replicas=3)
        check_resumption(example, "particles", tmp_path / str(number))


def test_statistics_have_the_scatter_of_starts(own):
    ensemble = meanfield.solve(of_example(common_start=False, record="statistics"), "particles")
    variance = own["loss"].var("replica", ddof=1) / 0.05  # over the learning rate
    assert np.allclose(ensemble["loss_variance"], variance, rtol=1e-12)  # rounding


def test_starts_have_their_place_in_verdicts(own):
    common = of_example()
    flow, density, runs = (meanfield.solve(common, method) for method in ("population", "density", "particles"))
    statistics = meanfield.solve(of_example(record="statistics"), "particles")
    assert meanfield.compare(flow, runs).attrs["verdict"] == "AGREES"
    assert meanfield.compare(flow, statistics).attrs["verdict"] == "AGREES"
    for record in ("replicas", "statistics"):  # with as many weights as a verdict asks for
        found = meanfield.compare(density, meanfield.solve(of_example(record=record, replicas=32), "particles"))
        assert found.attrs["verdict"] == "CANNOT TELL"
        assert "set particles.common_start = false" in str(found["reason"].values[0])
    assert meanfield.compare(density, own).attrs["verdict"] != "DIFFERS"
    many = meanfield.solve(of_example(common_start=False, replicas=32, seed=3), "particles")
    found = meanfield.compare(flow, many)
    assert found.attrs["verdict"] == "CANNOT TELL"
    assert "set particles.common_start = true." in str(found["reason"].values[0])  # whatever the seed of the batches is


def test_given_weights_are_one_start():
    with pytest.raises(ValueError, match=r"particles.common_start = false: network.initial.law = 'explicit'"):
        case_b(particles={"common_start": False})
