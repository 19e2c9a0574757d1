"""Importances, contrastive covariances and gradients of pairwise losses (alpha_contrastive.md, section 1)."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError

F = np.array([(1.0, 0.0), (0.5, 1.0), (-1.0, 0.5), (0.0, -1.0)])
VIEW = np.array([(0.8, 0.1), (0.6, 0.7), (-0.9, 0.8), (0.3, -1.0)])

REFERENCES = [
    ("quadratic", {}, 1.0, 1.061875, -0.01375),
    ("quadratic", {"diagonal": "include"}, 1.0, 1.05125, -0.013125),
    ("infonce", {}, 0.656963913584, 0.256196035780, 0.006189117899),
    ("infonce", {"epsilon": 1.0}, 0.206514689947, 0.053104475323, 0.000483336862),
    ("gaussian", {}, 0.286504796860, 0.064749870239, 0.000222645250),
    ("soft_triplet", {"epsilon": 0.3}, 0.251145428322, 0.066246609351, 0.000694540355),
    ("tuplet", {}, 0.267914200975, 0.129791862228, 0.000860418195),
    ("lifted", {"epsilon": 0.3}, 0.363608967130, 0.074081048986, 0.001850963033),
    ("modified_triplet", {}, 0.355788881294, 0.107196590605, 0.003045489232),
    ("triplet", {"epsilon": 1.0}, 1.0, 0.1940625, 0.0334375),
]
"""Importance of the first two samples, tr C and C_01 on the theory page (R1), to all its digits."""


@pytest.mark.parametrize(("kind", "more", "alpha", "trace", "entry"), REFERENCES)
def test_references(kind, more, alpha, trace, entry):
    found = meanfield.alpha_contrastive.contrastive_covariance(F, VIEW, kind, temperature=0.5, **more)
    values = found.importance[0, 1], np.trace(found.matrix), found.matrix[0, 1], 2.0 * found.energy
    np.testing.assert_allclose(values, (alpha, trace, entry, trace), rtol=0.0, atol=5.1e-13)  # digits of the page


OWN = meanfield.alpha_contrastive.PairLoss(
    np.sqrt, lambda x: np.exp(0.7 * x), lambda x: 0.5 / np.sqrt(x), lambda x: 0.7 * np.exp(0.7 * x)
)
LOSSES = [(kind, more) for kind, more, *_ in REFERENCES if kind != "gaussian"] + [(OWN, {})]


@pytest.mark.parametrize(("kind", "more"), LOSSES)
def test_gradients_of_losses_are_those_of_the_energy_with_fixed_importance(kind, more):
    """grad L = -2 N^2 grad E for outputs f = B x of random inputs, by differences of fourth order in B."""
    rng = np.random.default_rng(5)
    x, view, B, step = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), rng.standard_normal((3, 2)), 2e-4

    def found(B):
        return meanfield.alpha_contrastive.contrastive_covariance(x @ B, view @ B, kind, temperature=0.5, **more)

    differences = np.empty_like(B)
    for place in np.ndindex(B.shape):
        change = np.zeros_like(B)
        change[place] = step
        one, two = (found(B + k * change).loss - found(B - k * change).loss for k in (1, 2))
        differences[place] = (8.0 * one - two) / (12.0 * step)
    # with alpha fixed, E is half the trace of B' C[x, x] B, whose gradient is C[x, f]
    alpha = found(B).importance
    gradient = np.zeros_like(B)
    for i, j in np.ndindex(alpha.shape):
        gradient += alpha[i, j] * np.outer(x[i] - x[j], (x[i] - x[j]) @ B)
        gradient -= alpha[i, j] * np.outer(x[i] - view[i], (x[i] - view[i]) @ B)
    gradient /= 2.0 * len(x) ** 2
    again = meanfield.alpha_contrastive.contrastive_covariance(
        x @ B, view @ B, kind, temperature=0.5, first=(x, view), second=(x @ B, view @ B), **more
    )
    np.testing.assert_allclose(again.matrix, gradient, atol=1e-13)  # rounding of sums of size 1
    allowed = 1e-9 * np.abs(differences).max()  # step 2e-4: 5e-17 of fifth derivatives of 1e4, rounding 1e-16/2e-4
    np.testing.assert_allclose(-2.0 * len(x) ** 2 * gradient, differences, rtol=0.0, atol=allowed)  # of differences


def test_no_temperature_overflows():
    found = meanfield.alpha_contrastive.contrastive_covariance(100.0 * F, VIEW, "infonce", temperature=1e-3)
    np.testing.assert_allclose(found.importance.sum(axis=1), 1.0, rtol=1e-14)  # rounding


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ((F[0], VIEW), {}, r"outputs has shape \(2,\); give \(N, d\)"),
        ((F, VIEW[:3]), {}, r"outputs_of_view has shape \(3, 2\), not \(4, 2\)"),
        ((F[:1], VIEW[:1]), {}, r"outputs has 1 sample\(s\), and a pair needs 2"),
        ((F * np.nan, VIEW), {}, "outputs holds nan; give finite numbers"),
        ((F, VIEW, "info"), {}, "importance = 'info'"),
        ((F, VIEW, "infonce"), {"temperature": 0.0}, "temperature = 0.0: give a number greater than 0"),
        ((F, VIEW, "infonce"), {"epsilon": -1.0}, "epsilon = -1.0: give a finite number, for infonce 0 or more"),
        ((F, VIEW), {"diagonal": "both"}, "diagonal = 'both': it is 'exclude' or 'include'"),
        ((F, VIEW), {"first": (F[:3], VIEW)}, "first has shape"),
        ((F, VIEW), {"source": F}, "source is for importance = 'gaussian'"),
    ],
)
def test_what_is_no_batch(arguments, more, words):
    with pytest.raises(InputError, match=words):
        meanfield.alpha_contrastive.contrastive_covariance(*arguments, **more)
