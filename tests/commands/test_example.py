"""Examples that travel with the package are those of the checkout, and can be used wherever they are printed to."""

import subprocess
import sys

import pytest

import meanfield
from meanfield.problems.examples import FAMILIES, example_files, text_of
from meanfield.problems.file import format_problem
from meanfield.sweep import format_sweep, load_sweep
from tests import ROOT

COPIES = sorted(FAMILIES.glob("*/examples"))
NAMES = sorted(example_files())


def test_every_example_is_in_data_and_every_file_of_data_is_an_example():
    for folder in ("problems", "sweeps"):
        names = {path.name for copies in COPIES for path in copies.glob(f"{folder}/*")}
        assert names == {path.name for path in (ROOT / "data" / folder).iterdir()}


@pytest.mark.parametrize("copy", sorted(FAMILIES.glob("*/examples/*/*.*")), ids=lambda path: path.name)
def test_files_of_examples_are_those_of_data(copy):
    original = ROOT / "data" / copy.parent.name / copy.name
    assert copy.read_bytes() == original.read_bytes(), f"copy {original} to {copy}"


def test_names_are_unique_and_titles_are_listed(capsys):
    assert len(NAMES) == len(list(FAMILIES.glob("*/examples/*/*.toml")))
    shown = printed()
    assert all(f"\n  {name} " in shown for name in NAMES)
    assert "\n  sparse_prior        Sparse prior, one three-point feature\n" in shown
    assert "sweeps of the family contrastive:\n" in shown


@pytest.mark.parametrize("name", NAMES)
def test_an_example_that_is_printed_elsewhere_is_the_same(tmp_path, name):
    (tmp_path / "copy.toml").write_text(text_of(example_files()[name]), encoding="utf-8")
    if example_files()[name].parent.name == "sweeps":
        load, written, original = load_sweep, format_sweep, ROOT / "data/sweeps" / f"{name}.toml"
    else:
        load, written, original = meanfield.load_problem, format_problem, ROOT / "data/problems" / f"{name}.toml"
    shown, expected = (written(load(path)).splitlines() for path in (tmp_path / "copy.toml", original))
    different = [line for line, other in zip(shown, expected, strict=True) if line != other]
    assert all(line.startswith("file = ") for line in different)


def test_an_example_is_printed_to_the_last_byte():
    assert printed("sparse_prior") == (ROOT / "data/problems/sparse_prior.toml").read_text()


def printed(*words):
    """What `meanfield example` prints."""
    code = "from meanfield.commands.entry import main; main()"
    command = [sys.executable, "-c", code, "example", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
