"""What a problem computes from its parts, and that nobody can change it afterwards.

Messages about bad input are tested in test_problem_file.py.
"""

from contextlib import suppress

import numpy as np
import pytest
from pydantic import ValidationError

from meanfield.errors import InputError
from meanfield.extend import DensitySettings, Time
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.settings import ParticleSettings
from meanfield.families.contrastive.tables import Augmentation, Feature, Model
from meanfield.ingredients.activations import ACTIVATIONS, make_activation
from tests.oracles.plain_steps import make_problem


def test_defaults():
    problem = make_problem()
    assert problem.title == ""
    assert problem.augmentation is None
    assert (problem.prior.name, problem.prior.strength) == ("none", 1.0)
    assert problem.time.outputs == 41
    assert problem.density == DensitySettings(tolerance=1e-6)
    assert problem.particles == ParticleSettings(method="auto", dimension=1024, replicas=8, seed=0, snapshots=None)
    assert problem.features[0].coordinate.law == "gaussian"


def test_whole_numbers_are_numbers():
    """TOML tells 20 from 20.0; people do not."""
    problem = make_problem(tau=1, overlaps=[0], time={"stop": 20})
    assert type(problem.model.learning_rate) is float
    assert type(problem.time.stop) is float
    assert problem == make_problem(tau=1.0, overlaps=[0.0], time={"stop": 20.0})


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_by_name(name):
    model = Model(activation=name, learning_rate=0.1, batch_size=1)
    assert model.activation_functions is make_activation(name, ())  # one object, so that what it computed is kept


@pytest.mark.parametrize(
    ("variance", "correlation", "covariance"),
    [
        ([0.3, 0.3], 0.0, [[0.3, 0.0], [0.0, 0.3]]),
        ([0.3, 0.3], -1.0, [[0.3, -0.3], [-0.3, 0.3]]),
        ([0.4, 0.9], 0.5, [[0.4, 0.3], [0.3, 0.9]]),
        ([0.0, 0.5], 1.0, [[0.0, 0.0], [0.0, 0.5]]),
    ],
)
def test_covariance_of_the_noise(variance, correlation, covariance):
    augmentation = Augmentation(variance=variance, correlation=correlation)
    np.testing.assert_allclose(augmentation.covariance, covariance, rtol=1e-15)  # rounding
    problem = make_problem(noise={"variance": variance, "correlation": correlation})
    np.testing.assert_array_equal(problem.noise_covariance, augmentation.covariance)


def test_no_noise_by_default():
    np.testing.assert_array_equal(make_problem().noise_covariance, np.zeros((2, 2)))
    assert Augmentation(variance=[0.1, 0.1]).correlation == 0


def test_output_times():
    np.testing.assert_allclose(Time(stop=3.0, outputs=4).outputs_at, [0, 1, 2, 3], rtol=1e-15)  # rounding
    assert Time(stop=0.7, outputs=2).outputs_at.tolist() == [0.0, 0.7]
    assert Time(stop=0.1, outputs=1001).outputs_at[-1] == 0.1


def test_output_times_in_their_logarithms():
    times = Time(stop=100.0, outputs=5, spacing="log", first=0.1).outputs_at
    np.testing.assert_allclose(times, [0, 0.1, 1, 10, 100], rtol=1e-14)  # rounding of geomspace
    assert Time(stop=20.0, outputs=4, spacing="log").outputs_at[1] == 0.02
    assert Time(stop=20.0, outputs=2, spacing="log").outputs_at.tolist() == [0.0, 20.0]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"first": 0.1}, "time.first: belongs to time.spacing = 'log'"),
        ({"spacing": "log", "first": 20.0}, "time.first: is 20; give at least 2e-11, and less than time.stop = 20"),
        ({"spacing": "log", "first": 0.1, "outputs": 2}, "raise time.outputs"),
    ],
)
def test_first_output_time_is_one(keys, words):
    with pytest.raises(InputError, match=words):
        make_problem(time={"stop": 20.0} | keys)


@pytest.mark.parametrize(
    ("outputs", "snapshots", "index"),
    [
        (41, None, [0, 20, 40]),
        (4, None, [0, 1, 3]),
        (2, None, [0, 1]),
        (41, [0.0], [0]),
        (41, [20.0, 0.5], [1, 40]),
        (41, [5.0, 5.0, 0.5], [1, 10]),
        (201, [0.3, 0.6, 1.7], [3, 6, 17]),  # 0.3 / 0.1 is below 3 in floating point
        (61, [1.0, 1.0 / 3.0, 19.666666666666668], [1, 3, 59]),
    ],
)
def test_snapshots(outputs, snapshots, index):
    """First, middle and last output without a choice; in order and once each with one."""
    particles = {} if snapshots is None else {"snapshots": snapshots}
    problem = make_problem(time={"stop": 20.0, "outputs": outputs}, particles=particles)
    assert problem.particles.snapshot_index(problem.time) == index


