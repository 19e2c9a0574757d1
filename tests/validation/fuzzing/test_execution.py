"""What a result names is never imported, opened or run: by no reader, by no script, not when it is solved again."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.problems.file import parse_problem
from meanfield.results.result import Result
from tests.example_problems import SMALL
from validation.fuzzing.judge_problems import run_script
from validation.fuzzing.judge_results import RUNS, read
from validation.fuzzing.trap import TRAP, in_child, set_trap

ADDRESS = SMALL.replace('"quadratic"', f'"{TRAP}:mark"') + f'[prior]\nname = "{TRAP}:mark"\n'
SHELL = SMALL.replace('"quadratic"', '"os:system"') + '[prior]\nname = "os:system"\n'
SAMPLES = SMALL.replace(
    'law = "three_point", second_moment = 1.1, fourth_moment = 6.05', f'law = "empirical", file = "{TRAP}.csv"'
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory in which everything that is named could be found."""
    (tmp_path / f"{TRAP}.py").write_text("open('marked', 'w')\ndef mark(x):\n    return x * x\n")
    (tmp_path / f"{TRAP}.csv").write_text("1.0\n-1.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_trap_springs(folder):
    def work():
        set_trap()
        meanfield.load_problem(folder / "problem.toml")

    for text in (ADDRESS, SAMPLES):
        (folder / "problem.toml").write_text(text)
        assert TRAP in in_child(work, 60)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ADDRESS, id="address"),
        pytest.param(SHELL, id="shell", marks=pytest.mark.slow),  # an address, too
        pytest.param(SAMPLES, id="samples"),
    ],
)
def test_nothing_of_a_result_is_executed(text, folder):
    paths = []
    for run in RUNS:
        if run.stem in ("density-2", "particles-2", "continuation-2", "dynamics-2"):  # each has readers of its own
            paths.append(folder / run.name)
            meanfield.save(xr.load_dataset(run).assign_attrs(problem=text), paths[-1])

    def work():
        set_trap()
        for path in paths:
            dataset = meanfield.load(path)
            read(dataset)
            run_script("compare", path, path, "-o", folder / "report.nc")
            for solve in (meanfield.solve_density, meanfield.solve_order_parameters, meanfield.simulate_sgd):
                with pytest.raises(InputError, match="because a result names it"):
                    solve(Result.of(dataset).problem)
        assert run_script("report", paths[0], "-o", folder / "page.html")[0] in (0, 2)
        for script in ("solve_density", "solve_order_parameters", "simulate_sgd", "analyse_dynamics"):
            assert run_script(script, paths[0], "-o", folder / "out.nc")[0] == 2

    assert in_child(work, 120) == ""
    assert not (folder / "marked").exists()


def test_states_of_a_checkpoint_are_data(tmp_path):
    problem = parse_problem(SMALL)
    record = meanfield.Checkpoint(tmp_path / "run", save_every=0.0)
    meanfield.simulate_sgd(problem, record=record)
    np.savez(tmp_path / "run" / "ensemble.npz", done=np.array([print], dtype=object))  # needs pickle
    with pytest.raises(InputError, match="is damaged"):
        meanfield.simulate_sgd(problem, record=meanfield.Checkpoint(tmp_path / "run"))
    (tmp_path / "run" / "run.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="unfinished run of another problem"):
        meanfield.simulate_sgd(problem, record=meanfield.Checkpoint(tmp_path / "run"))
