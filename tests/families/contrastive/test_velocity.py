"""Momentum 1 - b/N, whose velocity lasts: plain steps, and order parameters with those of the velocity."""

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.problems.file import format_problem
from tests.example_problems import feature, features, gaussian, make_problem
from tests.references_in_time import inside, integrated, stopped, verdicts

B = 1.5
PROBLEM = make_problem(
    "time = { stop = 4.0, outputs = 5 }",
    "model.learning_rate = 0.1",
    "model.batch_size = 20",
    f"model.momentum_rate = {B}",
)
TWO = make_problem(
    "time = { stop = 4.0, outputs = 5 }",
    features(feature(0.5), feature(0.3, gaussian(1.3))),
    'prior = { name = "l2", strength = 3.0 }',
    'model = { centering = "population", learning_rate = 0.1, batch_size = 20, momentum_rate = 1.5 }',
)
SMALL = meanfield.with_values(PROBLEM, {"particles.dimension": 40, "time.stop": 1.0})


IN_TIME = {
    "model.learning_rate": {
        "schedule": "warmup_cosine",
        "start": 0.02,
        "peak": 0.15,
        "warmup": 1.0,
        "end": 0.03,
        "duration": 3.0,
    },
    "model.batch_size": {"times": [0.0, 1.5], "values": [20, 50], "interpolation": "step"},
    "phases": [{"stop": 2.5}, {"stop": 4.0, "set": {"prior": {"name": "l2", "strength": 1.0}}}],
}
"""A warm-up, larger batches and another prior."""

CHANNELS = meanfield.with_values(
    SMALL,
    {"model.channels": 2, "model.learning_rate": 0.02, "features[0].initial_overlap": [0.5, 0.3]},
)
"""Two channels, which nothing sets apart."""

NOISY = {
    "augmentation": {"variance": [{"schedule": "linear", "start": 0.1, "end": 0.5, "duration": 4.0}, 0.2]},
    "model.average_rate": 0.7,
}
"""Views whose noise grows, and an average of the weights."""

SEVERAL = meanfield.with_values(
    CHANNELS,
    {
        "decorrelation": {"strength": 0.1},
        "augmentation": {"variance": [0.3, 0.2]},
        "model.initial_channel_overlap": 0.3,
        "model.average_rate": 0.8,
        "time.stop": 2.0,
    },
)
"""Two channels that a penalty sets apart, on noisy views."""


def numbers_in_time(t, strength):
    """Learning rate, batch size and strength of the prior at a time of that problem."""
    decay = 0.03 + 0.06 * (1.0 + np.cos(0.5 * np.pi * (min(t, 3.0) - 1.0)))
    return 0.02 + 0.13 * t if t < 1.0 else decay, 20 if t < 1.5 else 50, strength if t < 2.5 else 1.0


@pytest.mark.parametrize("changes", [{}, IN_TIME], ids=["constant", "in time"])
@pytest.mark.parametrize("strength", [0.0, 3.0])
def test_the_limit_is_that_of_scipy_with_closed_forms(strength, changes):
    """A quadratic activation: <D^2(s1 s2)> = 12 <B^2>, <c D(s1 s2)> = 4 <c B^3> and Lambda = 16 tau^2/m <B^6>."""
    problem = meanfield.with_values(PROBLEM, {"prior": {"name": "l2", "strength": strength}} | changes)
    m2, m4 = 1.1, 6.05
    m6 = m4**2 / m2  # of any three-point law

    def velocity(t, y, low, high):
        tau, m, pull = numbers_in_time(inside(t, low, high), strength) if changes else (0.1, 20, strength)
        q, along, inward, square = y
        s = 1.0 - q**2
        of_features = tau * 4.0 * (q**3 * m4 + 3.0 * q * s * m2)  # E[y F]
        of_weights = 4.0 * tau * (q**4 * m4 + 6.0 * q**2 * s * m2 + 3.0 * s**2)  # E[s F] = 4 tau <B^4>
        sixth = q**6 * m6 + 15.0 * q**4 * s * m4 + 45.0 * q**2 * s**2 * m2 + 15.0 * s**3
        gamma = (of_weights - q * of_features) / s
        of_velocity = (of_features - q * gamma) * along + gamma * inward  # E[s_p F]
        return [
            B * (along - inward * q),
            of_features - tau * pull * q - B * along,
            B * square - B * inward**2 + of_weights - tau * pull - B * inward,
            2.0 * (of_velocity - tau * pull * inward - B * square) + 16.0 * tau**2 / m * sixth,
        ]

    known = integrated(velocity, [0.5, 0.0, 0.0, 0.0], problem.time.outputs_at, (1.0, 1.5, 2.5, 3.0))
    found = meanfield.solve_order_parameters(problem)
    assert found["q"].values[:, 0] == pytest.approx(known[:, 0], abs=1e-8)  # the accuracy that results state


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem",
    [PROBLEM, TWO, meanfield.with_values(PROBLEM, IN_TIME), meanfield.with_values(PROBLEM, NOISY), SEVERAL],
    ids=["one feature", "two features", "in time", "noisy views", "two channels"],
)
def test_sgd_agrees_with_the_limit_and_with_no_rate_a_fifth_away(problem):
    """Verdicts are wrong once in 20 times by chance; the seed is fixed."""
    problem = meanfield.with_value(problem, "particles", {"dimension": 100, "replicas": 64, "seed": 1})
    found = verdicts(problem, "order_parameters", "model.momentum_rate", [0.8 * B, 1.2 * B])
    assert found == ["AGREES", "DIFFERS", "DIFFERS"]


