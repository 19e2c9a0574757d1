"""Losses over a finite population and over batches, against complex-step derivatives of their definitions."""

import numpy as np
import pytest

from meanfield.networks.contrast import Contrast, nt_xent
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import Views, evaluate

N0, N1, N2 = 4, 3, 2
POINTS, VIEWS = 3, 2
X0 = np.array([[np.sin(2 + 2 * i + 3 * k) for k in range(N0)] for i in range(POINTS)])
X = np.array(
    [[[X0[i, k] + 0.3 * np.cos(1 + i + 3 * a + 2 * k) for k in range(N0)] for a in range(VIEWS)] for i in range(POINTS)]
).reshape(-1, N0)
W1 = np.array([[0.5 * np.cos(1 + 2 * i + 3 * j) for j in range(N0)] for i in range(N1)])
W2 = np.array([[0.5 * np.sin(2 + 3 * i + 2 * j) for j in range(N1)] for i in range(N2)])
LAW = Views(np.full(POINTS, 1 / POINTS), np.repeat(np.eye(POINTS), VIEWS, axis=1)[None] / VIEWS)

REFERENCE = [
    # kind, parameters, normalised, loss, |grad W1|, |grad W2|: latent_tree.md, section 5, case A
    ("simple", {}, False, -0.417644097144, 0.905686075380, 1.032910474431),
    ("beta", {"beta": -0.5}, False, -0.419364673993, 0.908257747889, 1.037179421662),
    ("triplet", {"margin": 0.3}, False, 0.343359949002, 0.197245627375, 0.224879061413),
    ("infonce", {}, False, 0.448814361054, 0.241277361616, 0.275671332860),
    ("infonce", {"negatives": 2}, False, 0.766852887707, 0.342194079270, 0.391318529380),
    ("exact", {}, False, -0.115786797090, 0.250239945831, 0.286354958868),
    ("simple", {}, True, -0.887089231465, 0.002516805880, 0.101184729860),
    ("infonce", {}, True, 0.393212799242, 0.000073200560, 0.003663184658),
]
DIGITS = 6e-13  # half a unit of the last printed digit, and rounding


def layers(x):
    hidden = np.maximum(x @ W1.T, 0.0)
    return hidden, hidden @ W2.T


def norms(hidden, by_last):
    by_hidden = (by_last @ W2) * (hidden > 0.0)
    return np.linalg.norm(by_hidden.T @ X), np.linalg.norm(by_last.T @ hidden)


@pytest.mark.parametrize(("kind", "parameters", "normalised", "loss", "first", "second"), REFERENCE)
def test_losses_and_gradients_have_the_reference_values(kind, parameters, normalised, loss, first, second):
    contrast, output = Contrast(kind, temperature=0.5, **parameters), Normalisation(normalised)
    hidden, last = layers(X)
    found = evaluate(contrast, LAW, output.value(last)[None], output.value(layers(X0)[1]))
    gradient = norms(hidden, output.back(last, found.slope[0]))
    assert np.allclose([found.value, *gradient], [loss, first, second], rtol=0, atol=DIGITS)


def test_nt_xent_has_the_reference_value():
    hidden, last = layers(X)
    value, slope = nt_xent(last.reshape(POINTS, VIEWS, N2), 0.5)
    expected = [0.764317797454, 0.000352438238, 0.014125050493]
    assert np.allclose([value, *norms(hidden, slope.reshape(-1, N2))], expected, rtol=0, atol=DIGITS)


def test_batch_ratio_is_that_of_mean_squares():
    rng = np.random.default_rng(1)
    views, mean = rng.normal(size=(6, 3)), LAW.P[0] @ rng.normal(size=(6, 3))
    del mean
    P, p = LAW.whole, LAW.p
    squares = ((views[:, None] - views[None]) ** 2).mean(axis=-1)
    near, far = np.einsum("z,zc,zd,cd", p, P, P, squares), (p @ P) @ squares @ (p @ P)
    value = -np.exp(-near / 0.7) / (np.exp(-near / 0.7) + np.exp(-far / 0.7))
    found = evaluate(Contrast("batch_ratio", temperature=0.7), LAW, views[None])
    assert found.value == pytest.approx(value, rel=1e-13)  # rounding
    step = 1e-6 * rng.normal(size=views.shape)
    up, down = (
        evaluate(Contrast("batch_ratio", temperature=0.7), LAW, (views + s * step)[None]).value for s in (1, -1)
    )
    assert (up - down) / 2 == pytest.approx(float((found.slope[0] * step).sum()), rel=1e-6)  # step^2, and rounding/step


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_normalisation_follows_its_definition(epsilon):
    output, h = Normalisation(True, epsilon), 1e-30
    f, slope, step = np.random.default_rng(2).normal(size=(3, 5, 4))
    moved = f + 1j * h * step
    y = moved / (np.sqrt((moved * moved).sum(axis=-1, keepdims=True)) + epsilon)
    assert np.allclose(output.value(f), y.real, rtol=1e-14)  # rounding
    assert np.sum(output.back(f, slope) * step) == pytest.approx(np.sum(slope * y.imag) / h, rel=1e-13)  # rounding


def test_an_output_of_zero_stays_zero():
    output, zero = Normalisation(True), np.zeros((1, 3))
    assert not output.value(zero).any()
    assert not output.back(zero, np.ones((1, 3))).any()


def test_triplets_and_infonce_do_not_overflow():
    for kind in ("triplet", "infonce"):
        found = Contrast(kind, temperature=1e-6).of_triples(np.array([1e3, 0.0]), np.array([[0.0], [1e3]]))
        assert np.isfinite(found.value).all()
        assert found.value[1] == 0.0
        assert found.negative[1, 0] == 0.0


def test_slopes_of_cosines_with_beta_are_difference_quotients():
    """Beta r+/tau is added to the loss of a batch, r+ = 1 - cos, and the sum divided by 1 + beta."""
    rng, tau, beta = np.random.default_rng(0), 0.4, -0.3
    views = rng.normal(size=(4, 2, 3))
    value, slope = nt_xent(views, tau, beta)
    unit = views / np.linalg.norm(views, axis=-1, keepdims=True)
    near = np.mean(1.0 - (unit[:, 0] * unit[:, 1]).sum(axis=-1))
    assert value == pytest.approx((nt_xent(views, tau)[0] + beta * near / tau) / (1.0 + beta), rel=1e-12)  # rounding
    step = rng.normal(size=views.shape)
    ends = [nt_xent(views + t * step, tau, beta)[0] for t in (1e-5, -1e-5)]
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx((slope * step).sum(), rel=1e-7)  # squares of the step
