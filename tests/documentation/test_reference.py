"""What the documentation generates from the code is complete: every key, law, function, variable, script and study."""

import doctest
import importlib
import os
import re
import subprocess
import sys
import types
from dataclasses import replace
from inspect import unwrap
from operator import attrgetter
from typing import get_args

import pytest
from pydantic import Field

import meanfield
from meanfield.commands.dispatch import COMMANDS
from meanfield.families.contrastive import FAMILY
from meanfield.ingredients.activations import ACTIVATIONS
from meanfield.ingredients.part import Part
from meanfield.ingredients.penalties import PENALTIES
from meanfield.ingredients.priors import PRIORS
from meanfield.methods import VERBS
from meanfield.problems.key_tables import Words, keys_of, parts_in, tables_of
from meanfield.problems.known_families import families, find_family
from meanfield.sweep import Sweep
from tests import PACKAGE, ROOT

ROOMS = [
    ".".join(path.parent.relative_to(PACKAGE.parent).parts)
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "__all__" in path.read_text() and path.parent.name not in ("laws", "own_numba")
] + [f"meanfield.{namespace}" for namespace in meanfield.NAMESPACES]
NO_PAGE = ("Equations", "COLOURS", "FAMILY", "LINES", "MARKERS")
"""A type of functions, the looks of lines, and declarations, whose tables are in the reference of results."""


