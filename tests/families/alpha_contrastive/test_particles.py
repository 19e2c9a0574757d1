"""SGD on pairs: gradients of every importance, the law of batches, and means that follow the exact flow."""

import numpy as np
import pytest

import meanfield
from meanfield.extend import replica_generator
from meanfield.families.alpha_contrastive.particles.samples import sampler_of
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.families.alpha_contrastive.scores import effective_rank
from tests.families.alpha_contrastive import networks
from tests.families.alpha_contrastive.problems import LAW_F, data, problem_from

PATTERNS = [[0, 1, -1, -1], [0, -1, 2, -1], [-1, 1, -1, 3], [2, -1, 2, -1]]
TOKENS = {"law": "tokens", "places": 4, "vocabulary": 5, "patterns": PATTERNS, "magnitudes": [1.0, 0.5, 2.0, 1.5, 0.7]}

KINDS = [
    {"kind": "quadratic"},
    {"kind": "infonce", "temperature": 0.4},
    {"kind": "infonce", "temperature": 0.4, "epsilon": 1.0},
    {"kind": "gaussian", "temperature": 0.4},
    {"kind": "triplet", "epsilon": 0.05},
    {"kind": "soft_triplet", "temperature": 0.5, "epsilon": 0.2},
    {"kind": "tuplet"},
    {"kind": "lifted", "epsilon": 0.3},
    {"kind": "modified_triplet", "temperature": 0.5},
]

NORMS = [
    {"active": True, "differentiate_mean": mean, "differentiate_variance": variance}
    for mean in (True, False)
    for variance in (True, False)
]

STEPS_AWAY = 4.9
"""Standard errors that a share of a fixed seed may be off: once in 1e6 seeds."""


def two_layers(activation="tanh", importance=None, **tables):
    model = {"activation": activation, "layers": 2, "outputs": 3} | tables.pop("model", {})
    usual = {
        "filters": {"count": 2, "start": {"law": "random", "seed": 3}},
        "training": {"learning_rate": 0.1, "batch_size": 7},
        "time": {"stop": 1.0, "outputs": 2},
        "particles": {"replicas": 2, "test_batches": 1},
    }
    law = {k: v for k, v in (TOKENS | tables.pop("law", {})).items() if v is not None}
    return problem_from(data(law=law, importance=importance or KINDS[0]) | {"model": model} | usual | tables)


def as_vectors(problem, inputs):
    """Inputs (N, places, coordinates) of tokens (N, places), or the same."""
    if inputs.dtype.kind == "f":
        return inputs
    return problem.data.lengths[inputs][..., None] * np.eye(problem.data.vocabulary)[inputs]


def check_gradient(problem):
    """Slope of the energy of a batch against the complex step in the definition, importances of the library fixed."""
    stepper = Replicas(problem, range(2))
    rng = np.random.default_rng(5)
    filters = stepper.filters + 0.3 * rng.standard_normal(stepper.filters.shape)
    top = stepper.top + 0.3 * rng.standard_normal(stepper.top.shape)
    weights = type(stepper.weights)(filters, top)
    N = problem.training.batch_size
    batches = [stepper._sampler.draw(r, N, stepper._with_source) for r in stepper.rngs]
    source = None if batches[0].source is None else np.stack([batch.source for batch in batches])
    activity = stepper._network.forward(weights, np.stack([batch.views for batch in batches]), source)
    found = stepper._network.slope(weights, activity)
    scale = problem.filters.count if problem.model.layers == 1 else 1.0
    for i, batch in enumerate(batches):
        views = [as_vectors(problem, view) for view in batch.views]
        directions = rng.standard_normal(filters[i].shape), rng.standard_normal(top[i].shape)
        for moved, by_weights in ((0, found.filters[i]), (1, found.top[i])):
            step = [1e-30j * d if k == moved else 0.0 * d for k, d in enumerate(directions)]
            at = [filters[i] + step[0], top[i] + step[1]]
            y = [networks.outputs(problem, *at, view, filters[i]) for view in views]
            value = networks.energy(activity.weighed.alpha[i], y[0], y[-1])
            assert activity.energy[i] == pytest.approx(value.real, rel=1e-10)  # rounding of differences
            wanted = scale * value.imag / 1e-30
            size = scale * max(abs(wanted), np.abs(by_weights).max() if by_weights.size else 0.0)
            assert np.sum(by_weights * directions[moved]) == pytest.approx(wanted, abs=1e-10 * size)  # rounding of sums
    return activity


