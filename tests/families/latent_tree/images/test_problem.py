"""Problem files with images: where images come from, and what is refused."""

import re

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.problems.file import format_problem, load_problem, parse_problem
from tests.families.latent_tree.images.problems import BARS, problem, written
from tests.ingredients.images.files import random_pixels, write_cifar10, write_idx

WRONG = [
    ("data", "law = 'arays'", "data.law = 'arays': unknown; did you mean 'arrays'?"),
    ("data", f"images = '{BARS}'", "data.law: is missing; known: ring_objects, arrays"),
    ("data", "law = ['arrays']", "data.law = ['arrays']: unknown"),
    ("data", "law = 'arrays'", "data.images: is missing; add it"),
    ("data", "law = 'arrays'\nimages = ['a.npz', 'b.npz']", "data.images: a list belongs to format = 'cifar10'"),
    ("data", f"law = 'arrays'\nimages = '{BARS}'\nformat = 'mnist'", "data.format: 'mnist' is of files"),
    ("data", "law = 'arrays'\nimages = 'a.npz'\nlabels = 'b.npy'", "data.labels: these images come with labels"),
    ("data", f"law = 'arrays'\nimages = '{BARS}'\naugmentation = {{ shft = 1 }}", "unknown key 'shft'; did you mean"),
    ("network", "widths = [3]\nepsilon = 0.1", "network.epsilon: belongs to output_normalisation = true"),
    ("network", "nodes_per_latent = 3", "network: unknown key 'nodes_per_latent'"),
    ("training", "learning_rate = 1e-19", "takes 1e+19 steps of SGD"),
    ("loss", "kind = 'nt_xent'\nbeta = -1.0", "loss.beta = -1: kind = 'nt_xent' is divided by 1 + beta"),
    ("tree", "depth = 2", "unknown key 'tree'"),
]


@pytest.mark.parametrize(("table", "text", "words"), WRONG, ids=[words[:40] for _, _, words in WRONG])
def test_faults_are_refused_with_key_value_and_remedy(table, text, words):
    with pytest.raises(InputError, match=re.escape(words)):
        parse_problem(written(**{table: text}))


UNUSABLE = [
    (
        {"loss": "kind = 'nt_xent'", "operator": "images = 6\nviews = 1"},
        "operator.views = 1: loss.kind = 'nt_xent' takes batches of two views",
    ),
    ({"loss": "kind = 'nt_xent'\nbeta = 0.2"}, "loss.beta = 0.2: with loss.kind = 'nt_xent' it is trained"),
    ({"operator": "images = 17"}, "operator.images = 17: there are 16 images to train on; lower it"),
    ({"operator": "images = 6\nviews = 2000", "loss": "kind = 'infonce'"}, "takes 1.44e+08 pairs of views, and at"),
]


@pytest.mark.parametrize(("tables", "words"), UNUSABLE, ids=[words[:40] for _, words in UNUSABLE])
def test_operators_that_do_not_fit_are_refused(tables, words):
    with pytest.raises(InputError, match=re.escape(words)):
        meanfield.solve(problem(**tables), "operator")


def test_methods_of_trees_are_not_those_of_images():
    with pytest.raises(InputError, match=r"method 'population': data.law = 'arrays'.*'particles', or 'operator'"):
        meanfield.solve(problem(), "population")


def test_a_problem_is_written_and_read_again():
    assert parse_problem(format_problem(problem())) == problem()


def loaded(folder, data):
    (folder / "problem.toml").write_text(written(data=f"law = 'arrays'\n{data}"))
    return load_problem(folder / "problem.toml")


