"""Velocities that last, `training.momentum_rate`: SGD by hand, limits against SciPy, and what knows weights alone."""

import numpy as np
import pytest

import meanfield
from meanfield.ensembles.averages import clocked
from meanfield.families.alpha_contrastive.population.solver import Flow
from meanfield.families.hidden_manifold.particles.steppers import prepare_steppers
from meanfield.families.latent_tree.particles import Replicas
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.problems.in_time import InTime
from tests.families.alpha_contrastive.problems import LAW_F
from tests.families.alpha_contrastive.problems import problem as alpha
from tests.families.hidden_manifold.problems import problem as manifold
from tests.families.hidden_manifold.test_moving_averages import LINEAR, PHASES, STEPS
from tests.families.latent_tree.problems import case_b
from tests.references_in_time import inside, integrated, stopped, verdicts

B, A = 1.5, 0.8
MEANS = {"inputs.nonlinearity": "step", "inputs.centered": False}
NOISY = {"learning_rate": 0.3, "output_learning_rate": 0.2, "batch_size": 2, "label_noise": 0.1, "weight_decay": 0.2}
STUDENT = manifold(
    training=NOISY | {"momentum_rate": B}, time={"stop": 2.0, "outputs": 5}, order_parameters={"tolerance": 1e-6},
    particles={"dimension": 40, "replicas": 2, "seed": 3},
)  # fmt: skip
FILTERS = alpha(
    "tanh", LAW_F, filters={"count": 4}, time={"stop": 2.0, "outputs": 3}, population={"finite_batch": True},
    training={"momentum_rate": B, "batch_size": 64, "learning_rate": 0.01, "weight_decay": 0.2},
    particles={"replicas": 16, "common_start": True, "seed": 1},
)  # fmt: skip
TREE = case_b(
    normalised=True, stop=2.0, loss={"kind": "infonce", "temperature": 0.5}, particles={"replicas": 16, "seed": 1},
    training={"momentum_rate": B, "batch_size": 256, "learning_rate": 0.01},
)  # fmt: skip


def with_values(problem, **values):
    return meanfield.with_values(problem, {f"training.{key}": value for key, value in values.items()})


@pytest.mark.parametrize("changes", [{}, {"training.learning_rate": STEPS["learning_rate"], "phases": PHASES}])
def test_a_linear_network_is_that_of_scipy(changes):
    """Moments of S, of its velocity and of its average along eigenvectors, written down anew."""
    training = NOISY | {"momentum_rate": B, "average_rate": A}
    own = {"training": training, "time": {"stop": 2.0, "outputs": 5}, "order_parameters": {"tolerance": 1e-9}}
    given = meanfield.with_values(manifold(**LINEAR, **own), changes)
    in_time = InTime(given)
    rho, share, delta, vt = np.array([0.4, 1.6]), np.array([0.5, 0.5]), 0.5, 1.3
    found = meanfield.solve_order_parameters(given)

    def velocity(t, y, low, high):
        eta, eta_v, m, noise, decay = in_time(inside(t, low, high)).training.numbers
        (r, r_p, r_a, s, s_p, s_pp, s_a, s_pa, s_aa), (v, v_p, v_a) = y[:18].reshape(9, 2), y[18:]
        square = share @ (v**2 * s - 2 * v * vt * r + vt**2) + noise
        speed, spread = eta / delta * rho * v, eta**2 / m * rho**2 / delta * v**2 * square

        def pull(of_student, of_teacher):
            return -speed * (v * of_student - vt * of_teacher) - eta * decay * of_student

        pull_v = -eta_v * (v * share @ s - vt * share @ r + decay * v)
        moved = (
            B * r_p, pull(r, 1.0) - B * r_p, A * (r - r_a),
            2 * B * s_p, B * s_pp + pull(s, r) - B * s_p, 2 * pull(s_p, r_p) - 2 * B * s_pp + spread,
            B * s_pa + A * (s - s_a), pull(s_a, r_a) - B * s_pa + A * (s_p - s_pa), 2 * A * (s_a - s_aa),
        )  # fmt: skip
        return np.append(np.concatenate(moved), [B * v_p, pull_v - B * v_p, A * (v - v_a)])

    r, s = found["r"].values[0, :, 0, 0], found["sigma"].values[0, :, 0, 0]
    start = np.concatenate([r, 0 * r, r, s, 0 * s, 0 * s, s, 0 * s, s, [0.8, 0.0, 0.8]])
    y = integrated(velocity, start, given.time.outputs_at, in_time.corners)
    for name, known in (
        ("R", y[:, 0:2] @ share), ("Q", y[:, 6:8] @ share), ("v", y[:, 18]),
        ("R_average", y[:, 4:6] @ share), ("Q_average", y[:, 16:18] @ share), ("v_average", y[:, 20]),
    ):  # fmt: skip
        assert found[name].values.ravel() == pytest.approx(known, abs=1e-8), name  # ten times the tolerance
    overlap = found["overlap_average"].values[0].item()
    assert overlap == pytest.approx(found["Omega"].values[0].item(), abs=1e-14)  # rounding


