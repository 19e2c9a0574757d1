"""Losses of triples by enumeration and by sums over pairs, against their definition and the complex step."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from meanfield.errors import InputError
from meanfield.networks import triples
from meanfield.networks.contrast import Contrast
from meanfield.networks.triples import Triples, check_triples

CASES = [
    # loss, size of outputs, different outputs
    (Contrast("infonce", temperature=0.5), 1.0, 9),
    (Contrast("infonce", temperature=0.05), 0.5, 9),
    (Contrast("infonce", temperature=50.0), 1.0, 9),
    (Contrast("infonce", temperature=0.5, negatives=3), 1.0, 5),
    (Contrast("triplet", temperature=0.5, margin=0.3), 1.0, 9),
    (Contrast("triplet", temperature=0.2, margin=-2.0), 0.7, 9),
    (Contrast("triplet", temperature=0.2, margin=2.0), 0.7, 9),
    (Contrast("triplet", temperature=0.5, margin=0.74), 1.0, 9),
    (Contrast("triplet", temperature=0.5, margin=0.89), 1.0, 9),  # nearly a whole group of scales more
    (Contrast("infonce", temperature=0.005), 0.5, 9),  # distances span hundreds of temperatures
]


def population(size, count, seed=0):
    """Chances of samples and of views, and outputs of which the last is that of two views."""
    rng = np.random.default_rng(seed)
    y = size * rng.normal(size=(count, 2))
    p, P = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(count + 1), size=3)
    P[0, 2] = 0.0
    P[0] /= P[0].sum()
    return p, P, np.concatenate([y, y[-1:]])


def defined(contrast, p, P, y):
    """Loss from its definition: a sum over anchors, positives and all negatives."""
    r = 0.5 * ((y[:, None] - y) ** 2).sum(axis=-1) / contrast.temperature
    near, alone, H = np.einsum("z,za,zu->au", p, P, P), p @ P, contrast.each
    total = 0.0
    for negatives in product(range(len(y)), repeat=H):
        S = sum(np.exp(-r[:, k]) for k in negatives)[:, None]
        inner = np.log(1.0 + S * np.exp(r + contrast.shift))
        total = total + alone[list(negatives)].prod() * (near * inner).sum()
    return contrast.unit * total


@pytest.mark.parametrize("cost", [-1e30, 1e30], ids=["pairs", "enumeration"])
@pytest.mark.parametrize(("contrast", "size", "count"), CASES)
def test_values_and_slopes_are_those_of_the_definition(contrast, size, count, cost, monkeypatch):
    monkeypatch.setattr(triples, "COST_OF_SCALES", cost)  # decides which of both ways is taken
    p, P, y = population(size, count)
    made = Triples(contrast, p, P, y)
    assert (made._scales is not None) == (cost < 0.0)
    value, pulled = made.value_and_pull(np.column_stack([np.ones(len(y)), y]))
    assert value == pytest.approx(defined(contrast, p, P, y), rel=1e-12)  # rounding
    slope, expected = pulled[:, :1] * y - pulled[:, 1:], np.zeros_like(y)
    for place in np.ndindex(y.shape):
        moved = y.astype(complex)
        moved[place] += 1e-30j
        expected[place] = defined(contrast, p, P, moved).imag / 1e-30
    assert np.allclose(slope, expected, rtol=0, atol=1e-12 * np.abs(expected).max())  # rounding


@pytest.mark.parametrize(("temperature", "others"), [(0.5, 1), (0.5, 2), (0.01, 1), (0.005, 1)])
def test_nt_xent_is_the_mean_over_batches(temperature, others):
    """Of directions, of which one is 0: its cosine with all is 0, with itself too."""
    p, P, f = population(1.0, 4)
    f[1], near = 0.0, np.einsum("z,zc,zd->cd", p, P, P)

    def mean_of(f):
        """Sum over the views of all other samples of a batch, for each anchor and positive."""
        y, total = f / np.sqrt((f * f).sum(axis=1, keepdims=True) + ~f.any(axis=1, keepdims=True)), 0.0
        s = y @ y.T / temperature
        for pairs in product(np.ndindex(s.shape), repeat=others):
            exponents = [s[:, c, None] - s for pair in pairs for c in pair]
            loss = np.log(1.0 + np.exp(exponents).sum(axis=0))
            total = total + np.prod([near[pair] for pair in pairs]) * (near * loss).sum()
        return total

    y = np.divide(f, np.linalg.norm(f, axis=1, keepdims=True), where=f != 0.0, out=np.zeros_like(f))
    contrast = Contrast("nt_xent", temperature=temperature, negatives=others)
    value, pulled = Triples(contrast, p, P, y).value_and_pull(np.column_stack([np.ones(len(y)), y]))
    assert value == pytest.approx(mean_of(f), rel=1e-12)  # rounding
    slope = pulled[:, :1] * y - pulled[:, 1:]
    slope -= (slope * y).sum(axis=1, keepdims=True) * y  # what is along directions does not count
    step = np.random.default_rng(1).normal(size=y.shape) * f.any(axis=1, keepdims=True)
    derivative = mean_of(y + 1e-30j * step).imag / 1e-30
    assert np.sum(slope * step) == pytest.approx(derivative, rel=0, abs=1e-12 * np.abs(slope).max())  # rounding


def test_both_ways_agree_for_many_outputs(monkeypatch):
    contrast, (p, P, y) = Contrast("infonce", temperature=0.2), population(0.3, 90)
    columns = np.random.default_rng(1).normal(size=(len(y), 4))
    found = []
    for cost in (-1e30, 1e30):
        monkeypatch.setattr(triples, "COST_OF_SCALES", cost)
        monkeypatch.setattr(triples, "BLOCK", 1 << 11)  # several blocks of anchors
        found.append(Triples(contrast, p, P, y).value_and_pull(columns))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)  # rounding
    assert np.allclose(found[0][1], found[1][1], rtol=0, atol=1e-12 * np.abs(found[1][1]).max())  # rounding


def test_a_loss_that_is_nearly_zero_keeps_its_digits(monkeypatch):
    """Two samples far from each other, which are hardly ever mistaken."""
    p, P = np.array([1e-9, 1.0 - 1e-9]), np.eye(2)
    y = np.array([[0.0, 0.0], [6.0, 0.0]])
    contrast = Contrast("triplet", temperature=1.0, margin=-20.0)
    monkeypatch.setattr(triples, "COST_OF_SCALES", -1e30)
    value, pulled = Triples(contrast, p, P, y).value_and_pull(np.eye(2))
    r = 18.0
    expected = (1.0 - 2e-9) * np.log1p(np.exp(-20.0)) + 2e-9 * np.log1p(np.exp(-20.0 - r))
    assert value == pytest.approx(expected, rel=1e-12)  # rounding
    assert pulled[0, 1] == pytest.approx(-2e-9 * np.exp(-20.0 - r), rel=1e-7)  # 1 - p is 1 to 1e-9, twice


def test_hundreds_of_negatives_are_those_of_their_binomial_law():
    """Of two outputs, negatives have either: the number of them that have the second one is binomial."""
    contrast, p, P = Contrast("infonce", temperature=0.3, negatives=200), np.array([0.3, 0.7]), np.eye(2)
    y = np.array([[0.0], [0.9]])
    r = 0.5 * 0.9**2 / 0.3
    k = np.arange(201)
    chance, expected = binom.pmf(k, 200, p[1]), 0.0
    for weight, other in ((p[0], k), (p[1], 200 - k)):
        expected += weight * chance @ np.log(1.0 + 200 - other + other * np.exp(-r))
    assert Triples(contrast, p, P, y).value_and_pull(y)[0] == pytest.approx(expected, rel=1e-12)  # rounding


def test_what_takes_too_long_is_refused_with_its_size():
    with pytest.raises(InputError, match=r"30,000 different outputs, .* 2.7e[+]13 combinations .* 9e[+]08 pairs"):
        check_triples(Contrast("infonce", temperature=0.5), 30_000, 1.0)
    with pytest.raises(InputError, match=r"up to 1e[+]04 times loss.temperature.*raise loss.temperature"):
        check_triples(Contrast("infonce", temperature=1e-4), 5000, 1.0)
    with pytest.raises(InputError, match=r"training.batch_size = 128: 30,000 different outputs, .* have 9e[+]08 pairs"):
        check_triples(Contrast("nt_xent", temperature=0.5, negatives=127), 30_000, 1.0)
    check_triples(Contrast("infonce", temperature=0.5, negatives=1000), 10_000, 1.0)
