"""Notebooks run from beginning to end on files of a small problem, laid out as the demo lays them out."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import meanfield
from meanfield.method_settings import DensitySettings, ParticleSettings

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["compare_histograms"])
def test_notebook_runs(name, tmp_path, monkeypatch):
    runs = tmp_path / "data" / "runs" / "sparse_prior"
    runs.mkdir(parents=True)
    problem = meanfield.load_problem(ROOT / "data" / "problems" / "sparse_prior.toml").model_copy(
        update={"density": DensitySettings(cells=200), "particles": ParticleSettings(dimension=100, replicas=4)}
    )
    meanfield.save(meanfield.solve_density(problem), runs / "density.nc")
    meanfield.save(meanfield.simulate_sgd(problem), runs / "sgd.nc")
    (tmp_path / "validation").mkdir()
    copy = shutil.copy(ROOT / "validation" / f"{name}.ipynb", tmp_path / "validation")
    notebook = nbformat.read(copy, as_version=4)
    monkeypatch.setenv("IPYTHONDIR", os.fspath(tmp_path / "ipython"))
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path / "validation")}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 4
    assert not [output for output in outputs if output.output_type == "error"]
