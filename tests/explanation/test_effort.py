"""What an explanation takes itself: memory is limited, and work that would cost is counted or estimated."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

import meanfield
from meanfield.ensembles.simulation import blocks_of
from meanfield.explanation import replicas
from meanfield.families.alpha_contrastive import costs
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.population import solver as population
from meanfield.families.contrastive.channels import randomised
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density.solver import compared_with, limits_of_runs
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.explanation import predictions, several_channels
from meanfield.families.hidden_manifold import costs as manifold_costs
from meanfield.families.hidden_manifold.order_parameters.averaging import stationary_averages
from meanfield.families.latent_tree import costs as tree_costs
from meanfield.families.latent_tree import sizes
from meanfield.families.latent_tree.images import simulation
from meanfield.families.latent_tree.pieces import Pieces
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.mckean_vlasov import closure_tiles
from meanfield.mckean_vlasov.density.lagrangian import budget, level
from meanfield.problems.file import parse_problem
from meanfield.several_vectors import particle_search
from tests import ROOT

PROBLEMS = ROOT / "data" / "problems"

LIMITED = """
import json, resource, sys
from pathlib import Path
import meanfield
from meanfield.problems.file import parse_problem
for path, all_changes in json.loads(sys.argv[1]).items():
    text = Path(path).read_text()
    meanfield.explain(parse_problem(text))  # imports and loads what is compiled
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 200_000_000, most := resource.getrlimit(resource.RLIMIT_AS)[1]))
    for changes in all_changes:
        changed = text
        for old, new in changes.items():
            assert old in changed
            changed = changed.replace(old, new)
        predictions = meanfield.explain(parse_problem(changed)).predictions
        print([p.reason for p in predictions if p.method == "particles"])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
