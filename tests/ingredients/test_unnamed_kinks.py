"""Kinks that a prior does not name: found where there are some, and nowhere in steep, rough or rounded functions."""

import math

import pytest

from meanfield import Prior
from meanfield.ingredients.priors import PRIORS, make_prior
from meanfield.ingredients.unnamed_kinks import INTERVAL_ENDS, kinks_to_name, unnamed_kinks

END = float(INTERVAL_ENDS[600])


def places(force, kinks=()):
    return [[kink.place for kink in found] for found in unnamed_kinks(Prior(force, kinks=kinks))]


@pytest.mark.parametrize(
    ("force", "jumps", "corners"),
    [
        (lambda w: 1.0 if w > 0 else -1.0 if w < 0 else 0.0, [0.0], []),
        (lambda w: 1e-30 if w > 0.3 else -1e-30, [0.3], []),
        (lambda w: w * w * w + (0.1 if w > 1.005 else 0.0), [1.005], []),  # less than w^3 changes beside it
        (lambda w: math.floor(w), [-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], []),
        (lambda w: min(max(w, -0.7), 0.7), [], [-0.7, 0.7]),
        (lambda w: abs(w) if w < 2.0 else w - 5.0, [2.0], [0.0]),
        (lambda w: math.sqrt(abs(w)), [], [0.0]),
    ],
)
def test_kinks_are_found(force, jumps, corners):
    found = places(force)
    assert found[0] == pytest.approx(jumps, abs=1e-12)  # length of the last intervals
    assert found[1] == pytest.approx(corners, abs=1.2e-8)  # the same, and the step of the slopes


@pytest.mark.parametrize(
    "force",
    [
        lambda w: math.tanh(1000.0 * w),
        lambda w: math.tanh(1e6 * (w - 0.1)),
        lambda w: math.tanh(1e5 * (w - END)),  # more than the least change remains in the last interval
        lambda w: math.tanh(1e7 * (w - END)),
        lambda w: math.erf(1e4 * w) * (1.0 + w * w),
        lambda w: math.sin(1000.0 * w),
        lambda w: math.exp(-1e4 * w * w),
        lambda w: 1.0 / (1.0 + 1e6 * w * w),
        lambda w: math.sinh(3.0 * w),
        lambda w: (w - 3.0) ** 9,
        lambda w: math.cos(w) - 1.0,  # rounding at w = 0
        lambda w: 1.0 + 1e-15 * math.tanh(w),  # nothing but rounding
        lambda w: 0.0 * w,
    ],
)
def test_smooth_functions_have_none(force):
    assert places(force) == [[], []]


@pytest.mark.parametrize("name", PRIORS)
def test_named_kinks_are_all_that_there_are(name):
    """With their kinks the priors of the library have no others, and without they are found again."""
    prior = make_prior(name)
    assert unnamed_kinks(prior) == ([], [])
    jumps, corners = places(prior.unit_force)
    assert sorted(jumps + corners) == pytest.approx(sorted(prior.kinks), abs=1.2e-8)  # as above


def test_a_kink_that_is_named_does_not_hide_another_one_beside_it():
    def force(w):
        return (1.0 if w > 0.3 else 0.0) + (1.0 if w > 0.302 else 0.0)

    assert places(force, (0.3,)) == [pytest.approx([0.302], abs=1e-12), []]  # half of 0.01 after 34 halvings: 3e-13


def test_a_message_names_place_and_remedy():
    prior = Prior(lambda w: (1.0 if w > 0 else -1.0) + max(w, 0.5), kinks=(0.5,))
    assert kinks_to_name("own:pull", prior) == (
        "prior.name = 'own:pull': its force jumps from -0.5 to 1.5 at w = 0, which it does not name; make it "
        "meanfield.Prior(force, kinks=(0, 0.5))"
    )
    many = kinks_to_name("own:pull", Prior(lambda w: math.floor(2.0 * w)))
    assert "at w = -5, jumps from -10 to -9 at w = -4.5, and has 21 more kinks, which" in many
    assert kinks_to_name("own:pull", Prior(lambda w: w)) == ""