@pytest.mark.parametrize("importance", KINDS, ids=lambda kind: kind["kind"])
@pytest.mark.parametrize("argument", ["views", "source"])
def test_gradients_of_every_importance(importance, argument):
    model = {"normalise_outputs": argument == "views"}
    problem = two_layers("tanh", importance | {"argument": argument}, model=model)
    alpha = check_gradient(problem).weighed.alpha
    assert (alpha > 0).any()  # else nothing is tested
    assert np.all(np.diagonal(alpha, axis1=1, axis2=2) == 0.0)


@pytest.mark.parametrize(
    "norm", NORMS, ids=lambda norm: f"{norm['differentiate_mean']}-{norm['differentiate_variance']}"
)
def test_gradients_through_batch_normalisation(norm):
    check_gradient(two_layers("quadratic", KINDS[2] | {"argument": "views"}, model={"batch_norm": norm}))


@pytest.mark.parametrize("more", [{}, {"diagonal": "include"}])
@pytest.mark.parametrize("activation", ["relu", "linear", "quadratic"])
def test_gradients_of_activations_with_and_without_augmentation(activation, more):
    check_gradient(two_layers(activation, KINDS[1] | more, law={"augmentation": bool(more)}))


@pytest.mark.parametrize("law", ["points", "mixture"])
def test_gradients_of_one_layer(law):
    mixture = {"law": "gaussian_mixture", "probabilities": [0.4, 0.6], "means": [[1, 0, 0], [0, 1, 0.5]]}
    given = LAW_F if law == "points" else mixture | {"covariance": [0.1, 0.2]}
    tables = {"filters": {"count": 4}, "training": {"batch_size": 6}, "particles": {"replicas": 2}}
    check_gradient(problem_from(data("tanh", given, {"kind": "gaussian", "temperature": 0.3}, **tables)))


def test_gradients_descend_the_loss_of_the_paper():
    """Cross entropy of similarities over T: its gradient is -2 times that of the energy, divided by T (section 5)."""
    temperature, step = 0.4, 1e-30
    problem = two_layers("tanh", KINDS[2] | {"argument": "views"}, model={"normalise_outputs": True})
    stepper = Replicas(problem, range(1))
    batch = stepper._sampler.draw(stepper.rngs[0], 7, False)
    activity = stepper._network.forward(stepper.weights, batch.views[None])
    found = stepper._network.slope(stepper.weights, activity)
    direction = np.random.default_rng(2).standard_normal(found.top.shape[1:])
    views = [as_vectors(problem, view) for view in batch.views]
    top = stepper.top[0] + 1j * step * direction
    z, other = (networks.outputs(problem, stepper.filters[0], top, view, None) for view in views)
    logits = z @ z.T / temperature
    logits[np.arange(7), np.arange(7)] = (z * other).sum(axis=1) / temperature
    loss = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diagonal(logits))
    wanted = -0.5 * temperature * loss.imag / step
    assert np.sum(found.top[0] * direction) == pytest.approx(wanted, rel=1e-11)  # rounding of sums
    assert activity.weighed.loss[0] == pytest.approx(temperature * loss.real, rel=1e-12)  # rounding of sums


