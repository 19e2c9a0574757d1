"""Validate a problem file and explain it in words, with the time, memory and file that each method would take.

Nothing is written. Times come from short trials of the methods on this machine; what does not apply says why, and what
to change.
"""

from pathlib import Path

from meanfield import explain, load_problem
from meanfield.cli import DONE, parser, run


def main() -> int:
    """Parse, validate, explain."""
    arguments_of = parser(__doc__ or "")
    arguments_of.add_argument(
        "problem", type=Path, metavar="PROBLEM.toml", help="problem file; data/problems has examples"
    )
    print(explain(load_problem(arguments_of.parse_args().problem)))
    return DONE


if __name__ == "__main__":
    run(main)
