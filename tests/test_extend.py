"""Public names for those who extend the library: each is there, and has a place in the documentation."""

import re

import pytest

from meanfield import extend
from tests import ROOT

PAGE = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", extend.__all__)
def test_every_name_is_there_and_documented(name):
    assert getattr(extend, name) is not None
    assert f"meanfield.extend.{name}\n" in PAGE or f"`{name}`" in PAGE


def test_every_documented_name_is_there():
    assert set(re.findall(r"meanfield\.extend\.(\w+)", PAGE)) <= set(extend.__all__)
