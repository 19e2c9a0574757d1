"""Numbers, and states and branches of Datasets that are written by hand, as text."""

import numpy as np
import pytest
import xarray as xr

from meanfield.results.text import describe, describe_branches, index_text


def states(**more):
    variables = {
        "q": (("state", "feature"), [[-0.5, -1e-9], [0.0, 0.25]]),
        "growth_rate": ("state", [-0.125, 0.5]),
        "stability": ("state", [1, -1]),
    }
    return xr.Dataset(variables | more, attrs={"status": "complete"})


def branches():
    variables = {
        "q": (("point", "feature"), [[0.1], [0.2], [0.3], [0.4], [0.9]]),
        "parameter": ("point", [1.0, 2.0, 1.5, 1.0, 3.0], {"key": "model.learning_rate"}),
        "branch": ("point", [0, 0, 0, 0, 3]),
        "turning": ("point", [0, 1, 0, 0, 0]),
        "stability": ("point", [1, 0, -1, -1, 1]),
    }
    return xr.Dataset(variables, attrs={"status": "complete"})


def test_states_say_their_stability_and_no_zero_has_a_sign():
    assert describe(states()).splitlines() == [
        "q = -0.500000,  0.000000   stable    growth rate -0.125",
        "q =  0.000000,  0.250000   unstable  growth rate 0.5",
    ]


def test_fixed_points_say_their_kind_and_what_they_attract():
    covariance = np.full((2, 2, 2), np.nan)
    covariance[0] = np.diag([4.0, 9.0])
    found = states(
        kind=("state", ["stable node", "saddle"]),
        region_share=("state", [0.25, 0.0]),
        q_covariance=(("state", "feature", "feature_"), covariance),
    )
    assert describe(found).splitlines() == [
        "q = -0.500000,  0.000000   stable node   growth rate -0.125, attracts 25.0%, spread of SGD 2, 3 / sqrt(N)",
        "q =  0.000000,  0.250000   saddle        growth rate 0.5",
    ]


def test_branches_say_where_they_turn_and_change_their_stability():
    expected = [
        "branch 0: 4 points from model.learning_rate = 1 (q =  0.100000, stable) to 1 (q =  0.400000, unstable), "
        "1 change(s) of stability, turning at 2",
        "branch 3: 1 points from model.learning_rate = 3 (q =  0.900000, stable) to 3 (q =  0.900000, stable)",
    ]
    assert describe_branches(branches()) == expected
    assert describe(branches()).splitlines() == expected


def test_a_result_without_states_says_why():
    assert describe(states().assign_attrs(status="failed: no state")) == "failed: no state"


@pytest.mark.parametrize(
    ("places", "sizes", "text"),
    [((), (), ""), ((1, 0), (2, 3), "21"), ((0, 0), (3, 12), "1,1"), ((1, 12), (3, 40), "2,13"), ((10,), (11,), "11")],
)
def test_indices_of_entries_are_never_ambiguous(places, sizes, text):
    assert index_text(places, sizes) == text
