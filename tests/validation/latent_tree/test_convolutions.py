"""What the study on residual networks decides from given numbers, its tables, and its command on a user's problem."""

import sys

import numpy as np
import pytest
import xarray as xr

import meanfield
from tests.families.latent_tree.images.problems import written
from validation.latent_tree import convolutions


def made_up(seeds=5, **gains):
    """Accuracies that differ by given points from one row to another, and by a tenth of a point between seeds."""
    accuracy = np.full((len(convolutions.ROWS), seeds, 6), 0.9)
    for i, row in enumerate(convolutions.ROWS):
        accuracy[i] += 0.01 * gains.get(row, 0.0) + 0.001 * i * np.linspace(-1.0, 1.0, seeds)[:, None]
    coordinates = {"row": list(convolutions.ROWS), "seed": np.arange(seeds), "epoch": np.linspace(0.0, 20.0, 6)}
    runs = xr.Dataset({"sgd_accuracy": (("row", "seed", "epoch"), accuracy)}, coordinates)
    return xr.merge([convolutions.theory(), runs])


def verdicts(numbers):
    return {statement.text: statement.holds for statement in convolutions.judge(numbers)}


def test_equal_rows_are_equally_good_and_nothing_helps():
    assert list(verdicts(made_up()).values()) == [True, None, None, True, None, None]
    assert convolutions.judge(convolutions.theory()) == []


def test_rows_that_differ_are_told_apart():
    found = verdicts(made_up(**{"beta = -0.5": 2.0, "beta = 0.2": -2.0, "exact, H = 2": -2.0, "exact, noise": -1.0}))
    assert list(found.values()) == [False, True, True, False, True, True]


def test_tables_have_the_form_of_print():
    assert convolutions.in_print(np.array([83.66, 83.84, 84.02])) == "83.84(18)"
    lines = convolutions.table(made_up()).splitlines()
    assert lines[0] == "| accuracy, % | epoch 4 | epoch 12 | epoch 20 |"
    assert lines[2] == "| InfoNCE | 90.00(0) | 90.00(0) | 90.00(0) |"
    assert len(convolutions.draw(made_up()).axes) == 2


def test_printed_numbers_differ_by_less_than_a_point_where_the_page_says_so():
    printed = convolutions.theory()["printed"]
    assert float(abs(printed.sel(row="exact, H = 2") - printed.sel(row="InfoNCE")).max()) == pytest.approx(0.36)


@pytest.mark.torch
def test_the_command_trains_all_rows_of_a_problem_of_a_user(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    path = tmp_path / "mine.toml"
    network = "widths = [3]\noutput_normalisation = true\nconvolution = { channels = [4], blocks = 1 }"
    training = "optimiser = 'adam'\nlearning_rate = 0.01\nbatch_size = 8"
    text = written(network=network, loss="kind = 'nt_xent'", training=training, time="stop = 0.1\noutputs = 6")
    path.write_text(text)
    monkeypatch.setattr(sys, "argv", ["convolutions", str(path), "--seeds", "2"])
    assert convolutions.main() == 0
    first = capsys.readouterr().out
    assert "| exact, noise |" in first
    assert "paper, table 3" in first
    kept = xr.load_dataset(tmp_path / "mine.nc")
    assert kept["epoch"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    starts = [meanfield.load(tmp_path / "mine" / f"{row}.nc")["layer_weights"][:, 0] for row in convolutions.ROWS]
    assert all(np.array_equal(starts[0], other) for other in starts)  # runs of a seed begin with the same weights
    assert not np.array_equal(starts[0][0], starts[0][1])
    monkeypatch.setattr(meanfield, "simulate_sgd", None)  # rows that are done are not trained again
    assert convolutions.main() == 0
    assert capsys.readouterr().out == first
