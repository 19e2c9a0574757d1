"""Thresholds of two channels: closed forms for quadratic outputs, and numbers of the theory."""

import numpy as np
import pytest
from scipy.optimize import brentq

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.thresholds import (
    collapse_threshold,
    collapsed_state,
    conditional_rates,
    learning_threshold,
    mixing_threshold,
    uninformed_rates,
)
from meanfield.problems.problem_keys import with_value
from tests.families.contrastive.channels.problems import standard

ALIKE = ("second_moment = 1.0, fourth_moment = 5.0", "second_moment = 1.1, fourth_moment = 6.05"), ("= 3", "= 10")


@pytest.mark.parametrize("centering", ["none", "population"])
def test_growth_of_what_is_not_yet_learnt(centering):
    """j = 4 tau nu [3 - 2 lambda (1 + 8/m)] - Lambda_0/2 without centring, and so on; nu = m2 - 1."""
    m, strength, tau = 7, 0.04, 0.01
    problem = standard(("= 3", f"= {m}"), ("0.05", f"{strength}"), ('"none"', f'"{centering}"'))
    found = uninformed_rates(problem)
    if centering == "none":
        bracket = 15 - 4 * strength * (3 + 42 / m)
        bracket += 4 * strength**2 * (1575 + 117 * (m - 1) + 3 * (m - 1) * (m - 2)) / m**2
        first = 4 * tau * 0.1 * (3 - 2 * strength * (1 + 8 / m)) - 8 * tau**2 / m * bracket
        assert found[0] == pytest.approx(first, rel=1e-9)  # differences of fourth order
        assert found[1] == pytest.approx(-8 * tau**2 / m * bracket, rel=1e-9)  # the same
    gain = {"none": 3 - 2 * strength * (1 + 8 / m), "population": 2 - 8 * strength / m}[centering]
    np.testing.assert_allclose(found[0] - found[1], 4 * tau * 0.1 * gain, rtol=1e-9)  # the same


@pytest.mark.parametrize("centering", ["none", "population"])
def test_growth_beside_a_channel_that_has_learnt(centering):
    """4 tau nu [3 - 2 lambda (T2^2 + (3 T4 - T2^2)/m)] - Lambda_22/2 and 4 tau nu [2 - 4 lambda V4/m] - Lambda_22/2."""
    m, strength, tau = 7, 0.04, 0.01
    problem = standard(("= 3", f"= {m}"), ("0.05", f"{strength}"), ('"none"', f'"{centering}"'))
    found = conditional_rates(problem)
    assert np.isnan(np.diag(found)).all()
    closure = ChannelClosure(problem)
    x = brentq(lambda x: first_velocity(closure, x, tau), 0.9, 0.9999)
    spread = 1 - x * x  # moments of Theta_1 = c x + e, c three-point with the moments 1 and 5
    T2 = x * x + spread
    T4 = 5 * x**4 + 6 * x * x * spread + 3 * spread**2
    noise = closure(np.array([[0.0, 0.0], [x, 0.0]]), np.eye(2)).Lambda[1, 1]  # channel 1 on feature 2
    gain = (
        3 - 2 * strength * (T2**2 + (3 * T4 - T2**2) / m)
        if centering == "none"
        else 2 - 4 * strength * (T4 - T2**2) / m
    )
    assert found[0, 1] == pytest.approx(4 * tau * 0.1 * gain - noise / 2, rel=1e-8)  # differences of fourth order


def first_velocity(closure, x, tau):
    """Velocity of the overlap x of channel 1 with feature 2, while channel 2 has learnt nothing."""
    P, D, noise = closure(np.array([[0.0, 0.0], [x, 0.0]]), np.eye(2))
    return tau * P[1, 0] - x * (tau * D[0, 0] + noise[0, 0] / 2)


@pytest.mark.parametrize(("centering", "closed"), [("none", 3 / (2 * (1 + 8 / 7))), ("population", 7 / 4)])
def test_strength_above_which_nothing_is_learnt(centering, closed):
    problem = standard(("= 3", "= 7"), ('"none"', f'"{centering}"'))
    assert learning_threshold(problem) == pytest.approx(closed, rel=1e-8)  # differences of fourth order
    with pytest.raises(InputError, match="a gain of small overlaps with the feature does not exist without a penalty"):
        learning_threshold(problem, 1)  # its second moment is 1
    with pytest.raises(InputError, match="feature = 2: must be 0 to 1"):
        learning_threshold(problem, 2)


@pytest.mark.parametrize(
    ("centering", "reference", "square"), [("none", 0.019627, 0.991), ("population", 0.027514, 0.993)]
)
def test_strength_that_parts_collapsed_channels(centering, reference, square):
    problem = standard(*ALIKE, ('"none"', f'"{centering}"'), ("learning_rate = 0.01", "learning_rate = 0.005"))
    threshold = collapse_threshold(problem)
    assert threshold == pytest.approx(reference, abs=1e-6)  # digits of the reference
    at, below = (
        collapsed_state(with_value(problem, "decorrelation.strength", strength)) for strength in (threshold, 0.01)
    )
    assert at.fastest == pytest.approx(0.0, abs=1e-9)  # rounding of differences
    assert below.overlap**2 == pytest.approx(square, abs=6e-4)  # digits of the reference
    assert below.fastest < 0


def test_large_batches_leave_channels_close_to_their_feature():
    """1 - |q| of order tau/m is below 1e-4 there, and lambda_c is that of m = infinity."""
    problem = standard(
        *ALIKE, ("learning_rate = 0.01", "learning_rate = 0.005"), ("batch_size = 10", "batch_size = 3000")
    )
    assert collapsed_state(problem).overlap > 0.9999
    assert collapse_threshold(problem) == pytest.approx(0.027548, rel=2e-3)  # of order 1/m, and tau/m


@pytest.mark.parametrize(("centering", "reference"), [("none", 0.26187), ("population", 0.17264)])
def test_strength_that_mixes_features(centering, reference):
    problem = standard(*ALIKE, ('"none"', f'"{centering}"'), ("learning_rate = 0.01", "learning_rate = 0.001"))
    assert mixing_threshold(problem) == pytest.approx(reference, abs=1e-5)  # digits of the reference


def test_what_has_no_threshold_is_refused():
    with pytest.raises(InputError, match="whose strength could be varied; add"):
        collapse_threshold(standard(("[decorrelation]\nstrength = 0.05\n", "")))
    with pytest.raises(InputError, match=r"model.channels = 1: states of pairs"):
        collapsed_state(
            standard(
                ("channels = 2\ninitial_channel_overlap = 0.25\n[decorrelation]\nstrength = 0.05\n", ""),
                ("[0.5, 0.3]", "0.5"), ("[0.2, 0.4]", "0.2"),
            )
        )  # fmt: skip
    with pytest.raises(InputError, match="feature = 2: must be 0 to 1"):
        collapsed_state(standard(), 2)
    with pytest.raises(InputError, match="take random batches, whose errors hide"):
        uninformed_rates(standard(("quadratic", "tanh"), ("= 0.05", '= 0.05\npenalty = "smooth_absolute"')))
