"""Modules of users that are edited while a process runs."""

import importlib
import os
import sys
import warnings

import pytest

from meanfield.ingredients.module_sources import fingerprint_of_module
from meanfield.ingredients.user_functions import load_object

MAIN = """
# {comment}
from {helpers} import helper
def smooth(x):
    return helper(x) + {number}
"""

HELPERS = """
SCALE = {number}
def helper(x):
    return SCALE * x
"""


class Folder:
    """Folder with two modules, of which one imports the other; each edit keeps size and time stamp."""

    def __init__(self, path, name):
        self.path, self.main, self.helpers = path, f"main_{name}", f"helpers_{name}"

    def write(self, main=1.0, helpers=2.0, comment="one"):
        for name, text in (
            (self.main, MAIN.format(helpers=self.helpers, number=main, comment=comment)),
            (self.helpers, HELPERS.format(number=helpers)),
        ):
            path = self.path / f"{name}.py"
            path.write_text(text)
            os.utime(path, (1e9, 1e9))

    def smooth(self):
        return load_object(f"{self.main}:smooth", self.path)


@pytest.fixture
def folder(tmp_path, request, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made = Folder(tmp_path, request.node.name.partition("[")[0])
    made.write()
    return made


@pytest.mark.parametrize("edit", [{"main": 3.0}, {"helpers": 5.0}], ids=["function", "constant of a helper"])
def test_an_edited_module_is_imported_anew(folder, edit):
    before = folder.smooth()
    folder.write(**edit)
    after = folder.smooth()
    values = {"main": 1.0, "helpers": 2.0} | edit
    assert before(1.0) == 3.0
    assert after(1.0) == values["main"] + values["helpers"]


def test_nothing_is_imported_anew_for_a_comment(folder):
    before = folder.smooth()
    folder.write(comment="two")
    assert folder.smooth() is before


def test_compiled_code_of_another_file_with_the_same_size_and_time_stamp_is_not_taken(folder):
    folder.smooth()
    for name in (folder.main, folder.helpers):  # as a new process, which has the cache of the first alone
        del sys.modules[name]
    folder.write(main=4.0)
    assert folder.smooth()(0.0) == 4.0


def test_a_module_that_cannot_be_imported_any_more(folder):
    folder.smooth()
    (folder.path / f"{folder.main}.py").write_text("def smooth(x:\n")
    with pytest.raises(ValueError, match=r"cannot be imported .SyntaxError"):
        folder.smooth()


@pytest.mark.parametrize("edit", [{"main": 3.0}, {"helpers": 5.0}], ids=["function", "constant"])
def test_a_module_that_differs_from_its_file_since_others_imported_it(folder, edit, monkeypatch):
    monkeypatch.syspath_prepend(folder.path)
    importlib.import_module(folder.main)
    folder.write(**edit)
    with pytest.warns(UserWarning, match=r"and the module in memory differ in (smooth|SCALE).*importlib.reload"):
        assert folder.smooth()(1.0) == 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        folder.smooth()


def test_a_module_that_was_reloaded_is_taken_as_it_is(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder.path)
    module = importlib.import_module(folder.main)
    folder.smooth()
    folder.write(main=6.0)
    os.unlink(importlib.util.cache_from_source(module.__file__))  # which Python would take for the file
    importlib.reload(module)
    assert folder.smooth() is module.smooth
    assert module.smooth(0.0) == 6.0


def test_modules_in_folders_without_a_file_of_their_own(tmp_path):
    (tmp_path / "bare_folder").mkdir()
    path = tmp_path / "bare_folder" / "inner.py"
    path.write_text("def f(x):\n    return 1.0\n")
    assert load_object("bare_folder.inner:f", tmp_path)(0.0) == 1.0
    path.write_text("def f(x):\n    return 2.0\n")
    assert load_object("bare_folder.inner:f", tmp_path)(0.0) == 2.0


def test_relative_imports_are_followed(tmp_path):
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "numbers_.py").write_text("ONE = 1.0\n")
    (package / "main.py").write_text("from . import numbers_\ndef f(x):\n    return numbers_.ONE\n")
    assert load_object("own_package.main:f", tmp_path)(0.0) == 1.0
    (package / "numbers_.py").write_text("ONE = 2.0\n")
    assert load_object("own_package.main:f", tmp_path)(0.0) == 2.0


def test_fingerprints_of_modules_follow_what_they_import(folder):
    folder.smooth()
    before = fingerprint_of_module(folder.main, "main")
    folder.write(helpers=7.0)
    folder.smooth()
    assert fingerprint_of_module(folder.main, "main")["sha256"] != before["sha256"]
    folder.write(comment="other")
    folder.smooth()
    assert fingerprint_of_module(folder.main, "main")["sha256"] == before["sha256"]


def test_fingerprints_of_packages_are_their_versions():
    importlib.import_module("pydantic.fields")
    assert fingerprint_of_module("pydantic.fields", "pydantic")["version"].startswith("pydantic 2")


@pytest.mark.parametrize("layout", ["modules", "package", "folder"])
def test_helpers_of_one_name_beside_two_problem_files(tmp_path, layout):
    name = f"twins_{layout}"
    address = f"{name}:smooth" if layout == "modules" else f"{name}.main:smooth"
    helpers = f"{name}_helpers" if layout == "modules" else f"{name}.helpers"
    for number in (1.0, 2.0):
        inner = tmp_path / f"{number}" if layout == "modules" else tmp_path / f"{number}" / name
        inner.mkdir(parents=True)
        main = f"{name}.py" if layout == "modules" else "main.py"
        (inner / main).write_text(MAIN.format(helpers=helpers, number=0.0, comment=""))
        (inner / f"{helpers.rpartition('.')[2]}.py").write_text(HELPERS.format(number=number))
        if layout == "package":
            (inner / "__init__.py").write_text("")
    for number in (1.0, 2.0, 1.0):
        assert load_object(address, tmp_path / f"{number}")(1.0) == number


def test_helpers_that_did_not_change_keep_their_state(folder):
    (folder.path / f"{folder.helpers}.py").write_text(HELPERS.format(number=2.0) + "STATE = []\n")
    folder.smooth()
    before = sys.modules[folder.helpers]
    (folder.path / f"{folder.main}.py").write_text(MAIN.format(helpers=folder.helpers, number=9.0, comment=""))
    assert folder.smooth()(0.0) == 9.0
    assert sys.modules[folder.helpers] is before
