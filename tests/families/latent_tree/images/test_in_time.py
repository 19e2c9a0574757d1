"""Training on images under schedules and phases: steps by hand, PyTorch's optimiser, and runs that are resumed."""

import numpy as np
import pytest

import meanfield
from meanfield.families.latent_tree.images.convolutional import ConvolutionalReplicas
from meanfield.families.latent_tree.images.replicas import ImageReplicas
from meanfield.problems.clock import Clock
from meanfield.problems.file import format_problem
from meanfield.problems.problem_keys import at_time, with_value, with_values
from tests.families.latent_tree.images.problems import problem
from tests.references_in_time import replicas_and_statistics, stopped

MOVING = {
    "training.learning_rate": {"times": [0.0, 0.4, 1.0], "values": [0.1, 0.05, 0.05]},
    "training.batch_size": {"times": [0.0, 0.3], "values": [8, 5], "interpolation": "step"},
    "training.momentum": {"schedule": "linear", "start": 0.0, "end": 0.9, "duration": 1.0},
    "training.weight_decay": {"schedule": "cosine", "start": 0.5, "end": 0.1, "duration": 0.8},
    "phases": [{"stop": 0.5}, {"stop": 1.0, "set": {"training.weight_decay": 0.2}}],
}
CONVOLUTION = "widths = [4, 3]\nconvolution = { channels = [3], blocks = 1, batch_norm = false }"
DENSE = problem(loss="kind = 'infonce'\ntemperature = 0.5")


def convolutional():
    pytest.importorskip("torch")
    return problem(network=CONVOLUTION, loss="kind = 'infonce'\ntemperature = 0.5")


@pytest.mark.parametrize("kind", ["dense", "convolutional"])
def test_steps_have_the_numbers_of_their_times(kind):
    """v <- momentum v + gradient + decay w, w <- w - eta v, with gradients at fresh batches."""
    fixed, replicas = (DENSE, ImageReplicas) if kind == "dense" else (convolutional(), ConvolutionalReplicas)
    given = with_values(fixed, MOVING)
    ours, theirs, clock, v = replicas(given, range(2)), replicas(fixed, range(2)), Clock(given), 0.0
    t = 0.0
    for k in range(12):
        training = at_time(given, clock.time_of(k)).training
        assert clock.time_of(k) == pytest.approx(t, abs=1e-12)  # t_(k+1) = t_k + eta(t_k)
        theirs.problem = with_value(fixed, "training.batch_size", training.batch_size)
        v = training.momentum * v + theirs.slopes() + training.weight_decay * theirs.w
        theirs.w, t = theirs.w - training.learning_rate * v, t + training.learning_rate
        ours.step(k)
        assert ours.w == pytest.approx(theirs.w, abs=1e-13)  # rounding
    assert len({at_time(given, clock.time_of(k)).training.weight_decay for k in range(12)}) > 5


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_momentum_and_decay_are_those_of_pytorch(momentum):
    torch = pytest.importorskip("torch")
    given = with_values(DENSE, {"training.momentum": momentum, "training.weight_decay": 0.3})
    ours, gradients = ImageReplicas(given, range(1)), ImageReplicas(given, range(1))
    w = torch.tensor(ours.w, requires_grad=True)
    optimiser = torch.optim.SGD([w], lr=0.1, momentum=momentum, weight_decay=0.3)
    for k in range(5):
        gradients.w = w.detach().numpy().copy()
        w.grad = torch.tensor(gradients.slopes())
        optimiser.step()
        ours.step(k)
        assert ours.w == pytest.approx(w.detach().numpy(), abs=1e-13)  # rounding


