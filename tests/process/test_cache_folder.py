"""Packages that nobody can write to."""

import os

import numba
import pytest
from numba.core import caching

from meanfield.process.cache_folder import ensure_cache_folder


def one():
    return 1


def test_a_temporary_folder_stands_in_where_nothing_can_be_written(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    provided = next(x for x in caching.CacheImpl._locator_classes if x.__name__.lstrip("_").startswith("UserProvided"))
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [provided])
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(one)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR to a folder that can be written"):
        ensure_cache_folder()
    assert numba.njit(cache=True)(one)() == 1
    assert any(name.endswith(".nbi") for _, _, names in os.walk(numba.config.CACHE_DIR) for name in names)


def test_nothing_changes_where_there_is_a_place(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    ensure_cache_folder()
    assert str(tmp_path) == numba.config.CACHE_DIR