def test_images_come_from_files_beside_the_problem(tmp_path):
    pixels, colour = random_pixels(10, 4, 3), random_pixels(4, 32, 32, 3)
    write_idx(tmp_path / "images", pixels)
    write_idx(tmp_path / "labels", np.arange(10, dtype=np.uint8))
    found = loaded(tmp_path, "images = 'images'\nlabels = 'labels'\nformat = 'mnist'")
    assert found.widths == (12, 6, 3)
    assert np.array_equal(found.data.read.values()[..., 0], pixels / 255.0)
    for number, half in enumerate((slice(0, 2), slice(2, 4))):
        write_cifar10(tmp_path / f"batch_{number}.bin", colour[half], [number] * 2)
    found = loaded(tmp_path, "images = ['batch_0.bin', 'batch_1.bin']\nformat = 'cifar10'\nwhite = 51.0")
    assert np.array_equal(found.data.read.values(), colour / 51.0)
    assert found.data.read.labels.tolist() == [0, 0, 1, 1]


OWN = """
import numpy as np
def pair(): return np.ones((4, 2, 2)), np.arange(4)
def named(): return {"images": np.ones((4, 2, 2)), "target": np.arange(4)}
alone = np.ones((4, 2, 2))
def flat(): return np.ones((4, 4))
def broken(): raise OSError("no disk")
def unnamed(): return {"pictures": 1}
"""


def test_images_come_from_a_users_module(tmp_path):
    (tmp_path / "images_of_a_user.py").write_text(OWN)
    for name, labelled in (("pair", True), ("named", True), ("alone", False)):
        read = loaded(tmp_path, f"images = 'images_of_a_user:{name}'").data.read
        assert read.pixels.shape == (4, 2, 2, 1)
        assert (read.labels is not None) is labelled
    for name, words in (
        ("flat", "data.images: .*holds float64 of shape \\(4, 4\\)"),
        ("broken", "data.images: .*OSError: no disk"),
        ("unnamed", "data.images: .*returns pictures, and no 'images'"),
        ("none", "data.images: .*has no 'none'"),
    ):
        with pytest.raises(InputError, match=words):
            loaded(tmp_path, f"images = 'images_of_a_user:{name}'")


@pytest.mark.parametrize("images", ["images.npz", "images_that_a_result_names:trap"])
def test_what_a_result_names_is_not_opened(tmp_path, monkeypatch, images):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "images.npz", images=np.ones((4, 2, 2)))
    (tmp_path / "images_that_a_result_names.py").write_text("raise SystemExit")
    found = parse_problem(written(data=f"law = 'arrays'\nimages = '{images}'"), trusted=False)
    with pytest.raises(InputError, match="because a result names it"):
        _ = found.data.read


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"data\.images: .*none\.npz: no such file of images"):
        loaded(tmp_path, "images = 'none.npz'")


def test_the_split_is_the_same_in_every_run_and_covers_all():
    trained, held = problem().data.split
    assert len(held) == 4
    assert sorted([*trained, *held]) == list(range(20))
    again = problem(particles="seed = 5").data.split
    assert np.array_equal(again[0], trained)


def test_labels_that_cannot_be_read_are_to_blame_themselves(tmp_path):
    np.save(tmp_path / "images.npy", np.ones((10, 4, 4)))
    (tmp_path / "labels.npy").write_text("0 1 2")
    with pytest.raises(InputError, match=r"data.labels: .*labels.npy: cannot be read as labels"):
        loaded(tmp_path, "images = 'images.npy'\nlabels = 'labels.npy'")


@pytest.mark.parametrize("kind", [np.uint16, np.int8, np.int64])
def test_whole_numbers_of_other_types_do_not_say_what_is_white(tmp_path, kind):
    pixels = np.arange(160).reshape(10, 4, 4).clip(0, 100).astype(kind)
    np.save(tmp_path / "images.npy", pixels)
    with pytest.raises(InputError, match=rf"data.white: is missing.*the largest here is 100.*{np.iinfo(kind).max}"):
        loaded(tmp_path, "images = 'images.npy'")
    found = loaded(tmp_path, "images = 'images.npy'\nwhite = 100.0").data.read
    assert np.array_equal(found.values()[..., 0], pixels / 100)
    (tmp_path / f"own_{kind.__name__}.py").write_text("import numpy\nimages = numpy.ones((10, 4, 4), numpy.uint16)\n")
    with pytest.raises(InputError, match=r"data.white: is missing.*65535"):
        loaded(tmp_path, f"images = 'own_{kind.__name__}:images'")
