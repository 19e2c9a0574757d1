"""Analyse what the reduced ODEs do: fixed points and what attracts, what is learnt from nothing, how SGD fluctuates.

Fixed points come with their kinds, the part of the portrait that each attracts, and the spread of SGD about
them; random starts with the time of escape and the feature that wins. The ODEs close for priors with linear phi (none,
l2); for others find_stationary_states.py finds the states of the density. Where the problem starts does not matter.
"""

from pathlib import Path

from meanfield import analyse_dynamics, load_problem, save
from meanfield.cli import DONE, checked_outputs, run, solver_parser
from meanfield.families.contrastive.dynamics.description import describe
from meanfield.plotting import plot_dynamics
from meanfield.results.files import save_figure


def main() -> int:
    """Parse, analyse, save."""
    parser = solver_parser(__doc__ or "")
    parser.add_argument("--figure", type=Path, metavar="F.png", help="figure to write; png, pdf or svg")
    arguments = parser.parse_args()
    outputs = checked_outputs(arguments)
    result = analyse_dynamics(load_problem(arguments.problem))
    save(result, arguments.output)
    print(describe(result))
    if arguments.figure:
        save_figure(plot_dynamics(result), arguments.figure)
    print("wrote " + " and ".join(map(str, outputs)))
    return DONE


if __name__ == "__main__":
    run(main)
