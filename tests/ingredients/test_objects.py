"""Objects of Python in problems: one mechanism for functions, arrays, laws and results, in every family."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest

import meanfield
from meanfield import Activation, InputError, Prior
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.extend import AtomicPart, identity_of
from meanfield.ingredients.objects import packed
from meanfield.problems.file import format_problem, parse_problem
from meanfield.results.result import Result
from meanfield.sweep import Sweep, run_sweep
from tests.example_problems import make_problem

SAMPLES = np.random.default_rng(0).standard_normal((200, 2))


def bent(factor):
    return lambda x: factor * x * x


class Walls(Prior):
    """A prior class of a user."""

    def __init__(self, at):
        super().__init__(lambda w: 0.0 if abs(w) < at else w - at if w > 0 else w + at, kinks=(-at, at))


class Coin(AtomicPart):
    """A law class of a user."""

    size: float = 1.5

    @property
    def atoms(self):
        return np.array([[-self.size], [self.size]]), np.array([0.5, 0.5])


def of_samples(samples, **keys):
    features = [{"hidden": {"samples": samples}, "initial_overlap": 0.5}]
    model = {"activation": bent(1.0), "learning_rate": 0.05, "batch_size": 4}
    particles = {"dimension": 64, "replicas": 3, "method": "plain"}
    time = {"stop": 1.0, "outputs": 3}
    return meanfield.Problem(**{"model": model, "features": features, "time": time, "particles": particles} | keys)


def test_they_are_what_a_file_would_name(tmp_path):
    np.save(tmp_path / "samples.npy", SAMPLES)
    named = {"hidden": {"law": "empirical", "file": str(tmp_path / "samples.npy"), "column": 1}, "initial_overlap": 0.5}
    given = named | {"hidden": {"samples": SAMPLES, "column": 1}}
    model = {"activation": "quadratic", "learning_rate": 0.05, "batch_size": 4}
    one, other = (
        meanfield.solve_order_parameters(of_samples(SAMPLES, model=each, features=[features]))
        for features, each in (
            (named, model),
            (given, model | {"activation": Activation(lambda x: x * x, lambda x: 2 * x)}),
        )
    )
    assert one["q"].values.tobytes() == other["q"].values.tobytes()


def test_texts_are_decided_by_code_closures_and_bytes():
    same, other_samples = of_samples(SAMPLES), of_samples(np.nextafter(SAMPLES, np.inf))
    other_power = meanfield.with_value(same, "model.activation", bent(3.0))
    assert same == of_samples(SAMPLES.copy())
    assert hash(same) == hash(of_samples(SAMPLES.copy()))
    assert len({each.model.activation for each in (same, other_power, other_samples)}) == 2
    assert len({each.features[0].hidden.file for each in (same, other_power, other_samples)}) == 2
    assert same.fingerprints().keys() == {"model.activation", "features[0].hidden.file"}


def test_a_change_of_an_array_reaches_no_problem():
    samples = np.arange(1.0, 11.0).reshape(5, 2)
    problem = of_samples(samples)
    samples[:] = 0.0
    for each in (problem, copy.deepcopy(problem), meanfield.with_value(problem, "model.learning_rate", 0.1)):
        assert each.features[0].hidden.atoms[0].ravel().tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    other = meanfield.with_value(problem, "features[0].hidden.column", 1)  # which is read now
    assert other.features[0].hidden.atoms[0].ravel().tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]


@pytest.mark.parametrize(
    "prior", [Walls(2.0), Prior(lambda w: w * w * w), lambda w: w * w * w], ids=["class", "prior", "force"]
)
def test_tables_of_one_object_and_classes_of_ones_own(prior):
    problem = of_samples(SAMPLES, prior=prior)
    force = prior.unit_force if isinstance(prior, Prior) else prior
    assert problem.prior.functions.forces(np.array([2.5]))[0] == force(2.5)
    assert of_samples(SAMPLES, prior={"name": prior}) == problem


def test_laws_of_ones_own_become_the_text_that_they_are():
    problem = make_problem()
    found = meanfield.with_value(problem, "features[0].hidden", Coin(size=1.5))
    law = {"law": "discrete", "values": [-1.5, 1.5], "probabilities": [0.5, 0.5]}
    assert found == meanfield.with_value(problem, "features[0].hidden", law)
    assert "object:" not in format_problem(found)


def test_schedules_and_phases_take_them():
    rows = np.array([[0.0, 0.05], [0.5, 0.02], [1.0, 0.02]])
    sets = {"model.activation": bent(3.0), "features[0].hidden": {"samples": SAMPLES}, "prior.name": Walls(1.0)}
    phases = [{"stop": 0.5}, {"stop": 1.0, "set": sets | {"prior.strength": lambda t: t}}]
    problem = of_samples(SAMPLES, phases=phases)
    problem = meanfield.with_value(problem, "model.learning_rate", {"file": rows})
    assert problem.model.learning_rate.values_at(np.array([0.25]))[0] == pytest.approx(0.035, rel=1e-14)  # rounding
    named = [key for key in problem.fingerprints() if key.startswith("phases")]
    assert named == [f"phases[1].set.{key}" for key in ("model.activation", "features[0].hidden.file", "prior.name")]
    objects = [bent(1.0), bent(3.0), SAMPLES, Walls(1.0), rows]
    assert parse_problem(format_problem(problem), objects=objects) == problem


def test_texts_say_that_they_are_not_enough_and_how_to_go_on():
    problem = of_samples(SAMPLES)
    result = meanfield.solve_order_parameters(problem)
    text = result.attrs["problem"]
    assert text.startswith("# This text alone does not reproduce the run")
    assert f"# {problem.model.activation}\n" in text
    with pytest.raises(
        InputError, match=r"hidden.file: 'object:array-.* no text holds; .*parse_problem\(text, objects="
    ):
        parse_problem(text)
    with pytest.raises(InputError, match=r"given are 'object:lambda-.* and other code, values or versions have other"):
        parse_problem(text, objects=[bent(3.0), SAMPLES])
    with pytest.raises(InputError, match="objects: is function; give a list"):
        parse_problem(text, objects=bent(1.0))
    again = parse_problem(text, objects=[SAMPLES, bent(1.0)])
    assert meanfield.solve_order_parameters(again)["q"].values.tobytes() == result["q"].values.tobytes()
    with pytest.raises(InputError, match=r"'object:lambda-.*because a result names it; give what it stands for"):
        meanfield.solve_order_parameters(Result.of(result).problem)


def test_runs_with_another_object_are_not_mixed(tmp_path):
    problem, other = of_samples(SAMPLES), of_samples(2.0 * SAMPLES)
    with Checkpoint(tmp_path / "run").open(identity_of(problem)):
        pass
    unfinished = Checkpoint(tmp_path / "run").open(identity_of(other))
    with pytest.raises(InputError, match="an unfinished run of another problem"), unfinished:
        pass


@pytest.mark.slow  # it starts a worker
def test_a_sweep_over_objects(tmp_path):
    axis = {"key": "model.activation", "values": ["quadratic", bent(1.0), bent(3.0)]}
    sweep = Sweep(problem=of_samples(SAMPLES), axes=[axis], methods={"order_parameters": ["final"]})
    result = run_sweep(sweep, tmp_path, workers=1)
    q = result["q_final"].values.ravel()
    assert result.attrs["status"] == "complete", result["status"].values
    assert q[0] == pytest.approx(q[1], rel=1e-9)  # the derivative by differences
    assert abs(q[2] - q[1]) > 1e-3
    other = Sweep(problem=of_samples(2.0 * SAMPLES), axes=[axis], methods={"order_parameters": ["final"]})
    with pytest.raises(InputError, match="another sweep"):
        run_sweep(other, tmp_path, workers=1)


def test_other_processes_get_them_or_it_is_said_why(monkeypatch):
    problem = of_samples(SAMPLES, prior=Walls(2.0))
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert again.fingerprints() == problem.fingerprints()
    assert np.array_equal(again.features[0].hidden.atoms[0], problem.features[0].hidden.atoms[0])
    lock = threading.Lock()
    rule = {"family": "update_rule", "model": {"rule": lambda s, y: (y - s) * (lock is not None)}}
    held = meanfield.Problem(**rule, features=[{"initial_overlap": 0.2}], time={"stop": 1.0})
    with pytest.raises(InputError, match=r"cannot go to another process .*cannot pickle.*put it into a module"):
        pickle.dumps(held)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    pickle.dumps(make_problem())
    with pytest.raises(InputError, match=r"'object:\w+-\w+': .*pip install 'meanfield-dynamics\[cluster\]'"):
        pickle.dumps(problem)
    with pytest.raises(InputError, match="'object:f': workers cannot import"):  # arrays need no cloudpickle
        packed({"object:a": SAMPLES, "object:f": bent(1.0)})


@pytest.mark.slow  # the kernels of a rule
def test_update_rules_take_them_in_draws_too():
    def step(y, s):
        return 0.5 * (y - s)

    plain = {"family": "update_rule", "features": [{"initial_overlap": 0.2}], "time": {"stop": 1.0, "outputs": 3}}
    one = meanfield.Problem(**plain, model={"rule": step})
    other = meanfield.Problem(**plain, draws=[{"gain": {"s": step}}], model={})
    q = [meanfield.solve_order_parameters(each)["R"].values for each in (one, other)]
    assert np.array_equal(*q)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"prior": 3.0}, "prior"),
        (
            {"model": {"activation": SAMPLES, "learning_rate": 0.05, "batch_size": 4}},
            "model.activation: .*object:array",
        ),
        ({"features": [{"hidden": {"samples": [1.0, -1.0]}, "initial_overlap": 0.5}]}, "samples: is no array"),
        ({"features": [{"hidden": {"samples": np.ones(3) * np.nan}, "initial_overlap": 0.5}]}, "is not finite"),
        ({"features": [{"hidden": {"samples": np.array(["a"])}, "initial_overlap": 0.5}]}, "give real numbers"),
        ({"features": [{"hidden": {"samples": SAMPLES, "column": 2}, "initial_overlap": 0.5}]}, "column 2"),
    ],
)
def test_what_is_not_right_is_refused_with_its_key(keys, words):
    with pytest.raises(InputError, match=words):
        of_samples(SAMPLES, **keys)
