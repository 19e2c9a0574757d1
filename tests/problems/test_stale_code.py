"""Functions and files that change while a process runs: a problem is solved with what it was loaded with, and a problem
that is loaded again with what there is now, with another fingerprint."""

import copy
import importlib
import os
import pickle
import sys

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.problems.file import load_problem
from meanfield.problems.problem_keys import with_value
from tests.example_problems import features, problem_text

MODULE = """
import numpy as np
from {helpers} import helper
SCALE = {scale}
TABLE = np.array([1.0, 2.0])
def pull(w, shift={shift}):
    return {factor} * helper(w) + SCALE * TABLE[1] + shift
def make(width=1.0):
    width = {closed} * width
    def inner(w):
        return width * w
    return inner
"""

HELPERS = """
SLOPE = {slope}
def helper(w):
    return SLOPE * w
"""

FIRST = {"scale": 1.0, "shift": 2.0, "factor": 3.0, "closed": 4.0, "slope": 5.0}
POINT = np.array([1.0])


class Own:
    """A folder with a problem and its modules, whose files keep size and time stamp when they are edited."""

    def __init__(self, folder, name):
        self.folder, self.module, self.helpers = folder, f"own_{name}", f"help_{name}"
        self.write(**FIRST)

    def write(self, **numbers):
        numbers = FIRST | numbers | {"helpers": self.helpers}
        for name, text in ((self.module, MODULE), (self.helpers, HELPERS)):
            write_alike(self.folder / f"{name}.py", text.format(**numbers).encode())

    def load(self, prior="pull", parameters="", hidden='law = "rademacher"'):
        path = self.folder / "problem.toml"
        prior = prior if ":" in prior else f"{self.module}:{prior}"
        table = f"{{ hidden = {{ {hidden} }}, initial_overlap = 0.3 }}"
        keys = f'name = "{prior}", parameters = {{ {parameters} }}'
        path.write_text(problem_text(features(table), f"prior = {{ {keys} }}"))
        return load_problem(path)


def write_alike(path, data):
    """Write a file with the time stamp of all others."""
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))


def check_changed(own, change, value_before, value_after, **options):
    """Check that a problem keeps its function, and that one which is loaded after a change has the new one."""
    before = own.load(**options)
    assert before.prior.force(POINT)[0] == value_before
    assert own.load(**options).prior.functions is before.prior.functions  # compiled once
    change()
    after = own.load(**options)
    assert before.prior.force(POINT)[0] == with_value(before, "prior.strength", 1.0).prior.force(POINT)[0]
    assert before.prior.force(POINT)[0] == value_before
    assert after.prior.force(POINT)[0] == value_after
    assert before.fingerprints()["prior.name"] != after.fingerprints()["prior.name"]