def test_informed_start():
    problem = make_problem(hidden=["gaussian", "three_point"], overlaps=[0.5, -0.25])
    assert not problem.random_start
    assert problem.initial_overlap.tolist() == [0.5, -0.25]


def test_random_start():
    problem = make_problem(hidden=["gaussian", "three_point"], overlaps=["random", "random"])
    assert problem.random_start
    assert problem.initial_overlap.tolist() == [0.0, 0.0]


def test_almost_on_the_sphere_is_allowed():
    assert make_problem(overlaps=[0.9999999]).initial_overlap[0] == 0.9999999


@pytest.mark.parametrize("features", [1, 2, 5])
def test_least_dimension(features):
    hidden = ["gaussian"] * features
    least = features + 2
    assert make_problem(hidden=hidden, particles={"dimension": least}).particles.dimension == least
    with pytest.raises(InputError, match=r"dimension"):
        make_problem(hidden=hidden, particles={"dimension": least - 1})


def test_the_limit_is_what_methods_do_not_decide():
    """Runs of different methods are compared if and only if this agrees."""
    problem = make_problem()
    same = make_problem(
        title="another", density={"cells": 100}, particles={"seed": 3, "dimension": 64}, time={"stop": 2.0}
    )
    assert problem != same
    assert problem.limit() == same.limit()
    others = [
        make_problem(tau=0.31),
        make_problem(m=5),
        make_problem("erf"),
        make_problem(centering="batch"),
        make_problem(noise="opposite"),
        make_problem(hidden=["gaussian"]),
        make_problem(overlaps=[0.2]),
        make_problem(prior={"name": "l1"}),
    ]
    for other in others:
        assert other.limit() != problem.limit()


EVERY_TABLE = make_problem(
    hidden=["three_point", "gaussian", "asymmetric"],
    noise="opposite",
    prior={"name": "l1", "strength": 2.0},
    particles={"snapshots": [0.0]},
)
PARTS = [
    EVERY_TABLE,
    EVERY_TABLE.model,
    EVERY_TABLE.features[0],
    *(feature.hidden for feature in EVERY_TABLE.features),
    EVERY_TABLE.features[0].coordinate,
    EVERY_TABLE.augmentation,
    EVERY_TABLE.prior,
    EVERY_TABLE.time,
    EVERY_TABLE.density,
    EVERY_TABLE.particles,
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_frozen(part):
    for field in type(part).model_fields:
        with pytest.raises(InputError, match="does not change"):
            setattr(part, field, getattr(part, field))
        with pytest.raises(ValidationError, match="frozen"):
            delattr(part, field)
    with pytest.raises(InputError, match="does not change"):
        part.another_field = 1


def test_sequences_are_frozen():
    assert isinstance(EVERY_TABLE.features, tuple)
    assert isinstance(EVERY_TABLE.features[2].hidden.values, tuple)
    assert isinstance(EVERY_TABLE.augmentation.variance, tuple)
    assert isinstance(EVERY_TABLE.particles.snapshots, tuple)


@pytest.mark.parametrize(
    "array",
    [
        lambda problem: problem.initial_overlap,
        lambda problem: problem.noise_covariance,
        lambda problem: problem.time.outputs_at,
        lambda problem: problem.features[2].hidden.atoms[0],
    ],
    ids=["initial_overlap", "noise_covariance", "outputs_at", "atoms"],
)
@pytest.mark.parametrize("noise", [None, "opposite"])
def test_arrays_cannot_change_the_problem(array, noise):
    """Whoever writes into an array gets an error, or has a copy."""
    problem = make_problem(hidden=["three_point", "gaussian", "asymmetric"], noise=noise)
    before = array(problem).copy()
    with suppress(ValueError):  # numpy's "assignment destination is read-only"
        array(problem)[...] = 7.0
    np.testing.assert_array_equal(array(problem), before)


def test_equality_and_hash_ignore_what_was_computed():
    problem, other = make_problem(noise="opposite"), make_problem(noise="opposite")
    assert problem.initial_overlap.size == 1
    assert problem.noise_covariance.shape == (2, 2)
    assert problem == other
    assert hash(problem) == hash(other)
    assert problem != make_problem(noise="correlated")


def test_bad_parts_are_refused_from_python_as_well():
    with pytest.raises(ValidationError, match="batch_size = 1 with centering = 'batch'"):
        Model(activation="tanh", centering="batch", learning_rate=0.1, batch_size=1)
    with pytest.raises(ValidationError, match="did you mean 'initial_overlap'"):
        Feature(hidden={"law": "gaussian"}, initial_overlaps=0.1)
    with pytest.raises(InputError, match="features is empty"):
        Problem(model=EVERY_TABLE.model, features=(), time=EVERY_TABLE.time)
