"""The study of schedules and phases: cases say what their problems do, and what is off is noticed and counted."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.problems.problem_keys import number_keys, value_of
from validation.in_time import measurements
from validation.in_time.all_families import judge, page
from validation.in_time.cases import scaled
from validation.in_time.measurements import FACTOR, KINDS, flow


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
    monkeypatch.setattr(measurements, "KINDS", {"right": kind})
    assert flow(0)["flow_difference"] < 1e-11
    later = kind._replace(reference=lambda case: kind.reference(case.larger(0, "training.weight_decay", 1.0 + 1e-6)))
    monkeypatch.setattr(measurements, "KINDS", {"wrong": later})
    assert flow(0)["flow_difference"] > measurements.ALLOWED


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
            "again_kind": ("again", ["latent_tree", "update_rule", "latent_tree", "one_channel"]),
            "again_seed": ("again", [1001, 1002, 1003, 1004]),
            "again_verdict": ("again", ["DIFFERS", "DIFFERS", "AGREES", "AGREES"]),
            "changed_key": ("true_pair", ["key"] * 100),
            "changed_effect": ("true_pair", np.full(100, 2.0)),
            "changed_verdict": ("true_pair", [""] * 10 + ["AGREES"] * unseen + ["DIFFERS"] * (90 - unseen)),
            "tried_kind": ("change", names),
            "tried_key": ("change", ["key"] * 100),
            "tried_effect": ("change", np.linspace(0.0, 3.0, 100)),
        }
    )


@pytest.mark.parametrize(
    ("differ", "unseen", "holds"), [(5, 4, [True, True]), (11, 4, [True, True]), (12, 5, [False] * 2)]
)
def test_false_alarms_are_those_of_the_test_and_what_chance_adds(differ, unseen, holds):
    """12 or more of 100 come in one of 230 studies, and 11 or more in one of 90, which are too many to refuse."""
    data = made_up(differ, unseen)
    statements = judge(data)
    assert [statements[i].holds for i in (0, 1, 2, 4)] == [True, True, *holds]
    assert statements[2].number.startswith(f"{100 - differ} of 100, {100 - differ}.0 % (")
    assert statements[2].number.endswith(f"of the {differ} others 11 are allowed")
    text = page(data, statements)
    assert f"| {100 - differ} of 100" in text
    assert "The 4 were run again" in text
    assert "1001 differ then,\ntoo; so do 1 of the 3 others, as 1 or more of 3 do in\n14 of" in text


def test_a_pair_is_run_again_with_other_random_numbers(monkeypatch):
    given, report = [], xr.Dataset({"p_value": ("pair", [0.3])}, attrs={"verdict": "AGREES"})
    monkeypatch.setattr(meanfield, "solve", lambda problem, method: given.append((problem, method)))
    monkeypatch.setattr(meanfield, "compare", lambda first, second: report)
    row = measurements.do("again 94")
    assert (row["again_kind"], row["again_seed"], row["again_verdict"]) == ("latent_tree", 1015, "AGREES")
    kind = KINDS["latent_tree"]
    pair = kind.case(1015).problem
    other = meanfield.with_value(pair, "particles.seed", 100_000 + pair.particles.seed)
    assert given == [(other, kind.method), (other, "particles")]


def test_a_family_of_which_more_differ_is_not_hidden_by_the_others():
    data = made_up(0, 0)
    kind = data["pair_kind"] == "latent_tree"
    data["verdict"] = xr.where(kind & (np.cumsum(kind) <= 6), "DIFFERS", data["verdict"])
    overall, each = judge(data)[2:4]
    assert overall.holds
    assert not each.holds
    assert each.number == "latent_tree: 6 others, and 4 are allowed"