@pytest.fixture(scope="module")
def page():
    """A function from the name of a generator to its page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_extensions"))
        yield lambda name: importlib.import_module(name).page()


def tables(part=Part):
    """All tables of the problem file that are no mere base of others."""
    for below in part.__subclasses__():
        yield from tables(below)
        if below.__module__.startswith("meanfield.") and not below.__subclasses__():
            yield below


def test_every_key_of_problem_and_sweep_files_is_in_its_table(page):
    text = page("problem_reference") + page("sweep_reference")
    written = text.splitlines()
    models = [model for model in tables() if reachable(model)]
    assert len(models) > 20
    for model in models:
        for name, field in model.model_fields.items():
            if name == "law":
                assert f"### `{get_args(field.annotation)[0]}`" in text
            else:
                rows = [line for line in written if line.startswith(f"| `{name}` |")]
                assert rows, f"{model.__name__}.{name}"
                assert all(line.count(" | ") == 3 and not line.endswith("|  |") for line in rows), rows


def reachable(model):
    """Whether a table belongs to one of the two files."""
    known, new = set(), {Sweep, *(part.problem_class for family in families() for part in family.parts)}
    while new:
        known |= new
        new = {
            part for one in new for field in one.model_fields.values() for part in parts_in(field.annotation)
        } - known
    return model in known


def test_the_page_of_problem_files_is_up_to_date(page):
    """It is read without a build, so that what is generated is kept in it: `make reference` writes it anew."""
    page("problem_reference")  # imports what follows
    text = (ROOT / "docs" / "reference" / "problem-file.md").read_text(encoding="utf-8")
    assert text == importlib.import_module("generated").rewritten(text)


def test_a_key_without_description_is_an_error():
    class Undescribed(Part):
        number: float = Field(default=1.0)

    with pytest.raises(ValueError, match=r"the key 'x\.number' has no description"):
        keys_of(Undescribed, "x.", Words())


def test_keys_show_types_defaults_and_ranges(page):
    text = page("problem_reference").replace("\u00a0", " ")
    for row in (
        "| `batch_size` | whole number, ≥ 1, ≤ 10⁹ | required |",
        "| `tolerance` | number, ≥ 10⁻¹⁰, ≤ 0.01 | none |",
        "| `replicas` | whole number, ≥ 1, ≤ 2³² | `8` |",
        '| `centering` | `"none"` or `"population"` or `"batch"` | `"none"` |',
        "| `columns` | list of whole numbers or texts, not empty, ≥ 0 | required |",
        "| `values` | list of lists of numbers, not empty, ≥ -10⁶, ≤ 10⁶ | required |",
        "| `variance` | list of 2 numbers | required |",
        '| `initial_overlap` | number or `"random"` or list of numbers | none |',
        "| `features` | [tables](#table-features) | required |",
    ):
        assert row in text


def test_every_activation_and_prior_is_listed_with_its_formula(page):
    text = page("function_reference")
    for name in (*ACTIVATIONS, *PRIORS, *PENALTIES):
        assert f"\n| `{name}` | " in text
    assert "| `relu` | `max(x, 0.0)` | 0 |  |" in text
    assert "| `cauchy` | `w / (1.0 + w * w)` | `0.5 * log1p(w * w)` |  |  |" in text
    assert "`ratio * sign + (1 - ratio) * w` with `sign = " in text


def test_every_variable_of_every_kind_is_in_its_table(page):
    sections = dict(part.split(")=\n", 1) for part in page("result_reference").split("(result-")[1:])
    sections = {kind: text for kind, text in sections.items() if "-" not in kind}  # of the family that files may omit
    assert set(sections) == set(FAMILY.all_kinds)
    for kind, text in sections.items():
        for name in FAMILY.all_kinds[kind].names:
            assert f"\n| `{name}` | " in text
    assert "| `q` | `replica, time, feature` | always |" in sections["particles"]
    assert "| `q` | `state, feature` | always |" in sections["stationary"]


def test_a_sweep_can_keep_all_that_is_listed(page):
    text = page("sweep_reference")
    assert all(f'\n| `"{name}"` | ' in text for name in (*FAMILY.reductions, "all"))
    assert "| `problem` | [table](problem-file.md) | required |" in text
    assert "| `methods` | table of lists of texts, not empty | required |" in text
    assert "| `similarity` | `(axes)` | if it is asked for |" in page("result_reference")


def test_functions_that_make_results_exist(page):
    assert "## " in page("result_reference")  # imports what follows
    maker = sys.modules["result_reference"].maker
    made_by = {maker(part, kind) for family in families() for part in family.parts for kind in part.all_kinds}
    assert "" not in made_by
    assert all(callable(attrgetter(name)(meanfield)) for name in made_by)


@pytest.mark.parametrize("generator", ["problem_reference", "result_reference"])
def test_a_second_family_has_sections_of_its_own(page, generator, monkeypatch):
    page(generator)
    second = replace(FAMILY, name="second", title="another family")
    monkeypatch.setattr(sys.modules[generator], "families", lambda: iter((FAMILY, second)))
    text = page(generator)
    anchors = re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    links = set(re.findall(r"\(#([\w-]+)\)", text))
    assert links <= set(anchors)
    assert any("second" in link for link in links)
    for family in (FAMILY, second):
        assert re.search(rf"^## .* of the family `{family.name}`$", text, re.MULTILINE)


def test_every_command_and_script_says_what_it_takes(page):
    text = page("script_reference")
    for name in COMMANDS:
        assert f"## meanfield {name}\n\n```text\nusage: meanfield {name} [-h]" in text
    for script in (ROOT / "solvers").glob("*.py"):
        assert f"| `solvers/{script.name}` |" in text


def test_help_of_commands_imports_nothing_heavy():
    code = "import sys, script_reference; script_reference.page(); print(*sys.modules)"
    path = [str(ROOT / "docs" / "_extensions"), *sys.path]
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numba", "scipy", "xarray", "matplotlib", "fipy"} & set(shown.stdout.split())


def test_every_study_has_a_card(page):
    text = page("gallery")
    for figure in (ROOT / "validation").rglob("*.png"):
        assert f"](../{figure.relative_to(ROOT)})" in text
    assert "figures.md#figure-2a" in text
    assert "*Of the paper's statements 6 are confirmed, 1 contradicted ([errata](errata.md)). Ours hold.*" in text


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_a_page(room):
    objects = [resolve(name) for name in listed()]
    module = importlib.import_module(room)
    public = {name: unwrap(getattr(module, name)) for name in module.__all__ if name not in NO_PAGE}
    verbs = [verb.__name__ for verb in VERBS.values()] if room.startswith("meanfield.families.") else []
    rooms = [name for name, found in public.items() if isinstance(found, types.ModuleType)]
    missing = [name for name, found in public.items() if not any(found is one for one in objects)]
    assert set(missing) - set(verbs) == set(rooms)  # every public name of rooms has a page; verbs stand for methods


def listed():
    """Names of what has a page."""
    return re.findall(r"^ +(meanfield\.\S+)$", (ROOT / "docs" / "api" / "index.md").read_text(), re.MULTILINE)


def resolve(name):
    """The object of a dotted name, as its own module has it."""
    module, _, attribute = name.rpartition(".")
    return unwrap(getattr(importlib.import_module(module), attribute))


def test_examples_in_docstrings_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    for name in listed():
        for example in finder.find(resolve(name), name, globs={}):
            runner.run(example)
    assert runner.summarize(verbose=False) == (0, runner.tries)
    assert runner.tries > 0


def test_every_key_and_variable_on_the_page_on_notation_exists():
    sections = (ROOT / "docs" / "reference" / "notation.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(sections) == 6
    for section in sections:
        (name,) = re.findall(r"`(\w+)`$", section.splitlines()[0])
        family = find_family(name)
        known = set(family.all_variables) | keys_below(family.problem_class)
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| $") or line.startswith("| t")]
        named = [re.findall(r"`([\w.]+)`", row[2]) for row in rows]
        assert len(named) > 5
        assert all(named)
        assert [word for words in named for word in words if word not in known] == []


def keys_below(model):
    """Keys of a problem file with those of the tables before them, such as `prior.strength`."""
    tables = [table for table in tables_of(model) if table.part is not None]
    keys = {table.path + key.name for table in tables for key in keys_of(table.part, table.path, Words())}
    return keys | set(model.model_fields)
