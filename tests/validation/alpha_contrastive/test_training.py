"""SGD of the studies: its gradients against the library and against differences, its data, and its scores."""

import numpy as np
import pytest

from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.particles.simulation import Replicas
from meanfield.families.alpha_contrastive.scores import effective_rank as library_rank
from meanfield.families.alpha_contrastive.scores import matches as library_matches
from meanfield.problems.file import problem_from
from validation.alpha_contrastive.figures import image_sgd, theorem_4
from validation.alpha_contrastive.figures.one_layer import FIVE, gaussian_objective, push
from validation.alpha_contrastive.figures.two_layers import (
    ACTIVATIONS,
    NORMALISATIONS,
    PLACES,
    TEMPERATURE,
    Setting,
    draw_generators,
    draw_weights,
    effective_rank,
    matches,
)

OF_THE_LIBRARY = "relu", "linear", "quadratic", "sigmoid"
"""leaky_relu of the studies has another slope."""


def in_the_library(setting, generators):
    """The same network in a problem file, whose energy is -T/2 times the loss up to a constant."""
    norm = setting.normalisation
    batch_norm = {
        "active": norm != "none",
        "differentiate_mean": norm in ("mean", "both"),
        "differentiate_variance": norm in ("variance", "both"),
    }
    infonce = {"kind": "infonce", "temperature": TEMPERATURE, "epsilon": 1.0}
    quadratic = {"kind": "quadratic", "diagonal": "include"}  # as the public code has it
    return problem_from(
        {
            "family": "alpha_contrastive",
            "model": {
                "activation": setting.activation,
                "layers": 2,
                "normalise_outputs": True,
                "unit_filters": False,
                "unit_top": False,
                "batch_norm": batch_norm,
            },
            "importance": (infonce if setting.loss == "infonce" else quadratic) | {"argument": "views"},
            "data": {
                "law": "tokens",
                "places": PLACES,
                "vocabulary": setting.tokens,
                "patterns": generators.tolist(),
                "non_uniformity": setting.zeta,
            },
            "filters": {"count": setting.filters, "start": {"law": "random", "seed": 0}},
            "training": {"batch_size": 32},
            "particles": {"replicas": 1},
        }
    )


@pytest.mark.slow  # 12 s of compilation in double precision, which nothing else uses
@pytest.mark.parametrize("loss", ["infonce", "quadratic"])
def test_gradients_are_those_of_the_library(loss):
    from validation.alpha_contrastive.figures.token_sgd import loss_and_gradient

    for activation in OF_THE_LIBRARY:
        for normalisation in NORMALISATIONS:
            setting = Setting(
                patterns=2, beta=2, activation=activation, normalisation=normalisation, loss=loss, zeta=2.0
            )
            rng = np.random.default_rng(1)
            _, generators = draw_generators(setting, rng)
            problem = in_the_library(setting, generators)
            stepper = Replicas(problem, range(1))
            batch = stepper._sampler.draw(stepper.rngs[0], 32, False)
            w, V = draw_weights(setting, rng)
            weights = type(stepper.weights)(w.transpose(0, 2, 1)[None], V.reshape(-1, V.shape[-1]).T[None])
            slope = stepper._network.slope(weights, stepper._network.forward(weights, batch.views[None]))
            _, to_w, to_V = loss_and_gradient(
                w,
                V,
                np.asarray(batch.views, dtype=np.int64),
                setting.lengths,
                ACTIVATIONS.index(activation),
                NORMALISATIONS.index(normalisation),
                loss == "quadratic",
            )
            factor = -0.5 * (TEMPERATURE if loss == "infonce" else 1.0)
            size = np.abs(slope.filters).max(), np.abs(slope.top).max()
            found, top = factor * to_w.transpose(0, 2, 1), factor * to_V.reshape(-1, V.shape[-1]).T
            # lengths of outputs, 0.05 and more, have 1e-12 added before they divide
            np.testing.assert_allclose(found, slope.filters[0], rtol=0.0, atol=5e-11 * size[0], err_msg=normalisation)
            np.testing.assert_allclose(top, slope.top[0], rtol=0.0, atol=5e-11 * size[1], err_msg=normalisation)


def test_scores_are_those_of_the_library():
    setting = Setting(patterns=3, beta=2)
    rng = np.random.default_rng(0)
    _, generators = draw_generators(setting, rng)
    w, _ = draw_weights(setting, rng)
    for activation in ("relu", "linear"):
        problem = in_the_library(Setting(patterns=3, beta=2, activation=activation), generators)
        expected = library_matches(w.transpose(0, 2, 1), problem.data, Filter(problem.model.activation_functions))
        # the public code adds a thousandth of the longest filter to each length
        found = matches(w, generators, activation == "relu")
        np.testing.assert_allclose(found, [expected["chi_plus"], expected["chi_minus"]], rtol=2e-3)
    assert effective_rank(w[0]) == pytest.approx(float(library_rank(w[0])), rel=1e-12)  # rounding


