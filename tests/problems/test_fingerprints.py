"""Fingerprints of problems: what they name, and their texts do not hold."""

import numpy as np
import pytest

from meanfield.problems.file import format_problem, load_problem, parse_problem
from tests.example_problems import features, problem_text

OWN = """
import math

SCALE = 2.0

def helper(x):
    return math.tanh(SCALE * x)

def smooth(x):
    return helper(x)

def pull(w):
    return w
"""


def text_of(activation, prior, hidden='law = "empirical", file = "samples.npy"'):
    table = f"{{ hidden = {{ {hidden} }}, initial_overlap = 0.3 }}"
    return problem_text(f'model.activation = "{activation}"', features(table), f'prior.name = "{prior}"')


@pytest.fixture
def problem_file(tmp_path, request):
    """A problem with functions of its own, and a file of samples."""
    module = f"own_{request.node.name.partition('[')[0]}"
    (tmp_path / f"{module}.py").write_text(OWN)
    np.save(tmp_path / "samples.npy", [-1.0, 0.5, 2.0])
    path = tmp_path / "problem.toml"
    path.write_text(text_of(f"{module}:smooth", f"{module}:pull"))
    return path


def test_all_that_a_problem_names(problem_file):
    found = load_problem(problem_file).fingerprints()
    assert sorted(found) == ["features[0].hidden.file", "model.activation", "prior.name"]
    assert all(len(each["sha256"]) == 64 for each in found.values())
    assert found["features[0].hidden.file"]["what"] == str(problem_file.parent / "samples.npy")
    assert found["model.activation"]["version"].startswith("python 3.")


def test_a_problem_of_the_library_names_nothing():
    assert parse_problem(text_of("tanh", "l2", 'law = "rademacher"')).fingerprints() == {}


def test_what_a_result_names_is_unknown(problem_file):
    text = format_problem(load_problem(problem_file))
    found = parse_problem(text, trusted=False).fingerprints()
    assert {each["sha256"] for each in found.values()} == {""}
    assert sorted(found) == ["features[0].hidden.file", "model.activation", "prior.name"]
