"""What problems of every family name outside of their texts: fingerprints by key, and no trace of what it was."""

import os
import pickle
import sys

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.problems.file import format_problem, parse_problem, problem_from
from meanfield.problems.problem_keys import with_values
from tests.families.alpha_contrastive import problems as alpha_contrastive
from tests.families.contrastive.channels.problems import standard
from tests.families.hidden_manifold import problems as hidden_manifold
from tests.families.latent_tree.images.problems import written
from tests.ingredients.images.files import write_idx

MODULE = """
import math
import numpy as np
from meanfield import Activation, Penalty

def slope(x):
    return {factor} + 0.0 * x

line = Activation(lambda x: {factor} * x, slope)
square = Penalty(lambda x: {factor} * x * x, lambda x: 2.0 * {factor} * x)
falling = Activation(lambda x: {factor} * math.exp(-x), lambda x: -{factor} * math.exp(-x))

def images():
    return np.full((10, 4, 4), {factor}), np.arange(10) % 2
"""

POINT = 0.5


def of_hidden_manifold(folder, **changes):
    return problem_from(hidden_manifold.data(**changes), folder)


def of_alpha_contrastive(folder, **changes):
    return problem_from(alpha_contrastive.data(**changes), folder)


def of_images(folder, text):
    return parse_problem(written(data=f"law = 'arrays'\n{text}"), folder)


PIXELS = {"law": "images", "file": "pixels", "rows": 2, "columns": 2}
OF_PIXELS = {"data": PIXELS, "filters": {"count": 2}, "model": {"activation": "tanh", "layers": 2, "outputs": 2}}

CASES = {
    "inputs.nonlinearity": (
        lambda folder: of_hidden_manifold(folder, inputs={"nonlinearity": "own_code:line"}),
        lambda problem: problem.inputs.function.value(POINT) / POINT,
    ),
    "teacher.activation": (
        lambda folder: of_hidden_manifold(folder, teacher={"activation": "own_code:line"}),
        lambda problem: problem.teacher.activation_functions.value(POINT) / POINT,
    ),
    "inputs.spectrum.path": (
        lambda folder: of_hidden_manifold(folder, inputs={"spectrum": {"law": "file", "path": "spectrum.npy"}}),
        lambda problem: 10.0 * (problem.inputs.spectrum.atoms.rho[0] - 0.8),
    ),
    "importance.kind": (
        lambda folder: of_alpha_contrastive(folder, importance={"kind": "own_code:falling"}),
        lambda problem: problem.importance.own.value(0.0),
    ),
    "data.file": (
        lambda folder: of_alpha_contrastive(folder, **OF_PIXELS),
        lambda problem: float(problem.data.atoms[0, 0, 0]),
    ),
    "data.images": (
        lambda folder: of_images(folder, "images = 'images.npz'"),
        lambda problem: float(problem.data.read.pixels[0, 0, 0, 0]),
    ),
    "data.labels": (
        lambda folder: of_images(folder, "images = 'pixels'\nlabels = 'labels'\nformat = 'mnist'\nheld_out = 0.0"),
        lambda problem: float(problem.data.read.labels[0]),
    ),
}
OF_FUNCTIONS = {
    "data.images": (
        lambda folder: of_images(folder, "images = 'own_code:images'"),
        lambda problem: float(problem.data.read.pixels[0, 0, 0, 0]),
    )
}


def write(folder, factor):
    """Write files with a number in them, all of one size and time stamp."""
    (folder / "own_code.py").write_text(MODULE.format(factor=float(factor)))
    np.save(folder / "spectrum.npy", np.array([0.8 + 0.1 * factor, 1.2 - 0.1 * factor]))
    np.savez(folder / "images.npz", images=np.full((4, 4, 4), float(factor)), labels=np.arange(4) % 2)
    (folder / "pixels").unlink(missing_ok=True)
    write_idx(folder / "pixels", np.full((3, 2, 2), factor, dtype=np.uint8))
    write_idx(folder / "labels", np.array([factor, 1, 1], dtype=np.uint8))
    for path in folder.iterdir():
        if path.is_file():
            os.utime(path, (1e9, 1e9))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


@pytest.mark.parametrize(
    ("key", "make", "value"), [(key, *case) for each in (CASES, OF_FUNCTIONS) for key, case in each.items()]
)
def test_code_and_files_that_change(folder, key, make, value):
    problems = []
    for factor in (1, 2):
        write(folder, factor)
        problems.append(make(folder))
    assert [value(problem) for problem in problems] == pytest.approx([1.0, 2.0], rel=1e-12)  # rounding
    first, second = (problem.fingerprints()[key] for problem in problems)
    assert first["what"] == second["what"]
    assert len({"", first["sha256"], second["sha256"]}) == 3
    write(folder, 1)
    assert make(folder).fingerprints()[key] == first


@pytest.mark.parametrize("key", CASES)
def test_nothing_is_opened_or_imported_because_a_result_says_so(folder, key):
    write(folder, 1)
    make, value = CASES[key]
    stored = parse_problem(format_problem(make(folder)), trusted=False)
    for problem in (stored, pickle.loads(pickle.dumps(stored))):
        assert problem.fingerprints()[key]["sha256"] == ""
        with pytest.raises(InputError, match="because a result names it"):
            value(problem)


def test_penalties(folder):
    problems = []
    for factor in (1, 2):
        write(folder, factor)
        problems.append(with_values(standard(), {"decorrelation.penalty": "own_code:square"}, folder))
    assert [problem.decorrelation.functions.value(1.0) for problem in problems] == [1.0, 2.0]
    first, second = (problem.fingerprints()["decorrelation.penalty"]["sha256"] for problem in problems)
    assert first != second


def test_arrays_of_a_module_that_change_in_place(folder):
    (folder / "own_code.py").write_text("import numpy as np\nPIXELS = np.full((6, 4, 4), 1, dtype=np.uint8)\n")
    before = of_images(folder, "images = 'own_code:PIXELS'")
    sys.modules["own_code"].PIXELS[:] = 2
    after = of_images(folder, "images = 'own_code:PIXELS'")
    assert [problem.data.read.pixels.max() for problem in (before, after)] == [1, 2]
    assert before.fingerprints()["data.images"] != after.fingerprints()["data.images"]
