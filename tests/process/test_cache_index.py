"""Compiled code for types of a user's module, in processes that can import that module and in others."""

import os
import subprocess
import sys

import pytest

OWN = """
from typing import NamedTuple

class {name}(NamedTuple):
    reach: float
"""

CALL = """
import sys
import numpy as np
from meanfield.families.contrastive.closures.expectation import is_tabulated, no_expectation
if sys.argv[1:]:
    import own
    argument = getattr(own, sys.argv[1])(2.0)
else:
    argument = no_expectation()
print(bool(is_tabulated(argument, np.array([0.5]))), sum(is_tabulated.stats.cache_hits.values()))
"""


@pytest.fixture
def called(tmp_path):
    """What a process prints that calls a function of the library, with a type of the module `own` or without."""

    def call(*name):
        result = subprocess.run(
            [sys.executable, "-c", CALL, *name],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path) if name else ""},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.split()

    return call


def test_types_of_a_module_that_is_not_there_do_no_harm(called, tmp_path):
    (tmp_path / "own.py").write_text(OWN.format(name="Mine"))
    assert called("Mine") == ["True", "0"]
    assert called() == ["False", "0"]  # it cannot import `own`
    assert called("Mine") == ["True", "1"]
    assert called() == ["False", "1"]


def test_types_that_were_renamed_do_no_harm(called, tmp_path):
    (tmp_path / "own.py").write_text(OWN.format(name="Before"))
    assert called("Before") == ["True", "0"]
    (tmp_path / "own.py").write_text(OWN.format(name="After"))
    assert called("After") == ["True", "0"]
    assert called("After") == ["True", "1"]
