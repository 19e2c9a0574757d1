"""What the study on residual networks decides from given numbers, its tables, and its command on a user's problem."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.errors import InputError
from tests.families.latent_tree.images.problems import written
from tests.ingredients.images.files import random_pixels, write_cifar10, write_cifar10_pickle, write_stl10
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


def cifar10(folder, images=16):
    """Two batches as they are downloaded, of the Python and of the binary version, and the lines that name them."""
    labels = np.arange(images) % 3
    half = slice(0, images // 2), slice(images // 2, images)
    write_cifar10_pickle(folder / "data_batch_1", random_pixels(images, 32, 32, 3)[half[0]], labels[half[0]].tolist())
    write_cifar10(folder / "data_batch_2.bin", random_pixels(images, 32, 32, 3)[half[1]], labels[half[1]].tolist())
    return 'format = "cifar10"\nimages = ["data_batch_1", "data_batch_2.bin"]'


def stl10(folder, images=16):
    """Images and labels, and the lines that name them."""
    write_stl10(folder / "train_X.bin", random_pixels(images, 96, 96, 3))
    (folder / "train_y.bin").write_bytes(bytes((1 + np.arange(images) % 3).tolist()))
    return 'format = "stl10"\nimages = "train_X.bin"\nlabels = "train_y.bin"'


def page_problem(lines, **changes):
    """The problem of the page on real images on other files, with other lines."""
    page = Path("docs/latent_tree_digits.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```text\n(family.*?)```", page, re.DOTALL)
    text = re.sub(r'format = "cifar10"\nimages = \[.*?\]', lines, text)
    for key, value in changes.items():
        text, count = re.subn(rf"\b{key} = (\[.*?\]|[^ \n]+)", f"{key} = {value}", text)
        assert count == 1
    return text


SMALL = {"widths": "[4, 3]", "channels": "[8, 4]", "batch_size": 4, "stop": 0.05, "held_out": 0.25}
SMALL |= {"longest_days": "1000.0\nloss_batches = 1"}


@pytest.mark.torch
@pytest.mark.parametrize("files", [cifar10, stl10])
def test_the_command_of_the_page_runs_on_files_in_the_published_formats(tmp_path, files):
    pytest.importorskip("torch")
    path = tmp_path / "pictures.toml"
    path.write_text(page_problem(files(tmp_path), **SMALL))
    command = [sys.executable, "-m", "validation.latent_tree.convolutions", str(path), "--seeds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("| exact, noise |") == 1
    accuracy = xr.load_dataset(tmp_path / "pictures.nc")["sgd_accuracy"]
    assert accuracy.shape == (len(convolutions.ROWS), 2, 6)
    assert np.isfinite(accuracy).all()
    assert (tmp_path / "pictures.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("lines", "changes", "words"),
    [
        ("", {"held_out": 0.0}, "data.held_out = 0"),
        ("format = 'stl10'\nimages = 'train_X.bin'", {}, "labels"),
        (None, {"kind": '"infonce"'}, "loss.kind = 'infonce'"),
    ],
)
def test_files_that_make_no_table_are_refused_before_training(tmp_path, lines, changes, words):
    own = stl10(tmp_path)
    text = page_problem(lines or own, **SMALL | changes)
    path = tmp_path / "pictures.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(words)):
        convolutions.trained(meanfield.load_problem(path), 2, tmp_path / "pictures")