def test_a_fast_velocity_is_none():
    """What is left of it is of the order of the rates over b."""
    problem = meanfield.with_value(PROBLEM, "model.momentum_rate", 1e4)
    known = meanfield.solve_order_parameters(meanfield.with_value(PROBLEM, "model.momentum_rate", None))
    assert meanfield.solve_order_parameters(problem)["q"].values == pytest.approx(known["q"].values, abs=1e-4)  # 1/b


@pytest.mark.parametrize("problem", [TWO, CHANNELS], ids=["two features", "two channels"])
def test_averages_under_a_fast_velocity_are_those_without(problem):
    """Those without a velocity follow equations of their own."""
    without = meanfield.with_values(problem, {"model.average_rate": 0.7, "model.momentum_rate": None})
    known = meanfield.solve_order_parameters(without)
    found = meanfield.solve_order_parameters(meanfield.with_value(without, "model.momentum_rate", 1e4))
    for name in {"q_average", "overlap_average", "norm_average", "M_average", "Lambda"} & set(known):
        assert found[name].values == pytest.approx(known[name].values, abs=1e-4)  # 1/b


def test_the_average_follows_weights_that_have_a_velocity():
    """dE[u w']/dt = a (q - E[u w']) along q, which the test above knows, by a series of q in time."""
    a, (nodes, weights) = 0.7, np.polynomial.legendre.leggauss(20)
    problem = meanfield.with_values(PROBLEM, {"model.average_rate": a, "time.outputs": 41})
    found = meanfield.solve_order_parameters(problem)
    t, q = found["time"].values, found["q"].values[:, 0]
    series = np.polynomial.Chebyshev.fit(t, q, 20)  # its last coefficient is below 1e-12
    s = 0.5 * t[:, None] * (nodes + 1.0)
    mean = 0.5 * t * ((a * np.exp(-a * (t[:, None] - s)) * series(s)) @ weights)
    expected = mean + q[0] * np.exp(-a * t)
    assert found["q_average"].values[:, 0] == pytest.approx(expected, abs=1e-8)  # ODE_ACCURACY


def test_channels_that_share_nothing_learn_as_one_alone():
    both = meanfield.solve_order_parameters(CHANNELS)["q"].values[:, 0]
    for channel, overlap in enumerate((0.5, 0.3)):
        alone = {"model.channels": 1, "features[0].initial_overlap": overlap}
        known = meanfield.solve_order_parameters(meanfield.with_values(CHANNELS, alone))["q"].values[:, 0]
        assert both[:, channel] == pytest.approx(known, abs=1e-8)  # ODE_ACCURACY


def test_steps_are_those_of_a_momentum_close_to_one():
    """Bit by bit those with momentum 1 - b/N and steps b/N as long."""
    other = {"model.momentum_rate": None, "model.momentum": 1.0 - B / 40, "model.learning_rate": B / 40 * 0.1}
    found, known = (prepare_steppers(each, "plain")(range(1)) for each in (SMALL, meanfield.with_values(SMALL, other)))
    for stepper in (found, known):
        stepper.advance(0, 40)
    assert np.array_equal(found.snapshot["weights"], known.snapshot["weights"])


def test_the_velocity_is_part_of_the_state():
    def make():
        return prepare_steppers(SMALL, "plain")(range(1))

    whole = make()
    whole.advance(0, 9)
    assert np.array_equal(stopped(make, 5, 9).snapshot["weights"], whole.snapshot["weights"])


def test_a_schedule_moves_velocities_too():
    """A rate that is constant in a table gives the bits of its number."""
    moving = meanfield.with_value(SMALL, "model.learning_rate", {"times": [0.0, 1.0], "values": [0.1, 0.1]})
    both = [meanfield.simulate_sgd(each)["q"].values for each in (SMALL, moving)]
    assert np.array_equal(*both)


@pytest.mark.parametrize("problem", [SMALL, CHANNELS], ids=["one channel", "two channels"])
@pytest.mark.parametrize("method", ["density", "dynamics", "fixed_points", "stationary"])
def test_what_knows_weights_alone_says_so(problem, method):
    with pytest.raises(meanfield.InputError, match=r"^model\.momentum_rate = 1\.5: .*order parameters and SGD follow"):
        meanfield.solve(problem, method)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        (
            "particles",
            {"particles.method": "chain"},
            r"'chain' with model\.momentum_rate = 1\.5: only plain .*'plain', or",
        ),
        ("particles", {"model.momentum_rate": 41.0}, r"momentum_rate = 41 with 40 steps .*lower the rate to 40 or"),
    ],
)
def test_what_is_not_known_says_what_to_do(method, changes, message):
    problem = meanfield.with_values(SMALL, changes)
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.solve(problem, method)


def test_momentum_is_said_once():
    with pytest.raises(meanfield.InputError, match=r"momentum_rate = 1\.5 with momentum = 0\.9: .*; remove either"):
        meanfield.with_value(SMALL, "model.momentum", 0.9)
    assert "momentum" not in format_problem(meanfield.with_value(SMALL, "model.momentum_rate", None))