@pytest.fixture
def own(tmp_path, request, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Own(tmp_path, request.node.name.partition("[")[0])


EDITS = {
    "function": ({"factor": 7.0}, 39.0),
    "helper": ({"slope": 6.0}, 22.0),
    "constant": ({"scale": 2.0}, 21.0),
    "default": ({"shift": 3.0}, 20.0),
}


@pytest.mark.parametrize("what", EDITS)
def test_edited_files(own, what):
    edit, value = EDITS[what]
    check_changed(own, lambda: own.write(**edit), 19.0, value)


@pytest.mark.parametrize("what", EDITS)
def test_reloaded_modules(own, what):
    edit, value = EDITS[what]

    def reload():
        own.write(**edit)
        for name in (own.helpers, own.module):
            os.unlink(importlib.util.cache_from_source(sys.modules[name].__file__))
            sys.path.append(str(own.folder))
            importlib.reload(sys.modules[name])
            sys.path.remove(str(own.folder))

    check_changed(own, reload, 19.0, value)


def test_closed_over_values(own):
    check_changed(own, lambda: own.write(closed=8.0), 2.0, 4.0, prior="make", parameters="width = 0.5")


def test_constants_that_change_in_memory(own):
    check_changed(own, lambda: setattr(sys.modules[own.module], "SCALE", 2.0), 19.0, 21.0)
    own.load()
    helpers = sys.modules[own.helpers]
    check_changed(own, lambda: setattr(helpers, "SLOPE", 6.0), 21.0, 24.0)


def test_arrays_that_change_in_place(own):
    check_changed(own, lambda: sys.modules[own.module].TABLE.__setitem__(1, 3.0), 19.0, 20.0)


CELLS = {"function": "def cell(w): return 2.0 * w", "constant": "WIDTH = 2.0", "helper": "def inner(w): return 2.0 * w"}


@pytest.mark.parametrize("what", CELLS)
def test_cells_of_a_notebook_that_are_run_again(own, what, monkeypatch):
    names = vars(sys.modules["__main__"])
    for name in ("WIDTH", "inner", "cell"):
        monkeypatch.setitem(names, name, None)
    exec("WIDTH = 1.0\ndef inner(w): return WIDTH * w\ndef cell(w): return inner(w)", names)
    check_changed(own, lambda: exec(CELLS[what], names), 1.0, 2.0, prior="__main__:cell")


@pytest.mark.parametrize("versions", [("1.0", "2.0"), ("1.0", "1.0")], ids=["upgraded", "worked on"])
def test_packages(own, tmp_path, monkeypatch, versions):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    code = "__version__ = '{}'\nSCALE = {}\ndef pull(w):\n    return SCALE * w\n"

    def install(version, scale):
        (folder / "stale_tool.py").write_text(code.format(version, scale))

    def upgrade():
        install(versions[1], 2.0)
        del sys.modules["stale_tool"]
        importlib.invalidate_caches()
        os.unlink(importlib.util.cache_from_source(str(folder / "stale_tool.py")))

    install(versions[0], 1.0)
    check_changed(own, upgrade, 1.0, 2.0, prior="stale_tool:pull")
    assert own.load(prior="stale_tool:pull").fingerprints()["prior.name"]["version"].endswith(f"tool {versions[1]}")
    check_changed(own, lambda: setattr(sys.modules["stale_tool"], "SCALE", 3.0), 2.0, 3.0, prior="stale_tool:pull")


def write_npy(path, values):
    np.save(path, np.array(values))


def write_csv(path, values):
    path.write_text("\n".join(f"{value:.1f}" for value in values))


@pytest.mark.parametrize("write", [write_npy, write_csv])
def test_files_of_the_same_size_and_time_stamp(own, write):
    path = own.folder / f"samples.{write.__name__[-3:]}"
    hidden = f'law = "empirical", file = "{path.name}"'
    problems = []
    for values in ([1.0, 2.0], [1.0, 3.0]):
        write(path, values)
        write_alike(path, path.read_bytes())
        problems.append(own.load(hidden=hidden))
    for problem, last in zip(problems, (2.0, 3.0), strict=True):
        assert problem.features[0].hidden.atoms[0].ravel().tolist() == [1.0, last]
        assert with_value(problem, "features[0].initial_overlap", 0.1).features[0].hidden.atoms[0].max() == last
    first, second = (problem.fingerprints()["features[0].hidden.file"] for problem in problems)
    assert first["what"] == second["what"]
    assert first["sha256"] != second["sha256"]


def test_problems_that_are_sent_to_another_process(own):
    own.write(scale=1.0)
    problem = own.load()
    hidden = f'law = "empirical", file = "{own.folder}/samples.npy"'
    write_npy(own.folder / "samples.npy", [1.0, 2.0])
    of_file = own.load(hidden=hidden)
    sys.path.append(str(own.folder))
    try:
        sent, sent_file = pickle.loads(pickle.dumps(problem)), pickle.loads(pickle.dumps(of_file))
        assert sent.prior.force(POINT)[0] == 19.0
        assert sent.fingerprints() == problem.fingerprints()
        assert copy.deepcopy(problem).prior.functions is problem.prior.functions
        sent = pickle.loads(pickle.dumps(problem))
        own.write(scale=2.0)
        write_npy(own.folder / "samples.npy", [1.0, 3.0])
        with pytest.raises(InputError, match="is another one here than where the problem was loaded"):
            sent.prior.force(POINT)
        with pytest.raises(InputError, match="is another one here than where the problem was loaded"):
            _ = sent_file.features[0].hidden.atoms
    finally:
        sys.path.remove(str(own.folder))
