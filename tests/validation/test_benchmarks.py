"""Benchmarks of the Makefile: each can be imported, and what it stores becomes a section of the page."""

import inspect
import math
import re
from importlib import import_module
from types import ModuleType

import pytest

from validation import ROOT
from validation.benchmarks import page, table
from validation.benchmarks.table import Row, Table, run_benchmark

(LIST,) = re.findall(r"^BENCHMARKS := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
NAMES = LIST.replace("\\", " ").split()

MEASURED = Table(
    "Steps",
    "one core",
    (
        Row("ours", 2.0, "us", "theirs", 4.0, required="at most 1"),
        Row("ours once more", 2.0, "us", "theirs", math.nan),
        Row("theirs", math.nan, "us", "ours", 2.0, note="not installed"),
        Row("error", 0.0, "", "exact", 0.0),
    ),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder in which numbers are stored and the page is written."""
    for module, name, value in (
        (table, "NUMBERS", tmp_path / "numbers"),
        (page, "NUMBERS", tmp_path / "numbers"),
        (page, "ROOT", tmp_path),
        (page, "PAGE", tmp_path / "benchmarks.md"),
    ):
        monkeypatch.setattr(module, name, value)
    return tmp_path


def run(tables, script, description):
    module = ModuleType("benchmark", description)
    module.__file__, module.tables = script, lambda: iter(tables)
    with pytest.raises(SystemExit) as end:
        run_benchmark(module, [])
    assert end.value.code == 0


def test_the_page_has_every_benchmark_that_make_runs_and_says_what_was_not_measured(folder):
    assert sorted(page.ORDER) == sorted(NAMES)
    for name in NAMES:
        module = import_module(f"validation.benchmarks.{name}")
        assert inspect.isgeneratorfunction(module.tables)
        run([MEASURED, Table("Nothing", "", ())], module.__file__, module.__doc__)
    page.main()
    written = (folder / "benchmarks.md").read_text()
    for name in NAMES:
        assert f"## {name.capitalize().replace('_', ' ')}\n" in written
    assert written.count("| ours | 2 us | theirs: 4 | 0.5 | at most 1 |  |") == len(NAMES)
    assert written.count("| ours once more | 2 us | theirs: not measured |  |  |  |") == len(NAMES)
    assert written.count("| theirs | not measured | ours: 2 |  |  | not installed |") == len(NAMES)
    assert written.count("### Nothing\n\n| what | measured |\n") == len(NAMES)


@pytest.mark.parametrize("tables", [[], [Table("Nothing", "", ())], [MEASURED]])
def test_tables_are_read_as_they_were_stored(tables, folder, capsys):
    run(tables, "some/steps.py", "Speeds.")
    about, found = table.saved_tables(folder / "numbers" / "steps.json")
    assert about == "Speeds."
    assert list(map(str, found)) == list(map(str, tables))
    assert [each.markdown() for each in found] == [each.markdown() for each in tables]
    printed = capsys.readouterr().out
    assert all(str(each) in printed for each in tables)
