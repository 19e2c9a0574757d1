"""Families by name, by entry point and by address."""

import importlib
import importlib.metadata
import sys

import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive import FAMILY
from meanfield.problems import known_families
from meanfield.problems.file import format_problem, load_problem, parse_problem
from meanfield.problems.known_families import family_of, find_family
from tests.example_problems import SMALL

TOY = """
from typing import ClassVar

import numpy as np
from meanfield.extend import Problem, Family, Kind, Method, Solved, Time, Variable, solver


class Decay(Problem):
    rate: float
    time: Time


@solver
def solve(problem):
    t = problem.time.outputs_at
    return Solved("path", {"time": t, "x": np.exp(-problem.rate * t)})


FAMILY = Family(
    name="decay", title="exponential decay", problem=f"{__name__}:Decay", example=f"{__name__}:none.toml",
    variables={"time": Variable(("time",), "time"), "x": Variable(("time",), "x", compared=True)},
    kinds={"path": Kind("a path", ("time", "x"))},
    methods={"path": Method("path", f"{__name__}:solve", ("path",))},
)
"""
PROBLEM = 'family = "toy:FAMILY"\nrate = 2.0\n[time]\nstop = 1.0\noutputs = 3\n'


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A problem file with a family beside it, of which the process knows nothing yet."""
    monkeypatch.setattr(known_families, "_found", {})
    monkeypatch.setattr(known_families, "_of_class", {})
    monkeypatch.delitem(sys.modules, "toy", raising=False)
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "decay.toml").write_text(PROBLEM)
    return tmp_path / "decay.toml"


def test_a_file_without_a_family_is_contrastive():
    problem = parse_problem(SMALL)
    assert family_of(problem) is FAMILY
    assert parse_problem('family = "contrastive"\n' + SMALL) == problem
    assert "family" not in format_problem(problem)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('family = "contrastiv"', "unknown family 'contrastiv'; did you mean 'contrastive'"),
        ('family = "zebra"', r"unknown family 'zebra'; known: .*contrastive.* entry point 'meanfield.families'"),
        ("family = 3", "family = 3: it is a text such as 'contrastive'"),
        ('family = "nowhere:FAMILY"', "module 'nowhere' cannot be imported"),
        ('family = "math:pi"', "it names float, not a meanfield.problems.family.Family"),
        ('familly = "contrastive"', "unknown key 'familly'; did you mean 'family'"),
    ],
)
def test_unknown_families_are_named_with_a_remedy(line, message):
    with pytest.raises(InputError, match=message):
        parse_problem(f"{line}\n{SMALL}")


def test_an_unknown_method_is_named_with_the_nearest_and_all_there_are():
    with pytest.raises(InputError, match=r"unknown method 'densty' of family 'contrastive'; did you mean 'density'"):
        meanfield.solve(parse_problem(SMALL), "densty")


def test_solve_refuses_at_no_cost_what_does_not_apply(monkeypatch):
    problem = parse_problem(SMALL + '[prior]\nname = "l1"\n')
    monkeypatch.setattr("meanfield.families.contrastive.order_parameters.trajectory.VectorField", None)
    with pytest.raises(InputError, match=r"prior.name = 'l1'"):
        meanfield.solve(problem, "order_parameters")


def test_a_family_beside_the_problem_file(toy, tmp_path):
    problem = meanfield.load_problem(toy)
    result = meanfield.solve(problem, "path")
    assert result.attrs["family"] == "decay"
    meanfield.save(result, tmp_path / "path.nc")
    assert meanfield.load(tmp_path / "path.nc").identical(result)
    assert parse_problem(format_problem(problem)) == problem
    assert 'family = "toy:FAMILY"' in format_problem(problem)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('"x": np.exp', '"y": 1 + t, "x": np.exp', r"declares no variable 'y' of results of kind 'path'; add it to"),
        ('Solved("path"', 'Solved("paths"', "declares no kind 'paths'; did you mean 'path'?"),
    ],
)
def test_results_that_a_family_does_not_declare_are_named_with_a_remedy(toy, right, wrong, message):
    (toy.parent / "toy.py").write_text(TOY.replace(right, wrong))
    with pytest.raises(ValueError, match=message):
        meanfield.solve(meanfield.load_problem(toy), "path")


def test_methods_without_a_cost_are_named_in_place_of_an_empty_table(toy):
    text = str(meanfield.explain(meanfield.load_problem(toy)))
    assert text.endswith("not predicted      path")
    assert "memory" not in text


def test_a_module_that_is_imported_anew_replaces_its_family(toy, tmp_path, monkeypatch):
    meanfield.load_problem(toy)
    monkeypatch.delitem(sys.modules, "toy")
    monkeypatch.syspath_prepend(toy.parent)
    again = importlib.import_module("toy")
    known_families._import_classes()  # as any question about another family does
    problem = meanfield.load_problem(toy)
    assert type(problem) is again.Decay
    assert known_families.family_of(problem) is again.FAMILY


def test_a_result_imports_no_family(toy, tmp_path, monkeypatch):
    meanfield.save(meanfield.solve(meanfield.load_problem(toy), "path"), tmp_path / "path.nc")
    monkeypatch.setattr(known_families, "_found", {})
    monkeypatch.delitem(sys.modules, "toy")
    monkeypatch.syspath_prepend(toy.parent)
    with pytest.raises(InputError, match="unknown family 'decay'"):
        meanfield.load(tmp_path / "path.nc")
    with pytest.raises(InputError, match="no module is imported because a result names it"):
        find_family("toy:FAMILY", trusted=False)
    assert "toy" not in sys.modules


def test_an_installed_family_is_found_by_its_entry_point(toy, monkeypatch):
    monkeypatch.syspath_prepend(toy.parent)
    point = importlib.metadata.EntryPoint("decay", "toy:FAMILY", known_families.ENTRY_POINTS)
    broken = importlib.metadata.EntryPoint("broken", "toy:NOTHING", known_families.ENTRY_POINTS)
    monkeypatch.setattr(known_families, "entry_points", lambda group: [point, broken])
    assert find_family("decay", trusted=False).title == "exponential decay"
    assert known_families.family_names() == [*known_families.OWN_FAMILIES, "decay", "broken"]
    with pytest.raises(InputError, match=r"family 'broken': its entry point cannot be imported \(AttributeError"):
        find_family("broken")


def test_results_of_two_families_are_not_compared(toy):
    path = meanfield.solve(meanfield.load_problem(toy), "path")
    other = meanfield.solve_order_parameters(parse_problem(SMALL))
    with pytest.raises(InputError, match="are of the families 'decay' and 'contrastive'"):
        meanfield.compare(path, other)
    report = meanfield.compare(path, path)
    assert float(abs(report["x_difference"]).max()) == 0.0


def test_a_family_that_is_edited(toy):
    before = load_problem(toy)
    assert family_of(before).method("path")(before)["x"][0] == 1.0
    module = toy.parent / "toy.py"
    module.write_text(TOY.replace("np.exp(-", "2.0 * np.exp(-"))
    after = load_problem(toy)
    assert family_of(after).method("path")(after)["x"][0] == 2.0
    with pytest.raises(InputError, match=r"is the problem of no family; load it with meanfield\.load_problem"):
        family_of(before)
    found = after.fingerprints()["family"]
    assert found["what"] == "toy:FAMILY"
    module.write_text(TOY + "# a comment")
    assert load_problem(toy).fingerprints()["family"]["sha256"] != found["sha256"]


def test_families_of_the_package_have_no_fingerprint():
    assert parse_problem(SMALL).fingerprints() == {}
