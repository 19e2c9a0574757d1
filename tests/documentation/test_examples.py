"""Each example of the gallery prints what its file says, draws one figure, and is short, and pages show all of it."""

import ast
import re
import sys

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests import ROOT
from tests.documentation.outputs import assert_same
from tests.documentation.pages import anchors, links, page_text

FOLDER = ROOT / "docs" / "examples"
FILES = sorted(FOLDER.rglob("*.py"))
NAMES = [str(path.relative_to(FOLDER)) for path in FILES]
QUICK = ("contrastive/learning_rate_threshold.py", "hidden_manifold/weights_by_eigenvalue.py", "latent_tree/depth.py")
"""Those that run by default, in a second each; the others take up to half a minute, mostly of compilation."""

LINES = 30
"""Of a file, without those that say what it prints."""

LARGEST = 25_000
"""Bytes of a figure."""

sys.path.append(str(ROOT / "docs" / "_extensions"))
from examples import PRINTS, notebook, page_of, read, run  # noqa: E402


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_an_example_prints_what_its_file_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    try:
        shown = run(FOLDER / name)
        (number,) = plt.get_fignums()
        panels = plt.figure(number).axes
        assert panels[0].get_xlabel()
        assert all(axes.get_ylabel() for axes in panels)  # a bar of colours has one label
    finally:
        plt.close("all")
    assert_same(read((FOLDER / name).read_text()).output, shown)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_has_what_its_page_shows(name):
    source = (FOLDER / name).read_text()
    made = read(source)
    assert len([line for line in source.splitlines() if not line.startswith(PRINTS)]) <= LINES
    assert all((made.title, made.text, made.output))
    assert made.code.rstrip().endswith("plt.show()")
    assert 0 < (FOLDER / name).with_suffix(".png").stat().st_size <= LARGEST
    words = page_of(source, "name")
    assert all(part in words for part in (made.title, *made.papers, made.code, made.output, "name.png", "name.ipynb"))
    said, code = (cell["source"] for cell in notebook(source)["cells"])
    assert said.startswith(f"# {made.title}\n")
    assert code == made.code.rstrip()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_takes_what_is_public(name):
    tree = ast.parse((FOLDER / name).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert {module.partition(".")[0] for module in modules} <= {"meanfield", "numpy", "matplotlib", "tempfile"}
    assert not [part for module in modules for part in module.split(".") if part.startswith("_")]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)]


def test_the_gallery_leads_to_each_example():
    targets = links(page_text(ROOT / "docs" / "gallery.md"))
    assert [name for name in NAMES if f"examples/{name}" not in targets] == []
    assert "examples-by-paper" in anchors(ROOT / "docs" / "gallery.md")


def test_citations_and_printed_lines_are_read_from_a_file():
    code = "print(2)\nplt.show()\n"
    made = read(f'"""Title.\n\nWords.\n\nA. Uthor, Journal 1\n(1999).\n"""\n\n{code}# prints: 2\n# prints: 3\n')
    assert made == ("Title", "Words.\n\nA. Uthor, Journal 1\n(1999).", ["A. Uthor, Journal 1 (1999)."], code, "2\n3\n")
