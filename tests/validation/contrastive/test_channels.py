"""What studies of several channels decide from given numbers, and the closed forms that they use."""

import numpy as np
import pytest
import xarray as xr

from validation.contrastive.channels import chains, collapse, mixtures, phase_diagram, random_starts, shared_noise
from validation.contrastive.channels.problems import KINDS, kind_of, random_overlaps, several, shares


def decided(statements, part):
    found = [statement.holds for statement in statements if part in statement.text]
    assert found, part
    return found


@pytest.mark.parametrize(
    ("q", "M12", "kind"),
    [
        ([[0.1, 0.2], [0.3, 0.0]], 0.9, "nothing"),
        ([[0.9, 0.2], [0.3, 0.0]], 0.1, "one channel"),
        ([[-0.99, 0.99], [0.0, 0.0]], -0.995, "collapsed"),
        ([[0.98, 0.98], [0.14, -0.14]], 0.95, "tilted"),
        ([[0.99, 0.0], [0.01, -0.99]], 0.0, "distinct"),
        ([[0.95, 0.28], [-0.28, 0.95]], 0.0, "rotated"),
    ],
)
def test_what_channels_have_learnt_has_a_name(q, M12, kind):
    q, M = np.array(q), np.array([[1.0, M12], [M12, 1.0]])
    assert kind_of(q, M) == kind_of(q[::-1], M) == kind_of(q[:, ::-1], M) == kind
    assert shares([kind])[KINDS.index(kind)] == 1


def test_random_overlaps_are_those_of_channels():
    for seed in range(20):
        q, M = random_overlaps(np.random.default_rng(seed), 3, 2)
        several([(1.1, 6.05)] * 3, q, M)  # accepts no other ones


def test_closed_forms():
    """Numbers of several_channels.md, section 6, and of an independent computation."""
    assert collapse.closed_form("square, m = 10") == pytest.approx(0.0275482093664, rel=1e-11)  # its digits
    assert collapse.closed_form("absolute, no centring, m = 10") == pytest.approx(1 / 3, rel=1e-14)  # rounding
    assert phase_diagram.mixing_closed_form(10) == pytest.approx(0.17217630854, rel=1e-10)  # its digits
    M12 = shared_noise.alone("ReLU")
    np.testing.assert_allclose(M12[[4, 8]], [0.414692, 0.613638], atol=1e-6)  # the digits of both


def collapse_numbers(M12):
    dims = ("case", "factor")
    shape = len(collapse.CASES), len(collapse.FACTORS)
    values = np.broadcast_to([M12(factor) for factor in collapse.FACTORS], shape)
    thresholds = [0.1] * len(collapse.CASES)
    return xr.Dataset(
        {"M12": (dims, values), "threshold": ("case", thresholds), "closed_form": ("case", thresholds)},
        {"case": list(collapse.CASES), "factor": list(collapse.FACTORS)},
    )


def test_collapse():
    part = "the ODE collapses below"
    assert all(decided(collapse.judge(collapse_numbers(lambda x: 1.0 if x < 1 else 0.9)), part))
    assert not any(decided(collapse.judge(collapse_numbers(lambda x: 1.0 if x < 1.2 else 0.9)), part))
    assert not any(decided(collapse.judge(collapse_numbers(lambda x: 1.0 if x < 0.8 else 0.9)), part))


def phase_numbers(kind_at):
    sizes, strengths = phase_diagram.SIZES, phase_diagram.STRENGTHS
    found = [[shares([kind_at(m, strength)] * 2) for strength in strengths] for m in sizes]
    mixing = [phase_diagram.mixing_closed_form(m) for m in sizes]
    return xr.Dataset(
        {
            "share": (("m", "strength", "kind"), found),
            "collapse": ("m", [0.02] * len(sizes)),
            "mixing": ("m", mixing),
            "mixing_closed_form": ("m", mixing),
        },
        {"m": list(sizes), "strength": list(strengths), "kind": list(KINDS)},
    )


def test_phase_diagram():
    def predicted(m, strength):
        return "collapsed" if strength < 0.02 else "distinct" if strength < m * 0.017217630854 else "rotated"

    assert all(statement.holds for statement in phase_diagram.judge(phase_numbers(predicted)))
    held = [statement.holds for statement in phase_diagram.judge(phase_numbers(lambda m, strength: "tilted"))]
    assert held == [False, False, False, True, True]  # no start collapses; tilted where it should not be
    assert not decided(phase_diagram.judge(phase_numbers(lambda m, strength: "distinct")), "above the second")[0]


def test_counts_are_compared_by_their_chance():
    alike, other = np.array([52, 4, 23]), np.array([10, 2, 30])
    assert random_starts.chance_of(alike, alike) == 1
    assert random_starts.chance_of(alike, other) < 1e-3  # of 4000 permutations hardly any
    assert random_starts.chance_of(np.array([5, 0, 2]), np.array([3, 0, 4])) > 0.1
    assert random_starts.counts(["rotated", "distinct", "tilted", "nothing"]) == [0, 1, 2]


def mixture_numbers(second):
    shape = len(mixtures.CHANNELS), len(mixtures.STRENGTHS), 2
    values = np.broadcast_to(np.array([second(strength) for strength in mixtures.STRENGTHS])[:, None], shape)
    return xr.Dataset(
        {
            "second": (("channels", "strength", "start"), values),
            "first": (("channels", "strength", "start"), np.full(shape, 0.9)),
            "collapse": ((), 0.0275),
            "mixing": ((), 0.172),
        },
        {"channels": list(mixtures.CHANNELS), "strength": list(mixtures.STRENGTHS)},
    )


def test_mixtures():
    found = mixtures.judge(mixture_numbers(lambda strength: 0.3 * (strength > 0.172)))
    assert all(decided(found, "each learns a single feature"))
    assert not any(decided(found, "whatever the penalty"))
    found = mixtures.judge(mixture_numbers(lambda strength: 0.3 * (strength < 0.172)))
    assert not any(decided(found, "each learns a single feature"))
    assert all(decided(found, "whatever the penalty"))


def test_trajectories_that_are_off_are_seen():
    cases = list(chains.CASES)
    near = xr.Dataset(
        {name: (("case", "overlap"), np.full((3, 9), value)) for name, value in
         {"end": 0.3, "error": 1e-4, "sgd": 0.3004, "sgd_error": 1e-4}.items()},
        {"case": cases},
    )  # fmt: skip
    assert decided(chains.judge(near), "standard errors") == [True] * 3
    near["sgd"].values[1, 2] += 2e-4
    assert decided(chains.judge(near), "standard errors") == [True, False, True]
