"""Functions of scripts and notebooks, which workers cannot import, go to them by value."""

import subprocess
import sys

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.problems.file import parse_problem
from meanfield.sweep import parse_sweep, run_sweep
from tests.example_problems import SMALL

FUNCTIONS = """
import numba

SCALE = 0.5


@numba.njit
def helper(x):
    return SCALE * x


def bent(x):
    return helper(x) * x


def last(dataset):
    return {"q_last": dataset["q"].isel(time=-1) + SCALE}
"""

SWEEP = """
[[axes]]
key = "model.learning_rate"
values = [0.05]
[[axes]]
key = "model.activation"
values = ["quadratic", "__main__:bent"]
[methods]
order_parameters = ["final", "__main__:last"]
"""

SCRIPT = f"""{FUNCTIONS}
from pathlib import Path
import meanfield
from meanfield.sweep import parse_sweep
sweep = parse_sweep(Path("sweep.toml").read_text(), Path.cwd())
result = meanfield.run_sweep(sweep, "out", workers=1)
print(result.attrs["status"], bool((result["q_last"] == result["q_final"] + SCALE).all()))
print(result["q_final"].values.ravel().tolist())
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A sweep over functions of `__main__`, where they stand in this process alone."""
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "sweep.toml").write_text(f'problem = "small.toml"\n{SWEEP}')
    main = sys.modules["__main__"]
    made = {"__name__": "__main__"}
    exec(FUNCTIONS, made)
    for name in ("numba", "SCALE", "helper", "bent", "last"):
        monkeypatch.setattr(main, name, made[name], raising=False)
    return parse_sweep((tmp_path / "sweep.toml").read_text(), tmp_path)


# Workers of a cluster get them by the same bytes, and fingerprints of other processes are in
# tests/ingredients/test_fingerprints.py.
@pytest.mark.slow
def test_processes_get_them(sweep, inside, tmp_path):
    """As in a notebook: a script that no worker can import, because it stands in no file."""
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path, timeout=600)
    assert ended.returncode == 0, ended.stderr
    first, second = ended.stdout.splitlines()
    assert first == "complete True"
    again = run_sweep(sweep, tmp_path / "out")  # the same functions in another process: nothing is left to do
    assert not inside
    assert again["q_final"].values.ravel().tolist() == eval(second)


def test_workers_of_a_cluster_get_them(cluster, sweep, tmp_path):  # forked before the functions are there
    result = run_sweep(sweep, tmp_path / "out", scheduler=cluster[0])
    assert result.attrs["status"] == "complete"
    assert np.array_equal(result["q_last"], result["q_final"] + 0.5)
    alone = parse_problem(SMALL.replace("quadratic", "__main__:bent"))
    assert alone.fingerprints()["model.activation"]["sha256"] in result.attrs["fingerprints"]


def test_without_cloudpickle_they_are_refused_before_the_first_point(sweep, inside, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(InputError, match=r"'__main__:bent': .* get it by cloudpickle: pip install .*\[cluster\]"):
        run_sweep(sweep, tmp_path / "out")
    assert not inside
    assert not (tmp_path / "out").exists()