def test_filters_and_trees_are_those_of_scipy():
    """Second-order equations with the forces of the library, and the sphere of filters by hand."""
    flow, stretch = Flow(with_values(FILTERS, momentum_rate=None)), InTime(FILTERS).stretches(2.0)[0]
    still = InTime(with_values(FILTERS, momentum_rate=None)).stretches(2.0)[0]

    def of_filters(t, y, *_):
        w, p = y.reshape(2, -1, 2)
        along = p - (p * w).sum(axis=1, keepdims=True) * w
        return np.concatenate([along.ravel(), B * (flow.rate(still, t, w.ravel()) - p.ravel())])

    known = integrated(of_filters, np.append(flow.start, 0 * flow.start), FILTERS.time.outputs_at, [])
    found = meanfield.solve(FILTERS, "population")["weights"].values
    assert found.reshape(3, -1) == pytest.approx(known[:, :8], abs=1e-7)  # steps of 1e-9 each, some tens of them
    assert len(Flow(FILTERS).rate(stretch, 0.0, Flow(FILTERS).start)) == 16
    tables, start = tables_of(TREE), TREE.initial_weights

    def of_tree(t, y, *_):
        w, p = y.reshape(2, -1)
        return np.append(p, B * (-tables.loss_and_gradient(start.like(w), contrast=TREE.contrast)[1].vector - p))

    first = np.append(start.vector, 0 * start.vector)
    known = integrated(of_tree, first, TREE.time.outputs_at, [], {"rtol": 1e-7, "atol": 1e-9})
    found = meanfield.solve(TREE, "population")["weights"].values
    assert found == pytest.approx(known[:, : found.shape[1]], abs=1e-6)  # steps of SciPy across kinks


@pytest.mark.parametrize(  # velocities of students are those of SciPy in the first test
    "given", [pytest.param(STUDENT, marks=pytest.mark.slow), FILTERS], ids=["student", "filters"]
)
def test_a_velocity_that_is_soon_forgotten_changes_little(given):
    method = "order_parameters" if given is STUDENT else "population"
    name = "Q" if given is STUDENT else "weights"
    fast, none = (meanfield.solve(with_values(given, momentum_rate=b), method)[name].values for b in (40.0, None))
    away = np.abs(fast - none).max()
    assert 0.0 < away < 3.0 / 40.0  # weights lag by the speed, of order 1, over b


