"""Problem files: what is wrong is refused with the key, the value and a remedy, before anything is computed."""

import re

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.problems.file import format_problem, load_problem, parse_problem
from tests.families.hidden_manifold.problems import problem

CLUSTERS = [{"weight": 0.3, "mean": [2.0, 0.0]}, {"weight": 0.7, "mean": [-0.6, 0.0]}]

WRONG = [
    ({"inputs": {"components": CLUSTERS[:1]}}, "inputs.components: their weights add up to 0.3, not to 1; correct"),
    ({"inputs": {"components": CLUSTERS}}, "inputs.components: the mean of the mixture is [0.18, 0.0], and centered"),
    (
        {"inputs": {"components": [{"weight": 1.0, "mean": [0.0]}]}},
        "components[0].mean has 1 number(s), but the teacher",
    ),
    (
        {"inputs": {"components": [{"weight": 1.0, "mean": 1.0}]}},
        "components[0].mean = 1.0: a number is the mean of ever",
    ),
    (
        {"inputs": {"components": [{"weight": 1.0, "mean": 1.0}], "components_drawn": "coordinate"}},
        "the mean of the mixture is 1.0, and centered = true asks for 0; set inputs.standardise",
    ),
    ({"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [1.0, 2.0]}}}, "have the mean 1.5, but it is 1"),
    ({"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [-1.0, 3.0]}}}, "eigenvalue -1 is negative"),
    (
        {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5], "weights": [0.5]}}},
        "2 eigenvalues but 1 probabilities",
    ),
    (
        {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5], "weights": [0.5, 0.4]}}},
        "probabilities add up to 0.9, not to 1",
    ),
    (
        {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5], "teacher": [1.0, 2.0]}}},
        "teacher = [1.0, 2.0] has the mean 1.5, but T is the mean",
    ),
    ({"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5], "teacher": [1.0]}}}, "but 1 of teacher"),
    (
        {"inputs": {"spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5], "teacher": [-1.0, 3.0]}}},
        "teacher -1.0 is negative",
    ),
    (
        {"inputs": {"aspect_ratio": 2.0, "spectrum": {"law": "atoms", "eigenvalues": [0.5, 1.5]}}},
        "inputs.spectrum: the share of the eigenvalue 0 is 0, but with aspect_ratio = 2",
    ),
    ({"teacher": {"overlap": [[1.0, 2.0], [2.0, 1.0]]}}, "teacher.overlap: has the eigenvalue -1, but products"),
    ({"teacher": {"overlap": [[1.0, 0.5], [0.2, 1.0]]}}, "teacher.overlap: is not symmetric: entry [0][1] is 0.5"),
    ({"teacher": {"overlap": [[1.0]]}}, "teacher.overlap: has 1 row(s) of [1] number(s), but output_weights has 2"),
    ({"teacher": {"output_weights": []}}, "teacher.output_weights"),
    (
        {"student": {"output_weights": [1.0]}},
        "student.elsewhere: has 2 row(s) of [2] number(s), but output_weights has 1",
    ),
    ({"student": {"elsewhere": [[0.1, 0.5], [0.5, 0.1]]}}, "student.elsewhere: has the eigenvalue -0.4"),
    ({"student": {"on_teacher": [[0.3, 0.0]]}}, "student.on_teacher: has 1 row(s), but output_weights has 2 unit(s)"),
    ({"student": {"on_teacher": [[0.3], [0.1]]}}, "student.on_teacher[0] has 1 number(s), but the teacher has 2"),
    ({"student": {"on_teacher": None}}, "student.on_teacher: is missing; add it, or set student.initial to 'random'"),
    ({"student": {"initial": "random"}}, "student.on_teacher: initial = 'random' needs only variance"),
    ({"student": {"variance": 1.0}}, "student.variance: belongs to initial = 'random'"),
    ({"inputs": {"nonlinearity": "tests.families.hidden_manifold.problems:EXPLOSIVE"}}, "f overflows; take one"),
    ({"inputs": {"nonlinearity": "tests.families.hidden_manifold.problems:constant"}}, "is constant, so that inputs"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words[:40] for _, words in WRONG])
def test_what_is_wrong_is_refused(changes, words):
    with pytest.raises(InputError, match=re.escape(words)):
        _ = problem(**changes).inputs.moments


def test_files_come_back_as_they_were(tmp_path):
    np.save(tmp_path / "rho.npy", np.linspace(0.5, 1.5, 7))
    spectrum = {"law": "file", "path": str(tmp_path / "rho.npy")}
    given = problem(inputs={"components": [{"weight": 1.0, "mean": [0.0, 0.0]}], "spectrum": spectrum})
    (tmp_path / "problem.toml").write_text(format_problem(given))
    assert load_problem(tmp_path / "problem.toml") == given
    with pytest.raises(InputError, match="no file is opened because a result names it"):
        _ = parse_problem(format_problem(given), trusted=False).inputs.spectrum.atoms


@pytest.mark.parametrize(
    ("values", "words"),
    [([[1.0, 1.0]], "one eigenvalue per row"), ([1.0, np.nan], "not finite"), ([2.0, 2.0], "have the mean 2")],
)
def test_files_of_eigenvalues_that_are_none(tmp_path, values, words):
    np.save(tmp_path / "rho.npy", values)
    spectrum = {"law": "file", "path": "rho.npy"}
    text = format_problem(problem()).replace('law = "marchenko_pastur"', 'law = "file"\npath = "rho.npy"')
    with pytest.raises(InputError, match=words):
        parse_problem(text, tmp_path)
    with pytest.raises(InputError, match=words):
        problem(inputs={"spectrum": spectrum | {"path": str(tmp_path / "rho.npy")}})


def test_activations_take_parameters():
    own = {"activation": "leaky_relu", "activation_parameters": {"slope": 0.25}}
    student = problem(student=own).student
    assert student.activation_functions.value(-2.0) == -0.5
    assert student.in_words == "leaky_relu, slope = 0.25"
