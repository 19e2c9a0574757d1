"""Notebooks run from beginning to end in this process; the documentation site runs them in a kernel."""

import json

import pytest
from matplotlib import pyplot as plt

from tests import ROOT

FOLDER = ROOT / "docs" / "notebooks"
FIGURES = {"compare_histograms": 3, "finite_n_bands": 2, "phase_portrait": 2, "stationary_states": 2}


def cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]


def test_all_notebooks_are_known():
    assert sorted(FIGURES) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_notebook_is_stored_without_outputs_and_paths(name):
    first, *_ = cells(name)
    assert first["cell_type"] == "markdown"
    assert first["source"][0].startswith("# ")
    for cell in cells(name):
        assert not cell.get("outputs")
        assert not any(word in "".join(cell["source"]) for word in ("/home", "/work", "/root", "C:\\"))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_notebook_runs_and_its_figures_are_labelled(name, tmp_path, monkeypatch):
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    try:
        for number, cell in enumerate(cells(name)):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), names)
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert len(figures) == FIGURES[name]
        for figure in figures:
            assert any(axes.get_xlabel() for axes in figure.axes)
            assert any(axes.get_ylabel() for axes in figure.axes)
            assert any(axes.get_legend() for axes in figure.axes)
    finally:
        plt.close("all")
    assert list(tmp_path.iterdir()) == []
