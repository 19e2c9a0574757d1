"""Notebooks run from beginning to end in this process, and show what is stored with them: text, and as many figures."""

import base64
import contextlib
import io
import json
import sys
from types import ModuleType

import pytest
from matplotlib import pyplot as plt

from tests import ROOT
from tests.documentation.outputs import assert_same

FOLDER = ROOT / "docs" / "notebooks"
FIGURES = {
    "compare_histograms": 3,
    "own_rule": 1,
    "own_training": 2,
}

WITHOUT_TORCH = "PyTorch is not installed: its part is skipped, and steps are taken by hand\n"
"""What a notebook shows besides where there is no PyTorch; all else is the same, to rounding."""

LARGEST = 60_000
"""Largest size of a notebook in bytes: figures are stored in few pixels and colours by `make notebooks`."""


def cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]


def stored(cell):
    """Text and number of figures that a cell shows where it is stored; nothing else may be there."""
    text, figures = "", 0
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            assert output["name"] == "stdout"
            text += "".join(output["text"])
        else:
            assert output["output_type"] == "display_data"
            assert base64.b64decode("".join(output["data"]["image/png"])).startswith(b"\x89PNG")
            figures += 1
    return text, figures


def test_all_notebooks_are_known():
    assert sorted(FIGURES) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_notebook_is_small_and_holds_nothing_of_the_machine_that_ran_it(name):
    text = (FOLDER / f"{name}.ipynb").read_text()
    assert len(text) < LARGEST
    first, *_ = cells(name)
    assert first["cell_type"] == "markdown"
    assert first["source"][0].startswith("# ")
    for cell in cells(name):
        assert cell.get("execution_count") is None
        assert not cell["metadata"]
        shown = "".join(cell["source"]) + json.dumps([output.get("text") for output in cell.get("outputs", [])])
        assert not any(word in shown for word in ("/home", "/work", "/root", "C:\\"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES))
def test_notebook_shows_what_is_stored_and_its_figures_are_labelled(name, tmp_path, monkeypatch):
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    main, before = ModuleType("__main__"), 0
    monkeypatch.setitem(sys.modules, "__main__", main)  # where a kernel keeps the names of a notebook
    try:
        for number, cell in enumerate(cells(name)):
            if cell["cell_type"] != "code":
                continue
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), vars(main))
            text, drawn = stored(cell)
            assert_same(text, shown.getvalue().replace(WITHOUT_TORCH, ""))
            assert len(plt.get_fignums()) - before == drawn, f"cell {number}: run `make notebooks`"
            before += drawn
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert len(figures) == FIGURES[name]
        for figure in figures:
            assert any(axes.get_xlabel() for axes in figure.axes)
            assert any(axes.get_ylabel() for axes in figure.axes)
            assert any(axes.get_legend() for axes in figure.axes)
    finally:
        plt.close("all")
    assert list(tmp_path.iterdir()) == []
