"""Find all stationary states of a problem, which of them are stable, and their branches as one number varies.

Without --vary the output holds every state with its density. With it, say --vary prior.strength 0 3, branches of states
are followed over that range, around turning points too; --figure draws them: stable states solid, unstable ones dashed.
No time is stepped, and where the problem starts does not matter.
"""

from pathlib import Path

import xarray as xr

from meanfield import continue_stationary_states, find_stationary_states, load_problem, save
from meanfield.cli import DONE, FAILED, at_least, checked_outputs, run, solver_parser
from meanfield.errors import InputError
from meanfield.plotting import plot_branches
from meanfield.results.description import describe
from meanfield.results.files import save_figure


def number(text: str) -> float:
    """A number of the command line."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--vary: '{text}' is no number; give KEY START STOP, such as prior.strength 0 3") from None


def main() -> int:
    """Parse, solve, save."""
    parser = solver_parser(__doc__ or "")
    parser.add_argument(
        "--vary", nargs=3, metavar=("KEY", "START", "STOP"), help="a number of the problem and its range"
    )
    parser.add_argument("--points", type=at_least(2, "points"), default=41, metavar="N", help="points of a branch (41)")
    parser.add_argument("--figure", type=Path, metavar="F.png", help="with --vary, figure to write; png, pdf or svg")
    arguments = parser.parse_args()
    outputs = checked_outputs(arguments)
    if arguments.figure and not arguments.vary:
        raise InputError("--figure draws branches, and there are none without --vary; add --vary KEY START STOP")
    problem = load_problem(arguments.problem)
    result: xr.Dataset
    if arguments.vary:
        key, start, stop = arguments.vary
        result = continue_stationary_states(problem, key, number(start), number(stop), arguments.points)
    else:
        result = find_stationary_states(problem)
    save(result, arguments.output)
    print(describe(result))
    if arguments.figure:
        save_figure(plot_branches(result), arguments.figure)
    print("wrote " + " and ".join(map(str, outputs)))
    return DONE if result.attrs["status"] == "complete" else FAILED


if __name__ == "__main__":
    run(main)
