"""Folders for compiled code, one for each version of its sources, and packages that nobody can write to."""

import os
import warnings

import numba
import pytest

from meanfield.process.own_numba import folder as folders
from meanfield.process.own_numba.folder import FOLDERS_KEPT, PACKAGE, PREFIX, folder, version


@pytest.fixture
def nowhere(monkeypatch):
    """Numba finds no place that can be written."""

    def refuse(*_):
        raise RuntimeError("cannot cache function")

    monkeypatch.setattr(folders, "FunctionCache", refuse)
    folders._folder.cache_clear()
    yield
    folders._folder.cache_clear()


def test_a_temporary_folder_stands_in_where_nothing_can_be_written(nowhere):
    before = numba.config.CACHE_DIR
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR to a folder that can be written"):
        found = folder()
    assert found.is_dir()
    assert not found.is_relative_to(PACKAGE)
    with warnings.catch_warnings(action="error"):
        assert folder() == found
    assert before == numba.config.CACHE_DIR


def test_the_folder_of_the_user_is_respected(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert folder().is_relative_to(tmp_path)
    assert folder().is_dir()
    assert folder().name == f"{PREFIX}{version()}"


def test_without_it_code_is_kept_beside_the_package(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    if os.access(PACKAGE, os.W_OK):
        assert folder().parent == PACKAGE / "__pycache__"


def test_a_new_version_forgets_those_that_were_not_used_for_longest(monkeypatch, tmp_path):
    place = tmp_path / f"{PACKAGE.name}_place"
    for age in range(FOLDERS_KEPT + 2):
        old = place / f"{PREFIX}{age}"
        old.mkdir(parents=True)
        (old / "kernel.nbc").touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    (place / "of_others").mkdir()
    monkeypatch.setattr(folders, "_place", lambda: place)
    folders._folder.cache_clear()
    found = folder()
    folders._folder.cache_clear()
    names = {path.name for path in place.iterdir()}
    assert names == {found.name, "of_others", *(f"{PREFIX}{age}" for age in range(FOLDERS_KEPT - 1))}
