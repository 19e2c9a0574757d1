"""Names of commands and scripts, as parameters of tests."""

import re
from pathlib import Path

import pytest

import meanfield
from meanfield.commands.table import COMMANDS
from tests import ROOT

waits = pytest.mark.skipif(
    not Path(meanfield.__file__).with_name("methods.py").exists(), reason="needs meanfield.methods"
)
"""For `solve`, which asks families for their methods."""


def parameter(*values):
    """A parameter of a test, skipped as long as it cannot be had."""
    return pytest.param(*values, marks=waits if "solve" in values else (), id=values[0])


NAMES = [parameter(name) for name in COMMANDS]
SOLVERS = [parameter(name) for name in COMMANDS if name != "example"]
"""Commands that import something heavy when they are run."""

SCRIPT_OF = {
    re.search(r'run_script\("(.+)"\)', path.read_text())[1]: path for path in sorted((ROOT / "solvers").glob("*.py"))
}
"""Scripts by the command that each of them runs."""

SCRIPTS = [parameter(name, path) for name, path in SCRIPT_OF.items()]
