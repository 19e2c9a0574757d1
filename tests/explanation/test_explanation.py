import os

import numba
import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.explanation import density_cost as density_cost_module
from meanfield.explanation.density_cost import density_cost
from meanfield.explanation.explanation import COMPILES, WIDTH, Explanation, duration, size
from meanfield.explanation.prediction import START, predictions
from meanfield.families.contrastive.explanation.predictions import LARGEST_TRIAL, particle_seconds
from meanfield.families.contrastive.explanation.warnings import warnings_of
from meanfield.families.contrastive.limit import limit_of
from meanfield.process.own_numba.folder import folder, has_compiled_code
from tests.example_problems import THREE_POINT, feature, features, gaussian, make_problem

METHODS = ["density", "order parameters", "dynamics", "stationary states", "particles"]


@pytest.fixture
def quick(monkeypatch):
    """Predictions without trials, which other tests make."""
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.particle_seconds", lambda *_: 0.0)
    monkeypatch.setattr("meanfield.families.contrastive.explanation.predictions.seconds_of", lambda _: 0.0)


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


def cost_of(*settings):
    problem = make_problem(*settings)
    return problem, density_cost(limit_of(problem), problem.density)


@pytest.mark.parametrize(
    ("settings", "slack"),
    [("density = { cells = 400, order = 4 }", 1.0), ("density = { tolerance = 1e-6 }", 1.5)],
)
def test_density_is_predicted_on_the_cells_and_nodes_that_it_gets(settings, slack):
    problem, cost = cost_of(settings)
    result = meanfield.solve_density(problem)
    assert cost.nodes == result["u_weight"].size
    assert result.sizes["w"] / slack <= cost.cells <= result.sizes["w"] * slack  # the pilot is coarser than the result
    assert cost.warning == ""
    assert result["P"].nbytes < cost.memory < 20 * result["P"].nbytes


def test_nodes_that_a_kink_in_u_asks_for_are_predicted(monkeypatch):
    """At this accuracy the search cuts panels of u, to three times the nodes that it begins with."""
    monkeypatch.setattr(density_cost_module, "PILOT_SECONDS", 60.0)  # the pilot ends by itself on a busy machine, too
    lines = features(feature(0.5, THREE_POINT)), 'prior = { name = "l1" }', "density = { tolerance = 1e-7 }"
    problem, cost = cost_of(*lines, "time = { stop = 5.0, outputs = 5 }")
    result = meanfield.solve_density(problem)
    begun = cost_of(*lines[:2], "density = { tolerance = 1e-6 }")[1].nodes
    assert cost.nodes == result["u_weight"].size > 2 * begun
    assert result["P"].nbytes < cost.memory < 20 * result["P"].nbytes


def test_work_of_given_cells_and_steps_is_known():
    costs = [cost_of(f"density = {{ cells = 200, steps = {steps}, order = 2 }}")[1] for steps in (1000, 4000)]
    assert costs[1].seconds == pytest.approx(4 * costs[0].seconds, rel=1e-12)  # rounding; both are multiples of outputs


def test_words_about_a_density_do_not_depend_on_the_load_of_the_machine():
    assert cost_of("density = { tolerance = 1e-6 }")[1] == cost_of("density = { tolerance = 1e-6 }")[1]


def test_densities_that_fail_or_miss_their_accuracy_are_announced(monkeypatch):
    monkeypatch.setattr(density_cost_module, "MOST_WORK", 1e3)
    assert "density.tolerance = 1e-06 seems out of reach" in cost_of()[1].warning


def test_a_new_installation_is_told_that_it_compiles():
    explained = [str(Explanation("", (), (), (), compiles)) for compiles in (False, True)]
    assert [COMPILES in text for text in explained] == [False, True]