def test_generators_are_those_of_the_paper():
    setting = Setting(patterns=3)
    allowed, generators = draw_generators(setting, np.random.default_rng(0))
    assert np.all((generators >= 0).sum(axis=1) == 5)
    for k in range(PLACES):
        assert set(generators[:, k]) - {-1} <= set(allowed[k])
    assert Setting(zeta=10.0).lengths.tolist() == [0.1] * 10 + [10.0] * 10


def test_gradients_of_images():
    rng, step = np.random.default_rng(0), 1e-6
    x, w, V = rng.standard_normal((2, 5, 4, 9)), rng.standard_normal((4, 9, 3)), rng.standard_normal((12, 50))
    _, to_w, to_V = image_sgd.gradient(x, w, V)
    turn = rng.standard_normal(V.shape)
    slope = (image_sgd.gradient(x, w, V + step * turn)[0] - image_sgd.gradient(x, w, V - step * turn)[0]) / (2 * step)
    assert np.sum(turn * to_V) == pytest.approx(slope, rel=1e-7)  # rounding 1e-16 over the step
    # along its length a filter has no effect, but by the variance, through which no gradient passes
    scaled = np.abs(np.sum(w * to_w, axis=1)).max()
    assert scaled > 1e-6
    assert image_sgd.gradient(x, 1.3 * w, V)[0] == pytest.approx(image_sgd.gradient(x, w, V)[0], rel=1e-4)  # EPSILON


def test_quarters_and_crops_of_images():
    images = np.arange(64.0).reshape(1, 8, 8)
    parts = image_sgd.quarters(images)[0]
    assert parts[:, 0].tolist() == [0.0, 4.0, 32.0, 36.0]
    crops = image_sgd.random_crops(np.repeat(images, 50, axis=0), np.random.default_rng(0))
    assert crops.min() >= 0.0
    assert crops.max() <= 63.0
    # of an image that rises evenly, neighbouring pixels of a crop differ by its sides over those of the image
    sides = np.diff(crops, axis=1)[:, 3, 3] / 8.0, np.diff(crops, axis=2)[:, 3, 3]
    area = sides[0] * sides[1]
    assert np.all((area > 0.5 - 1e-9) & (area < 1.0 + 1e-9))


def test_push_ascends_the_objective_of_networks():
    rng, step, tau = np.random.default_rng(0), 1e-6, 0.3
    theta = rng.uniform(-np.pi, np.pi, (1, 4))
    found = push(FIVE, theta, tau, FIVE.probabilities[None])[0]
    for k in range(4):
        move = step * (np.arange(4) == k)
        rise = gaussian_objective(FIVE, theta + move, tau) - gaussian_objective(FIVE, theta - move, tau)
        # each filter has the weight 1/4 in the network; rounding 1e-17 over the step
        assert 4.0 * rise[0] / (2.0 * step) == pytest.approx(found[k], abs=1e-9)


@pytest.mark.parametrize("augmented", theorem_4.AUGMENTED)
def test_exact_flow_of_two_layers(augmented):
    """Its covariance against all strings of tokens of all generators, and its gradient against differences."""
    rng, step = np.random.default_rng(0), 1e-6
    generators = rng.integers(-1, 3, (4, 3))
    pi, w, s = theorem_4.shares(generators, 3), rng.standard_normal((3, 3, 2)), rng.standard_normal((3, 2))

    def covariance(w):
        return theorem_4.covariance(pi, np.maximum(w, 0.0), augmented)

    outputs, chance, means = [], [], []
    for row in pi:
        each = [
            np.concatenate([np.maximum(w[k, a], 0.0) for k, a in enumerate(string)]) for string in np.ndindex(3, 3, 3)
        ]
        p = [np.prod([row[k, a] for k, a in enumerate(string)]) for string in np.ndindex(3, 3, 3)]
        outputs += each
        chance += [x / len(pi) for x in p]
        means.append(np.array(p) @ np.array(each))
    expected = (
        np.cov(means, rowvar=False, bias=True) if augmented else np.cov(np.transpose(outputs), aweights=chance, ddof=0)
    )
    np.testing.assert_allclose(covariance(w), expected, rtol=0.0, atol=1e-14)  # rounding
    found = theorem_4.gradient(pi, np.maximum(w, 0.0), 1.0 * (w > 0.0), s, augmented)
    for place in np.ndindex(w.shape):
        move = np.zeros_like(w)
        move[place] = step
        rise = 0.5 * s.ravel() @ (covariance(w + move) - covariance(w - move)) @ s.ravel()
        assert found[place] == pytest.approx(rise / (2.0 * step), abs=1e-9)  # rounding 1e-16 over the step