def test_epochs_end_by_the_batches_of_their_time():
    """Fresh weights come after 8 of 31 images, 4 steps, and behind the jump, of 16, after 2."""
    sizes = {"times": [0.0, 0.4], "values": [8, 16], "interpolation": "step"}
    given = with_values(DENSE, {"training.batch_size": sizes, "training.weight_noise": 0.5})
    images = len(given.data.split[0])
    stepper, blended = ImageReplicas(given, range(1)), []
    stepper._blend = lambda: blended.append(k)
    for k in range(12):
        stepper.step(k)
    expected, since = [], 0
    for k in range(12):
        if since >= -(-images // (8 if k < 4 else 16)):
            expected, since = [*expected, k], 0
        since += 1
    assert blended == expected
    assert len(expected) > 1


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_schedules_and_phases_that_change_nothing_give_the_bits_of_numbers(optimiser):
    fixed = with_values(DENSE, {"training.optimiser": optimiser, "training.weight_noise": 0.1})
    keys = ("training.learning_rate", "training.batch_size", "training.weight_noise", "loss.temperature")
    values = dict(zip(keys, (0.1, 8, 0.1, 0.5), strict=True))
    steady = {key: {"times": [0.0], "values": [value]} for key, value in values.items()}
    phases = [{"stop": 0.5}, {"stop": 1.0, "set": {"training.learning_rate": 0.1}}]
    known = meanfield.solve(fixed, "particles")
    for changes in (steady, {"phases": phases}):
        found = meanfield.solve(with_values(fixed, changes), "particles")
        for name in known.data_vars:
            assert np.array_equal(found[name], known[name]), name


@pytest.mark.parametrize("kind", ["dense", "convolutional"])
def test_a_run_that_is_resumed_has_the_same_bits(kind):
    fixed, replicas = (DENSE, ImageReplicas) if kind == "dense" else (convolutional(), ConvolutionalReplicas)
    given = with_values(fixed, MOVING | {"training.weight_noise": 0.1})

    def make():
        return replicas(given, range(2))

    whole = make()
    whole.advance(0, 13)
    for first in (3, 9):
        again = stopped(make, first, 13)
        assert np.array_equal(again.w, whole.w)
        assert all(np.array_equal(again.rows[name], whole.rows[name]) for name in whole.rows)


def test_averages_are_beside_the_weights():
    given = with_values(DENSE, MOVING | {"training.average_rate": 3.0})
    found = meanfield.solve(given, "particles")
    known = meanfield.solve(with_value(given, "training.average_rate", None), "particles")
    assert all(np.array_equal(found[name], known[name]) for name in known.data_vars)
    stepper, clock = ImageReplicas(given, range(2)), Clock(given)
    average, last = stepper.w.copy(), int(clock.steps_at(np.array([1.0]))[0])
    for k in range(last):
        stepper.advance(k, 1)
        average += 3.0 * at_time(given, clock.time_of(k)).training.learning_rate * (stepper.w - average)
    rows = stepper.rows_of_average(average)
    for name, row in rows.items():
        assert found[name].values[:, -1] == pytest.approx(row, abs=1e-12)  # rounding
    replicas_and_statistics(given, ["sampled_loss_average"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.optimiser": "adam", "training.momentum": 0.5}, r"momentum = 0\.5: optimiser = 'adam' has means"),
        ({"loss": {"kind": "nt_xent", "beta": {"times": [0.0], "values": [-1.0]}}}, r"loss\.beta.* -1"),
        ({"phases": [{"stop": 1.0, "set": {"training.optimiser": "adam"}}]}, r"'training\.optimiser' stays the same"),
    ],
)
def test_what_cannot_be_says_so(changes, message):
    with pytest.raises(meanfield.InputError, match=message):
        with_values(DENSE, changes)


def test_averages_of_normalised_channels_are_refused():
    normalised = with_value(convolutional(), "network.convolution.batch_norm", True)
    with pytest.raises(meanfield.InputError, match=r"average_rate = 2 with network\.convolution\.batch_norm = true"):
        meanfield.solve(with_value(normalised, "training.average_rate", 2.0), "particles")


def test_problems_without_these_keys_are_what_they_were():
    assert not any(word in format_problem(DENSE) for word in ("momentum", "decay", "average", "phases"))
    with pytest.raises(meanfield.InputError, match=r"training\.learning_rate: changes in time"):
        meanfield.solve(with_values(DENSE, {"training.learning_rate": MOVING["training.learning_rate"]}), "operator")