def test_batches_have_the_law_of_tokens():
    problem = two_layers()
    N = 20_000
    batch = sampler_of(problem.data).draw(replica_generator(0, 0), N, True)
    patterns = np.array(PATTERNS)
    for tokens in (*batch.views, batch.source[0]):
        for k in range(4):
            share = np.array([(tokens[:, k] == a).mean() for a in range(5)])
            p = np.mean([np.eye(5)[g] if g >= 0 else np.full(5, 0.2) for g in patterns[:, k]], axis=0)
            assert np.all(np.abs(share - p) <= STEPS_AWAY * np.sqrt(p * (1 - p) / N))
    same = (batch.views[0] == batch.views[1]).mean()
    # every generator marks two of four places, where both views agree; elsewhere they do one time in 5
    expected = 1 / 2 + 1 / 2 / 5
    assert abs(same - expected) < STEPS_AWAY * np.sqrt(expected / (4 * N))


def test_drawn_generators_have_the_numbers_of_the_file():
    law = {
        "patterns": None,
        "generators": 40,
        "tokens_per_place": 2,
        "pattern_tokens": 3,
        "seed": 4,
        "magnitudes": None,
    }
    drawn = two_layers(law=law | {"non_uniformity": 4.0})
    rows = drawn.data.rows
    assert rows.shape == (40, 4)
    assert np.all((rows >= 0).sum(axis=1) == 3)
    assert np.all(drawn.data.marked.sum(axis=1) == 2)
    assert drawn.data.lengths.tolist() == [0.25, 0.25, 4.0, 4.0, 4.0]


def test_steps_are_those_of_momentum_decay_and_unit_weights():
    """Three steps by hand, with slopes of the library."""
    for held in (True, False):
        training = {"learning_rate": 0.1, "batch_size": 5, "momentum": 0.5, "weight_decay": 0.2}
        problem = two_layers(training=training, model={"unit_filters": held, "unit_top": held})
        stepper, other = Replicas(problem, range(1)), Replicas(problem, range(1))
        w, speed = stepper.filters.copy(), 0.0
        for k in range(3):
            slope = other._network.slope(other.weights, other._activity(other.rngs, other.weights)).filters - 0.2 * w
            if held:
                slope -= (slope * w).sum(axis=-1, keepdims=True) * w
            speed = 0.5 * speed + slope
            w = w + 0.1 * speed
            if held:
                w /= np.linalg.norm(w, axis=-1, keepdims=True)
            stepper.step(k)
            other.filters, other.top = stepper.filters, stepper.top
            np.testing.assert_allclose(stepper.filters, w, atol=1e-15)  # rounding


def test_a_replica_does_not_depend_on_those_beside_it():
    few, many = (
        meanfield.solve(two_layers("relu", KINDS[1], particles={"replicas": n, "test_batches": 2}), "particles")
        for n in (1, 40)
    )
    for name in ("weights", "top", "energy"):
        assert np.array_equal(few[name][0], many[name][0])


def test_scores_of_filters_that_are_known():
    """A filter along each marked token of a place, and one more along one that is not."""
    law = {"places": 2, "vocabulary": 4, "patterns": [[0, -1], [1, 2]], "magnitudes": [1.0] * 4}
    values = [[3.0, 0, 0, 0], [0, -2.0, 0, 0], [0, 0, 1.0, 0], [0.6, 0, 0.8, 0]]
    start = {"law": "points", "values": values, "top": [[1.0, 0, 0, 0]]}
    for activation, plus in (("relu", 0.5 * (0.5 * (1.0 + 0.0) + 1.0)), ("linear", 1.0)):
        problem = two_layers(activation, law=law, model={"outputs": 1}, filters={"count": 2, "start": start})
        row = Replicas(problem, range(1)).rows
        assert row["chi_plus"][0] == pytest.approx(plus, rel=1e-15)  # rounding
        assert row["chi_minus"][0] == pytest.approx(0.5 * (0.0 + 0.6 / 3), rel=1e-15)  # rounding


def test_effective_ranks_of_known_matrices():
    matrices = np.array(
        [np.diag([1.0, 1.0, 1.0]), np.diag([3.0, 0.0, 0.0]), np.diag([1.0, 2.0, 0.0]), np.zeros((3, 3))]
    )
    np.testing.assert_allclose(effective_rank(matrices), [3.0, 1.0, 25 / 17, 0.0], rtol=1e-15)  # rounding
