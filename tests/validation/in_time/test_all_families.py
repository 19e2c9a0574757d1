"""The study of schedules and phases: cases say what their problems do, and what is off is noticed and counted."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.problems.problem_keys import number_keys, value_of
from validation.in_time import all_families
from validation.in_time.all_families import FACTOR, KINDS, flow, judge, page
from validation.in_time.cases import scaled


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", [2, 3])
def test_cases_have_the_values_of_their_problems(name, seed):
    """Seed 2 has schedules alone, seed 3 phases, too."""
    case = KINDS[name].case(seed)
    assert (len(case.stops) > 1) == (seed == 3)
    for t in case.stops[-1] * np.array([0.0, 0.31, 0.62, 0.93]):
        given, found = meanfield.with_values(case.base, case.at(t)), meanfield.at_time(case.problem, t)
        assert number_keys(given) == number_keys(found)
        values = [[value_of(problem, key) for key in number_keys(given)] for problem in (given, found)]
        assert values[0] == pytest.approx(values[1], rel=1e-13)  # rounding of cosines


def test_a_fifth_more_is_that_of_every_value():
    table = {"times": [0.0, 1.0], "values": [5, 10], "interpolation": "step"}
    assert scaled(table, FACTOR) == table | {"values": [6, 12]}
    wave = {"schedule": "exponential", "start": 0.5, "rate": 2.0}
    assert scaled(wave, FACTOR) == wave | {"start": 0.6}
    assert scaled([1.0], FACTOR) == [1.2]


def test_a_flow_that_is_off_is_noticed(monkeypatch):
    kind = KINDS["hidden_manifold"]
    monkeypatch.setattr(all_families, "KINDS", {"right": kind})
    assert flow(0)["flow_difference"] < 1e-11
    later = kind._replace(reference=lambda case: kind.reference(case.larger(0, "training.weight_decay", 1.0 + 1e-6)))
    monkeypatch.setattr(all_families, "KINDS", {"wrong": later})
    assert flow(0)["flow_difference"] > all_families.ALLOWED


def made_up(differ, unseen):
    """Made-up numbers of a hundred pairs, of which some true ones differ, and some wrong ones do not."""
    names = [list(KINDS)[i % len(KINDS)] for i in range(100)]
    return xr.Dataset(
        {
            "flow_kind": ("flow", names),
            "flow_phases": ("flow", [1] * 100),
            "flow_difference": ("flow", np.full(100, 1e-10)),
            "density_kind": ("density", names),
            "density_ratio": ("density", np.full(100, 0.5)),
            "density_difference": ("density", np.full(100, 1e-7)),
            "pair_kind": ("true_pair", names),
            "p_value": ("true_pair", np.linspace(0.01, 1.0, 100)),
            "verdict": ("true_pair", ["DIFFERS"] * differ + ["AGREES"] * (100 - differ)),
            "changed_key": ("true_pair", ["key"] * 100),
            "changed_effect": ("true_pair", np.full(100, 2.0)),
            "changed_verdict": ("true_pair", [""] * 10 + ["AGREES"] * unseen + ["DIFFERS"] * (90 - unseen)),
            "tried_kind": ("change", names),
            "tried_key": ("change", ["key"] * 100),
            "tried_effect": ("change", np.linspace(0.0, 3.0, 100)),
        }
    )


@pytest.mark.parametrize(
    ("differ", "unseen", "decided"), [(5, 4, [True, True]), (8, 5, [None, None]), (12, 12, [False, False])]
)
def test_95_of_100_are_asked_for_less_what_chance_takes_off(differ, unseen, decided):
    """One in a hundred studies has 11 or more of 100 that differ, and as many of 90 that are not seen."""
    data = made_up(differ, unseen)
    statements = judge(data)
    assert [statement.holds for statement in statements] == [True, True, *decided]
    assert statements[2].number == f"{100 - differ} of 100"
    assert f"| {100 - differ} of 100 |" in page(data, statements)
