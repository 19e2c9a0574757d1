"""Solve a problem for the density P_t(w|u) of weights and features.

The McKean-Vlasov Fokker-Planck equation by finite volumes, with self-consistent order parameters q and r.
Half-width, cells, nodes and steps follow from density.tolerance, the error that is allowed in q and r; q_error, r_error
and P_error in the result are estimates of what is left. With density.cells, steps or order they are fixed instead.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from meanfield.commands.solving import add_problem_and_output, solve_and_save


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem_and_output(parser)
    parser.add_argument(
        "--backend",
        choices=["numba", "fipy"],
        help="numba: our kernel (default); fipy: the same scheme in FiPy, a slow reference, for contrastive problems",
    )


def run(arguments: Namespace) -> int:
    """Solve the problem, and save the density."""
    chosen = {} if arguments.backend is None else {"backend": arguments.backend}
    return solve_and_save(arguments, "density", **chosen)