def test_compiled_code_is_found_where_numba_keeps_it(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert not has_compiled_code()
    (folder() / "kernel.nbc").touch()
    assert has_compiled_code()


def test_runs_of_more_than_a_day_are_refused():
    endless = make_problem("density = { cells = 400, steps = 1_000_000_000_000 }", "time.stop = 1e12")
    with pytest.raises(InputError, match=r"density: 1e\+12 steps .* lower density.steps"):
        meanfield.solve_density(endless)
    found = {p.method: p for p in predictions(endless)}
    assert "lower density.steps" in found["density"].reason
    assert "2 replicas of 6.4e+13 steps" in found["particles"].reason
    assert "raise particles.longest_days" in found["particles"].reason


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
            ['prior = { name = "l1", strength = 50.0 }', "particles.dimension = 2000", "density.tolerance = 1e-3"],
            "N = 2,000 follows the limit until",
        ),
        (["time = { stop = 1e-3, outputs = 2 }"], "SGD takes no step by time.stop = 0.001"),
        (["particles = { dimension = 10_000_000, replicas = 100, snapshots = [0.0, 20.0] }"], "may take 24 GB"),
    ],
)
def test_warnings_with_a_remedy(quick, lines, warning):
    problem = make_problem(*lines)
    assert any(warning in text for text in warnings_of(problem, predictions(problem)))


def test_what_the_prior_alone_moves_is_no_run_in_which_hardly_anything_happens(quick):
    weak = [
        features(feature(0.6, gaussian(1.0))),
        'model.activation = "tanh"',
        "model.batch_size = 40",
        "time.stop = 6.0",
        "density.tolerance = 1e-3",  # of q, which moves by a hundred times as much
    ]
    said = []
    for strength in (0.0, 3.0):
        prior = f'prior = {{ name = "l1", strength = {strength} }}'
        problem = make_problem(*weak, "model.learning_rate = 0.1", prior)
        said += [any("hardly anything" in text for text in warnings_of(problem, predictions(problem)))]
    q = meanfield.solve_density(problem)["q"]
    assert abs((q[-1] - q[0]).item()) > 0.1
    assert said == [True, False]


@pytest.mark.parametrize(("second", "warned"), [(1e5, True), (1.2, False)])
def test_features_that_are_long_beside_the_noise_are_a_warning(second, warned):
    """At E[c^2] = 1e5 and N = 200 the prediction was q = 0.09 where SGD reached 1."""
    line = f'features = [{{ hidden = {{ law = "laplace", second_moment = {second} }}, initial_overlap = 0.3 }}]'
    said = warnings_of(make_problem(line), [])
    assert any("is not small beside N = 64" in text for text in said) == warned


def test_kinks_that_a_prior_does_not_name_are_a_warning(quick, tmp_path, monkeypatch):
    (tmp_path / "unnamed_kink.py").write_text("def pull(w):\n    return 1.0 if w > 0.0 else -1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    problem = make_problem('prior = { name = "unnamed_kink:pull", strength = 0.1 }', "density.tolerance = 1e-3")
    (warning,) = (text for text in warnings_of(problem, predictions(problem)) if "prior.name" in text)
    assert warning.startswith("prior.name = 'unnamed_kink:pull': its force jumps from -1 to 1 at w = 0, which")
    assert warning.endswith(
        "kinks=(0,)); otherwise density and stationary states may miss their accuracy, while SGD is right"
    )


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
        "meanfield.explanation.replicas.check_memory",
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


def test_phases_take_their_share_of_the_time(quick, monkeypatch):
    where = "meanfield.families.contrastive.explanation.predictions.particle_seconds"
    monkeypatch.setattr(where, lambda problem, _: 100.0 * problem.model.batch_size)
    phases = "[{ stop = 5.0 }, { stop = 20.0, set = { 'model.batch_size' = 30 } }]"
    found = {p.method: p for p in predictions(make_problem(f"phases = {phases}"))}["particles"]
    assert found.seconds == pytest.approx(0.25 * 1000.0 + 0.75 * 3000.0 + START, rel=1e-3)  # writing of weights
    alone = {p.method: p for p in predictions(make_problem("model.batch_size = 30"))}["particles"]
    assert (found.file, found.memory) == (alone.file, alone.memory)


def test_averages_that_do_not_converge_are_tried_once(monkeypatch):
    tried = []

    def refuse(*given):
        tried.append(given)
        raise InputError("model.activation needs more panels; use less noise")

    monkeypatch.setattr("meanfield.families.contrastive.closures.views.tabulate", refuse)
    noisy = make_problem("augmentation = { variance = [0.12345, 0.12345] }", 'model.activation = "tanh"')
    reasons = {prediction.method: prediction.reason for prediction in predictions(noisy)}
    assert [name for name in METHODS if "needs more panels" in reasons[name]] == METHODS[:4]
    assert len(tried) == 1  # and not once for each method