def test_steps_are_those_of_momentum_by_hand():
    """Of students plain steps with the momentum 1 - b/N and rates b/N as large, of trees the velocity written out."""
    N = STUDENT.particles.dimension
    rates = {key: B / N * NOISY[key] for key in ("learning_rate", "output_learning_rate")}
    other = with_values(STUDENT, momentum_rate=None, momentum=1.0 - B / N, **rates)
    ours, theirs = (prepare_steppers(each, "plain")(range(1)) for each in (STUDENT, other))
    for stepper in (ours, theirs):
        stepper.advance(0, 30)
    assert ours.state["_W"] == pytest.approx(theirs.state["_W"], abs=1e-14)  # rounding
    stepper, other = Replicas(TREE, range(1)), Replicas(with_values(TREE, momentum_rate=None), range(1))
    w, p, eta = stepper.w.copy(), 0.0, TREE.training.learning_rate
    for k in range(3):
        other.w = w
        other.step(k)
        p = (1.0 - B * eta) * p + B * eta * (other.w - w) / eta
        w = w + eta * p
        stepper.step(k)
        assert stepper.w == pytest.approx(w, abs=1e-14)  # rounding
    whole = Replicas(TREE, range(2))
    whole.advance(0, 5)
    assert np.array_equal(stopped(lambda: clocked(TREE, Replicas)(range(2)), 2, 5).state["w"], whole.state["w"])


@pytest.mark.slow
@pytest.mark.parametrize("given", [STUDENT, FILTERS, TREE], ids=["student", "filters", "tree"])
def test_sgd_agrees_with_the_limit_and_with_no_rate_a_third_away(given):
    """Verdicts are wrong once in 20 times by chance; the seeds are fixed."""
    method = "order_parameters" if given is STUDENT else "population"
    if given is STUDENT:
        given = meanfield.with_values(given, {"particles.dimension": 500, "particles.replicas": 16})
    found = verdicts(given, method, "training.momentum_rate", [0.67 * B, 1.33 * B])
    assert found == ["AGREES", "DIFFERS", "DIFFERS"]


@pytest.mark.parametrize(
    ("given", "method", "changes", "message"),
    [
        (STUDENT, "fixed_points", {}, r"^training\.momentum_rate = 1\.5: .*order parameters, density and SGD follow"),
        (STUDENT, "particles", {"training.momentum_rate": 41.0}, r"= 41 with 40 steps .*lower the rate to 40 or less"),
        (STUDENT, "order_parameters", MEANS, r"^training\.momentum_rate = 1\.5: the means of inputs"),
        (STUDENT, "particles", {"particles.method": "chain"}, r"'chain' with training\.momentum_rate = 1\.5"),
        (STUDENT, "assumptions", {}, r"^training\.momentum_rate = 1\.5: .*order parameters, density and SGD follow"),
        (FILTERS, "critical_points", {}, r"^training\.momentum_rate = 1\.5: .*only population and SGD follow"),
        (TREE, "stationary", {}, r"^training\.momentum_rate = 1\.5: .*only population and SGD follow"),
        (TREE, "operator", {}, r"^training\.momentum_rate = 1\.5: .*only population and SGD follow"),
        (FILTERS, "density", {}, r"^training\.momentum_rate = 1\.5: .*only population and SGD follow"),
        (FILTERS, "population", {"model.activation": "relu"}, r"momentum_rate = 1\.5: .*without kinks follow"),
        (FILTERS, "particles", {"training.momentum_rate": 150.0}, r"= 150 with 100 steps .*lower training\.learning"),
        (TREE, "particles", {"training.momentum": 0.9}, r"momentum_rate = 1\.5 with momentum = 0\.9: .*remove either"),
    ],
)
def test_what_knows_no_velocity_refuses_it(given, method, changes, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.solve(meanfield.with_values(given, changes), method)


def test_trees_with_a_fixed_momentum_learn_faster():
    faster = meanfield.with_value(with_values(TREE, momentum_rate=None, momentum=0.5), "time.stop", 0.3)
    slower = meanfield.with_value(with_values(TREE, momentum_rate=None), "time.stop", 0.6)
    found, known = (meanfield.solve(each, "population")["weights"].values for each in (faster, slower))
    assert found == pytest.approx(known, abs=1e-7)  # steps of 1e-9 each, some tens of them
    assert "momentum mu = 0.5, in the limit a flow of speed 1/(1 - mu)" in " ".join(
        str(meanfield.explain(faster)).split()
    )
