"""Validate a problem file and explain it in words, with the time, memory and file that each method would take.

Nothing is written. Times come from short trials of the methods on this machine; what does not apply says why, and what
to change.
"""

from __future__ import annotations

from argparse import Namespace

from meanfield.cli import DONE
from meanfield.commands.solving import add_problem
from meanfield.process.start_up import start_up

add_arguments = add_problem


def run(arguments: Namespace) -> int:
    """Validate the problem, and print its explanation."""
    with start_up():
        from meanfield import explain, load_problem
    print(explain(load_problem(arguments.problem)))
    return DONE
