"""Names of commands and scripts, as parameters of tests."""

import re

from meanfield.commands.dispatch import COMMANDS
from tests import ROOT

NAMES = list(COMMANDS)
SOLVERS = [name for name in NAMES if name not in ("example", "completion")]
"""Commands that import something heavy when they are run."""

SCRIPTS = {
    re.search(r'run_script\("(.+)"\)', path.read_text())[1]: path for path in sorted((ROOT / "solvers").glob("*.py"))
}
"""Scripts by the command that each of them runs."""
