import os

import numpy as np
import pytest

import meanfield
from meanfield.explanation.explanation import WIDTH, duration, size
from meanfield.explanation.prediction import predictions
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.explanation import density_pilot
from meanfield.families.contrastive.explanation.particle_pilot import LARGEST_TRIAL, particle_seconds
from meanfield.families.contrastive.explanation.warnings import warnings_of
from tests.example_problems import THREE_POINT, feature, features, gaussian, make_problem

METHODS = ["density", "order parameters", "dynamics", "stationary states", "particles"]


@pytest.fixture
def quick(monkeypatch):
    """Predictions without trials, which other tests make."""
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.particle_seconds", lambda *_: 0.0)
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.dynamics_seconds", lambda *_: 0.0)
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.stationary_seconds", lambda *_: 0.0)
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.trajectory_seconds", lambda *_: 0.0)
    monkeypatch.setattr(density_pilot, "BUDGET", 0.01)


def test_text_is_narrow_and_has_a_row_for_each_method():
    lines = str(meanfield.explain(make_problem("density = { cells = 100, feature_nodes = 9 }"))).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) <= 40
    for method in METHODS:
        assert sum(line.startswith(method) for line in lines) == 1


def test_what_does_not_apply_says_why_and_what_to_change():
    found = {p.method: p for p in predictions(make_problem('prior = { name = "l1" }', features(feature("random"))))}
    assert not found["density"].applies
    assert "give a number" in found["density"].reason
    assert "change the prior" in found["dynamics"].reason
    assert found["particles"].applies
    assert found["particles"].seconds > 0


@pytest.mark.parametrize("settings", ["density = { cells = 400, order = 4 }", "density = { tolerance = 1e-6 }"])
def test_density_is_predicted_on_the_cells_and_nodes_that_it_gets(settings, monkeypatch):
    monkeypatch.setattr(density_pilot, "BUDGET", 60.0)  # on a machine however busy
    problem = make_problem(settings)
    cost = density_pilot.density_cost(problem, Closure(problem))
    result = meanfield.solve_density(problem)
    assert (cost.nodes, cost.cells) == (result.sizes["node"], result.sizes["w"])
    assert cost.warning == ""
    assert result["P"].nbytes < cost.memory < 20 * result["P"].nbytes


def test_levels_that_a_pilot_does_not_reach_are_counted(monkeypatch):
    problem = make_problem()
    closure = Closure(problem)
    for name in ("BUDGET", "FEW_NODES_BUDGET"):
        monkeypatch.setattr(density_pilot, name, 60.0)  # on a machine however busy
    whole = density_pilot.density_cost(problem, closure)
    monkeypatch.setattr(density_pilot, "BUDGET", 0.0)
    at_once = density_pilot.density_cost(problem, closure)
    assert at_once.seconds > 0
    assert (at_once.cells, at_once.nodes) == (whole.cells, whole.nodes)


def test_densities_that_fail_or_miss_their_accuracy_are_announced(monkeypatch):
    narrow = make_problem("density.half_width = 1.0")
    failing = density_pilot.density_cost(narrow, Closure(narrow)).warning
    assert failing.startswith("the density failed: at t = 0")
    assert "raise density.half_width" in failing
    monkeypatch.setattr(density_pilot, "BUDGET", 0.0)
    monkeypatch.setattr(density_pilot, "MOST_WORK", 1e3)
    problem = make_problem()
    assert (
        "density.tolerance = 1e-06 seems out of reach" in density_pilot.density_cost(problem, Closure(problem)).warning
    )


@pytest.mark.parametrize(
    ("method", "dimension"), [("chain", 10**9), ("projected", 3 * LARGEST_TRIAL), ("plain", 3 * LARGEST_TRIAL)]
)
def test_sgd_of_any_size_is_predicted_quickly(method, dimension):
    problem = make_problem(f'particles = {{ method = "{method}", dimension = {dimension}, replicas = 4 }}')
    assert 10.0 < particle_seconds(problem, method) < np.inf  # each of these takes minutes at least


def test_sizes_of_files_are_those_of_the_results(quick):
    problem = make_problem('particles = { method = "projected", dimension = 5000, replicas = 3 }', "time.stop = 0.1")
    predicted = {p.method: p for p in predictions(problem)}["particles"]
    assert meanfield.simulate_sgd(problem).nbytes == pytest.approx(predicted.file, rel=0.1)  # what is not an array


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        ([features(feature(0.0))], "q(0) = 0 is stationary"),
        ([features(feature(0.3), feature(0.0))], "feature 2 starts at q = 0 and stays there"),
        ([features(feature(0.3, gaussian(0.9)))], "the data pull it there; second moments above 1.0"),
        ([features(feature(0.3, THREE_POINT.replace("2.0", "1.0")))], "below the threshold of learnability"),
        (["model.learning_rate = 1e-6"], "hardly anything happens by time.stop = 20"),
        (["model.learning_rate = 5.0", "model.batch_size = 1"], "decays to 0: the sampling noise"),
        ([features(feature("random")), "time.stop = 0.2", "time.outputs = 2"], "raise time.stop"),
        (
            ['prior = { name = "l1", strength = 50.0 }', "particles.dimension = 2000"],
            "N = 2,000 follows the limit until",
        ),
        (["time = { stop = 1e-3, outputs = 2 }"], "SGD takes no step by time.stop = 0.001"),
        (["particles = { dimension = 10_000_000, replicas = 100, snapshots = [0.0, 20.0] }"], "may take 24 GB"),
    ],
)
def test_warnings_with_a_remedy(quick, lines, warning):
    problem = make_problem(*lines)
    assert any(warning in text for text in warnings_of(problem, predictions(problem)))


def test_nothing_is_said_of_a_problem_that_does_what_it_should(quick):
    for problem in (make_problem(), make_problem('prior = { name = "l1", strength = 2.0 }')):
        assert warnings_of(problem, predictions(problem)) == []  # Lambda < Lambda_c, but the norm goes nowhere by then


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.01, "< 0.1 s"), (0.234, "0.23 s"), (61.0, "61 s"), (1e4, "2.8 h"), (1e6, "12 days")]
)
def test_times_have_two_digits(seconds, shown):
    assert duration(seconds) in (shown, "1.7e+02 min")


def test_sizes_have_two_digits():
    assert [size(x) for x in (3, 1234, 2.56e6, 1e13)] == ["3 B", "1.2 kB", "2.6 MB", "10 TB"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity to cores, as in Linux")
def test_particles_are_predicted_on_the_cores_that_are_granted(quick, monkeypatch):
    threads = []
    monkeypatch.setattr(
        "meanfield.families.contrastive.explanation.predictions.check_memory",
        lambda simulation, workers, in_memory: threads.append(workers),
    )
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        predictions(make_problem("density = { cells = 100, feature_nodes = 9 }"))
    finally:
        os.sched_setaffinity(0, before)
    assert threads == [1]
