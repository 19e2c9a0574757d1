"""Predictions against measurements: what is tried, how a run is measured, and what its page says."""

import time
from pathlib import Path

import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.explanation.prediction import Prediction
from meanfield.families.contrastive.explanation.several_channels import density as several_density
from meanfield.families.latent_tree.costs import population
from meanfield.problems.file import load_problem
from meanfield.problems.known_families import families, family_of
from validation.predictions.problems import UNUSUAL_PROBLEMS, write_problems
from validation.predictions.run import Plan, Run, measure, page, shares


def test_problems_of_all_families_are_tried(tmp_path):
    files = write_problems(tmp_path, 2)
    loaded = {name: family_of(load_problem(path)).name for name, path in files.items()}
    assert set(loaded.values()) == {family.name for family in families()}
    assert {"random 0", "random 1", "fixed cells", "importance_images"} <= set(loaded)


def plan(method, file, seconds=2.0):
    return Plan("P", file, "contrastive", method, Prediction(method, seconds=seconds, memory=0.0, file=100.0))


def test_the_page_counts_what_is_right_within_factors():
    runs = [Run(plan("density", Path("P.toml")), measured, 3e8, 50.0) for measured in (2.0, 1.1, 5.0, 30.0)]
    assert shares([run.ratio for run in runs]) == ("50.0%", "75.0%", "75.0%", "15.0")
    written = page(runs, 7)
    assert "| all |  | 4 | 50.0% | 75.0% | 75.0% | 15.0 |" in written
    first = written[written.index("| ratio") :].splitlines()[2]
    assert first == "| contrastive | P | density | 2.00 | 30.00 | 0.07 | 1.00 | 2.00 |"


@pytest.mark.slow
def test_a_run_is_a_process_of_its_own(tmp_path):
    file = next(family for family in families() if family.name == "contrastive").example_path
    found = measure(plan("order_parameters", file), 0, tmp_path)
    assert found.file == (tmp_path / "0.nc").stat().st_size
    assert found.seconds > 0.5  # Python, NumPy and xarray alone take longer on any machine
    assert found.memory > 1e8  # and more than this
    assert measure(plan("fixed_point", file), 0, tmp_path) is None


@pytest.mark.slow
def test_the_flow_of_a_tree_takes_as_long_as_its_beginning_says():
    problem = load_problem(UNUSUAL_PROBLEMS / "tree_density.toml")
    predicted = population(problem).seconds
    began = time.process_time()
    meanfield.solve(problem, "population")
    assert 1 / 3 < predicted / (time.process_time() - began) < 3  # trials are a fifth of the path or more


def test_particles_of_many_channels_are_refused_where_averages_are():
    text = (UNUSUAL_PROBLEMS / "three_channels.toml").read_text()
    text = text.replace("two_point", "laplace").replace("values = [-1.3, 1.3]", "second_moment = 1.5")
    with pytest.raises(InputError, match="nodes or more"):
        several_density(meanfield.parse_problem(text.replace("quadratic", "tanh")))