needless = "pandas", "xarray", "meanfield.families.contrastive.channels"
print([name for name in needless if name in sys.modules])
"""
"""Explanations of problems with other values than in their files, in 200 MB more than that of each file takes, without
what makes Datasets or is for several channels, which take half a second to load, not needed to explain these."""

LARGE = {
    "latent_tree": [
        {"depth = 3 ": "depth = 16 "},  # 65,536 leaves, a thousand samples and 64 anchors: 4 GB
        {"depth = 3 ": "depth = 1 ", "children = 2": "children = 16", "latent = 2": "latent = 64"},  # 4e6
        {"depth = 3 ": "depth = 4 ", "latent = 2": "latent = 100", '"simple"': '"infonce"'},  # 65,536 outputs
    ],
    "sparse_prior": [{"outputs = 41": "outputs = 100001"}],  # 2 GB for each level of the pilot of a density
}


def ticking(module, monkeypatch):
    """Times at which a module looks at the clock, which moves by a hundredth of a second each time."""
    looks = []
    clock = SimpleNamespace(process_time=lambda: looks.append(1) or 0.01 * len(looks))
    monkeypatch.setattr(module, "time", clock)
    return looks


# That trials are small is guarded by the other tests of this file, and what is imported by test_equations.py.
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the memory that a process has, as Linux says it")
def test_large_problems_are_explained_in_little_memory_and_without_datasets():
    files = {str(PROBLEMS / f"{name}.toml"): changes for name, changes in LARGE.items()}
    command = [sys.executable, "-c", LIMITED, json.dumps(files)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "['']\n" * sum(map(len, LARGE.values())) + "[]\n"
    assert (ended.returncode, ended.stdout) == (0, said), ended.stderr


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("nine_points", {"training.batch_size": 10_001}),
        ("nine_points", {"particles.test_batches": 10_001}),
        ("tokens", {"training.batch_size": 10_001}),
    ],
)
def test_large_batches_are_tried_on_few_samples(name, changes, monkeypatch):
    """They took half a minute and gigabytes."""
    problem = meanfield.with_values(meanfield.load_problem(PROBLEMS / f"{name}.toml"), changes)
    usual = meanfield.explain(meanfield.load_problem(PROBLEMS / f"{name}.toml"))  # loads what is compiled
    few = next(p.seconds for p in usual.predictions if p.method == "particles")
    tried, stepper = [], costs.Replicas
    monkeypatch.setattr(costs, "Replicas", lambda trial, *block: (tried.append(trial), stepper(trial, *block))[1])
    explained = meanfield.explain(problem)
    assert next(p.seconds for p in explained.predictions if p.method == "particles") > 20.0 * few
    sizes_of = [t.training.batch_size**2 * t.particles.test_batches for t in tried]  # of a batch, and of those scored
    assert 0 < max(sizes_of) <= 2 * costs.TRIAL


def test_the_flow_of_many_filters_is_checked_on_few(monkeypatch):
    """All weights of ten million filters took gigabytes, and no explanation was left."""
    tokens = meanfield.load_problem(PROBLEMS / "tokens.toml")
    checked, weights_of = [], population.common_weights
    monkeypatch.setattr(
        population, "common_weights", lambda each: (checked.append(each.filters.count), weights_of(each))[1]
    )
    population.check_population(meanfield.with_value(tokens, "filters.count", 10**7))
    population.check_population(tokens)
    assert checked == [4096, tokens.filters.count]


def test_rates_by_long_quadratures_are_timed_on_few_points_once(monkeypatch):
    """Each of three methods took two evaluations of half a second."""
    problem = meanfield.with_value(
        meanfield.load_problem(PROBLEMS / "committee_machine.toml"), "student.activation", "relu"
    )
    tried = []

    def timed(problem, nodes, points, made=manifold_costs.system_of):
        tried.append(points)
        return made(problem, nodes, points)

    monkeypatch.setattr(manifold_costs, "system_of", timed)
    monkeypatch.setattr(manifold_costs, "seconds_of", lambda _: 0.02)  # seconds of few points
    found = {p.method: p.seconds for p in meanfield.explain(problem).predictions}
    assert tried == [manifold_costs.FEW_POINTS]
    assert found["order parameters"] > 100.0  # some thousand evaluations of 28 points, which take 16 times as long


def test_probes_of_images_cost_what_they_do_in_a_trial():
    """They were taken for a part of the loss, whose trial has few samples: predictions were ten times too long."""
    samples, probes = [], []

    class Stepper:
        rows = property(lambda self: samples.append(1))
        advance = staticmethod(lambda first, steps: None)

    simulation_of_images = simulation.simulation_of(
        meanfield.load_problem(ROOT / "meanfield/families/latent_tree/images/example.toml")
    )
    clock = iter([0.0, 1.0, 0.75])  # of a step, of an output, and of its probes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replicas, "seconds_of", lambda work: (work(), next(clock))[1])
        found = replicas.cost_of_replicas(
            simulation_of_images, lambda _: Stepper(), output=100.0, same=lambda _: probes.append(1)
        )
    rounds = -(-len(simulation_of_images.blocks) // replicas.available_cores())
    assert found.seconds == pytest.approx(
        rounds * simulation_of_images.time.outputs * (0.75 + 100.0 * 0.25)
    )  # rounding
    assert samples == probes == [1]


def test_sgd_of_many_filters_is_tried_on_few(monkeypatch):
    """A million filters took 350 MB."""
    problem = meanfield.with_values(
        meanfield.load_problem(PROBLEMS / "nine_points.toml"), {"filters.count": 1_000_000, "particles.replicas": 1}
    )
    tried, stepper = [], costs.Replicas
    monkeypatch.setattr(costs, "Replicas", lambda trial, *block: (tried.append(trial), stepper(trial, *block))[1])
    few = costs.particles(meanfield.with_value(problem, "filters.count", 10_000)).seconds
    assert costs.particles(problem).seconds > 30.0 * few  # a hundred times, but for the clock
    assert {trial.filters.count for trial in tried} == {4096}


@pytest.mark.parametrize("name", [pytest.param("two_channels", marks=pytest.mark.slow), "no_prior"])
def test_large_batches_of_steps_are_tried_on_few_samples(name, monkeypatch):
    """A million samples for each of some hundred steps took half a minute, and those of four chains gigabytes."""
    problem = meanfield.with_value(meanfield.load_problem(PROBLEMS / f"{name}.toml"), "model.batch_size", 1_000_000)
    taken, prepare = [], predictions.prepare_steppers

    def counted(trial, method):
        steppers = prepare(trial, method)

        def made(block):
            stepper, samples = steppers(block), len(block) * trial.model.batch_size
            advance = stepper.advance
            return SimpleNamespace(
                advance=lambda first, steps: (taken.append(steps * samples), advance(first, steps))[1]
            )

        return made

    monkeypatch.setattr(predictions, "prepare_steppers", counted)
    found = {p.method: p.seconds for p in meanfield.explain(problem).predictions}["particles"]
    assert 0 < max(taken) <= predictions.LARGEST_TRIAL
    steps = problem.time.stop * problem.particles.dimension
    assert found > 1e-9 * steps * 1_000_000  # no machine takes less for a sample


def test_many_filters_are_tried_on_few(monkeypatch):
    """A million filters took half a minute and gigabytes; each has as many weights and costs as much as any other."""
    tokens = meanfield.load_problem(PROBLEMS / "tokens.toml")
    tried, flow = [], costs.Flow
    monkeypatch.setattr(
        costs, "Flow", lambda problem, *drift: (tried.append(problem.filters.count), flow(problem, *drift))[1]
    )
    few, many = (costs.population(meanfield.with_value(tokens, "filters.count", count)) for count in (4096, 2**20))
    assert set(tried) == {4096}
    assert many.seconds > 100.0 * few.seconds  # 256 times, but for the clock
    places, _, coordinates = tokens.shape
    weights = (places * coordinates + places * (tokens.model.outputs or 0)) * 2**20
    assert many.contents.startswith(f"{weights:,} weights")


def test_large_batches_of_chains_are_tried_on_few_chains(monkeypatch):
    problem = meanfield.with_values(
        meanfield.load_problem(PROBLEMS / "random_start.toml"),
        {"model.batch_size": 1_000_000, "particles.replicas": 512},
    )
    blocks, prepare = [], predictions.prepare_steppers

    def counted(*given):
        steppers = prepare(*given)
        return lambda block: (blocks.append(len(block)), steppers(block))[1]

    monkeypatch.setattr(predictions, "prepare_steppers", counted)
    assert predictions.particle_seconds(problem, "chain") > 0.0
    assert blocks == [4]


def test_blocks_of_a_million_replicas_are_made_when_they_are_asked_for():
    blocks = blocks_of(1_000_000, 1)
    assert (len(blocks), blocks[999_999], sys.getsizeof(blocks) < 100) == (1_000_000, range(999_999, 1_000_000), True)
    with pytest.raises(IndexError):
        blocks[1_000_000]


def test_outputs_of_a_tree_are_compared_once(monkeypatch):
    counted, count = [], sizes.count_different
    monkeypatch.setattr(sizes, "count_different", lambda blocks: (counted.append(1), count(blocks))[1])
    text = (PROBLEMS / "latent_tree.toml").read_text()
    meanfield.explain(parse_problem(text.replace("depth = 3 ", "depth = 4 ").replace('"simple"', '"infonce"')))
    assert counted == [1]


def test_flows_of_which_nodes_slide_are_tried_for_a_fraction_of_a_second(monkeypatch):
    """Each step solves for the slopes of all nodes that slide; a trial of a quarter of the time took minutes.

    The clock of this test moves by a hundredth of a second each time that it is looked at.
    """
    looks = ticking(tree_costs, monkeypatch)
    text = (PROBLEMS / "latent_tree.toml").read_text()
    problem = parse_problem(text.replace("low = 0.7", "low = 1.0"))
    trial = tree_costs._flow_seconds(tables_of(problem), 1e3)
    assert len(looks) <= 40  # 0.3 seconds, and the first step
    assert 0.3 < trial < 1e3
    del looks[:]
    monkeypatch.setattr(tree_costs._Trial, "_margin", Pieces._margin)  # no step ends
    assert tree_costs._flow_seconds(tables_of(problem), 1e3) == 1e3
    assert len(looks) <= 60  # half a second; 47 had been seen


def test_averages_of_channels_are_prepared_once(monkeypatch):
    """Those of |C| take seconds: a Fourier series is tried, and random batches are drawn."""
    made, prepare = [], ChannelClosure.__init__
    monkeypatch.setattr(ChannelClosure, "__init__", lambda self, *given: (made.append(1), prepare(self, *given))[1])
    explained = meanfield.explain(meanfield.load_problem(PROBLEMS / "two_channels.toml"))
    assert {p.method for p in explained.predictions if p.applies} >= {"density", "order parameters", "dynamics"}
    assert len(made) == 1


@pytest.mark.slow
def test_averages_by_random_batches_are_timed_without_sobol_points(monkeypatch):
    """To import what makes them took half a second, and eight randomisations of large batches more."""
    monkeypatch.setattr(randomised, "sobol_points", None)  # cannot be called
    changes = {"decorrelation.penalty": "absolute", "model.batch_size": 4}
    problem = meanfield.with_values(meanfield.load_problem(PROBLEMS / "two_channels.toml"), changes)
    found = {p.method: p for p in meanfield.explain(problem).predictions}
    assert found["order parameters"].seconds > 4.0
    assert "random batches" in found["dynamics"].reason


def filters_tried(kind, name, monkeypatch):
    """Numbers of filters of all calls of a method of a field."""
    tried, method = [], getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda self, w: (tried.append(len(w)), method(self, w))[1])
    return tried


@pytest.mark.parametrize(
    ("name", "kind", "method", "most"),
    [
        ("gaussian_mixture", KernelMixtureField, "height_and_field", 200),  # a hundredth of a second; a start takes 400
        ("points_on_sphere", DiscreteField, "pull", 1e5),  # one enumeration takes 6e4, and there were several
    ],
)
def test_critical_points_in_space_are_counted_by_filters(name, kind, method, most, monkeypatch):
    """One way uphill of a mixture took two seconds, and so did points on a sphere, which were enumerated."""
    problem = meanfield.load_problem(ROOT / f"validation/predictions/problems/{name}.toml")
    filters = filters_tried(kind, method, monkeypatch)
    changed = (meanfield.with_value(problem, "critical_points.starts", starts) for starts in (100, 100_000))
    few, many = (costs.critical_points(each).seconds for each in changed)
    assert 0 < sum(filters) <= 2 * most
    assert many > 3.0 * few  # a thousand times, but for what is enumerated


@pytest.mark.parametrize(("key", "value"), [("importance.temperature", 1e-6), ("data.points[0][0]", 1e6)])
def test_critical_points_on_a_circle_are_counted_by_arcs(key, value, monkeypatch):
    """An enumeration at the least temperature took ten seconds and half a gigabyte, and one of far points six."""
    problem = meanfield.load_problem(PROBLEMS / "nine_points.toml")
    few = {p.method: p.seconds for p in meanfield.explain(problem).predictions}
    changed = meanfield.with_value(problem, key, value)
    filters = filters_tried(DiscreteField, "field", monkeypatch)
    seconds = {p.method: p.seconds for p in meanfield.explain(changed).predictions}
    assert sum(filters) < 1e6  # an enumeration takes 45 times 16 for each of 6e4 arcs
    assert seconds["critical points"] > few["critical points"] + 0.5  # thousands of arcs in place of ten
    assert seconds["optimal filters"] > seconds["critical points"]


@pytest.mark.slow
def test_pilots_call_slow_closures_for_a_fraction_of_a_second(monkeypatch):
    """Next to |q| = 1 tiles are small, and fifty of them took ten seconds; their closures are counted in place."""
    changes = {"model.batch_size": 1_000_000, "time.outputs": 2}
    problem = meanfield.with_values(meanfield.load_problem(PROBLEMS / "digits.toml"), changes)
    made, tiled = [], closure_tiles.tiled
    monkeypatch.setattr(closure_tiles, "tiled", lambda *given: (made.append(tiled(*given)), made[-1])[1])
    looks = ticking(budget, monkeypatch)
    explained = meanfield.explain(problem)
    assert {int(each.tiles.counts[0]) for each in made if isinstance(each, closure_tiles.TiledClosure)} == {0}
    assert 0 < len(looks) <= 70 + 6  # of a search, few nodes, and the path alone
    assert "the time of the density is extrapolated from t = " in " ".join(str(explained).split())


@pytest.mark.parametrize(("key", "value"), [("model.batch_size", 1_000_000), ("prior.strength", 1e6)])
def test_long_pilots_end_after_a_fraction_of_a_second(key, value, monkeypatch):
    """They took three seconds: work of a step differs from prior to prior, and few nodes took as long once more."""
    problem = meanfield.with_value(meanfield.load_problem(PROBLEMS / "sparse_prior.toml"), key, value)
    looks, steps, advance = ticking(budget, monkeypatch), [], level.advance
    monkeypatch.setattr(
        level, "advance", lambda time, most, *state: (steps.append(most), advance(time, most, *state))[1]
    )
    meanfield.explain(problem)
    assert set(steps) == {1}  # each is followed by a look
    assert len(steps) <= len(looks) <= 55 + 4  # on all nodes, and on few


def test_particles_of_the_limit_are_tried_to_the_first_output_time(monkeypatch):
    """Eight runs to the last one, twice, took four seconds, and with a million output times hours."""
    changes = {"density.scheme": "particles", "time.outputs": 1_000_000}
    problem = meanfield.with_values(meanfield.load_problem(PROBLEMS / "two_channels.toml"), changes)
    tried, march = [], particle_search.march
    monkeypatch.setattr(
        particle_search,
        "march",
        lambda *given: (tried.append((len(given[0][0].times), len(given[0]))), march(*given))[1],
    )
    found = {p.method: p for p in meanfield.explain(problem).predictions}["density"]
    assert tried == [(2, particle_search.RUNS)]
    assert found.seconds > 1000.0
    assert found.memory > 1e9


def test_dear_averages_of_channels_are_evaluated_a_few_times(monkeypatch):
    """Eight runs of a pilot evaluated each of them a hundred times, which took fifteen seconds, and then failed."""
    problem = meanfield.load_problem(ROOT / "validation/predictions/problems/three_channels.toml")
    evaluated, tried = [], []
    monkeypatch.setattr(ChannelClosure, "__call__", lambda *_: evaluated.append(1))
    monkeypatch.setattr(several_channels, "seconds_of", lambda work: (work(), 0.05)[1])
    monkeypatch.setattr(particle_search, "march", lambda *given: tried.append(given))
    assert several_channels.density(problem).seconds > 50.0  # 8 runs to 10 output times, of 13 averages each
    assert (len(evaluated), tried) == (1, [])


def test_the_quadrature_of_particles_is_compared_at_the_times_of_the_pilot():
    problem = meanfield.load_problem(PROBLEMS / "two_channels.toml")
    closure, coarser = ChannelsInTime(problem), ChannelClosure(problem)
    closure.closures[0].compared = coarser
    found = particle_search.size_after_pilot(limits_of_runs(closure)[:2], 2e-3, compared_with(closure))
    assert found == particle_search.PILOT  # the prior is linear


def test_fast_means_that_do_not_rest_are_tried_for_few_steps(monkeypatch):
    """They were followed for a hundred thousand steps, which took two seconds, to say that they do not come to rest."""
    example = meanfield.load_problem(ROOT / "meanfield/families/hidden_manifold/example.toml")
    strides, advance = [], stationary_averages.advance
    monkeypatch.setattr(stationary_averages, "advance", lambda *given: (strides.append(given[4]), advance(*given))[1])
    explained = meanfield.explain(meanfield.with_value(example, "inputs.nonlinearity", "relu"))
    assert explained.predictions[0].applies
    assert max(strides) == 2048  # a fourth of 32 records of 256 steps; 13,384 followed


def test_wide_trees_are_trained_on_fewer_nodes(monkeypatch):
    """Weights of a thousand nodes for each latent took 280 MB."""
    problem = meanfield.load_problem(PROBLEMS / "latent_tree.toml")
    tried, stepper = [], tree_costs.Replicas
    monkeypatch.setattr(
        tree_costs, "Replicas", lambda trial, *rest, **more: (tried.append(trial), stepper(trial, *rest, **more))[1]
    )
    changed = [meanfield.with_value(problem, "network.nodes_per_latent", nodes) for nodes in (100, 1000)]
    few, many = (tree_costs.particles(each) for each in changed)
    assert [trial.shape.nodes for trial in tried] == [100, 590]
    assert many.seconds > 20.0 * few.seconds  # a hundred times as many weights, but for the clock
    assert [each.weight_count for each in changed] == [len(each.initial_weights.vector) for each in changed]


@pytest.mark.parametrize(
    "changes",
    [{"network.widths": [100_000, 3]}, {"training.batch_size": 100_000}, {"particles.loss_batches": 10_000}],
)
def test_training_on_images_is_tried_on_few_samples_and_narrow_layers(changes, monkeypatch):
    """Each took half a minute, and wide layers gigabytes."""
    example = meanfield.load_problem(ROOT / "meanfield/families/latent_tree/images/example.toml")
    tried, stepper = [], simulation.ImageReplicas
    monkeypatch.setattr(
        simulation, "ImageReplicas", lambda trial, *block: (tried.append(trial), stepper(trial, *block))[1]
    )
    explained = [meanfield.explain(problem) for problem in (example, meanfield.with_values(example, changes))]
    few, many = (p.seconds for each in explained for p in each.predictions if p.method == "particles")
    assert many > few + 1.0
    usual, trial = tried
    assert usual == example
    assert trial.widths[1] <= 512
    assert simulation.numbers_of_a_batch(trial) * trial.particles.loss_batches <= 3 * simulation.TRIAL


def test_large_tables_of_trees_are_not_tried(monkeypatch):
    """A thousand nodes for each latent took twelve seconds and a gigabyte."""
    problem = meanfield.load_problem(PROBLEMS / "latent_tree.toml")
    asked, found = [], tree_costs.tables_of
    monkeypatch.setattr(tree_costs, "tables_of", lambda given: (asked.append(given), found(given))[1])
    assert tree_costs.population(problem).seconds < 5.0
    assert len(asked) == 2  # for a gradient, and the flow
    assert tree_costs.population(meanfield.with_value(problem, "network.nodes_per_latent", 300)).seconds > 5.0
    assert len(asked) == 2


def test_searches_are_tried_from_fewer_starts_than_a_problem_may_have():
    """A problem with so few is refused, and critical points of a mixture seemed not to apply."""
    problem = meanfield.load_problem(ROOT / "validation/predictions/problems/gaussian_mixture.toml")
    cost = costs.critical_points(problem)
    assert not cost.reason
    assert cost.seconds > 0.0
