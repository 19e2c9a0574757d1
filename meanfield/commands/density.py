"""Solve a problem for the density P_t(w|u) of weights and features.

The McKean-Vlasov Fokker-Planck equation with self-consistent order parameters q and r. By default a Lagrangian scheme
in the quantile frame: points between which the probability stays the same move with the weights. Points, nodes and
steps follow from density.tolerance, the error that is allowed in q and r; q_error, r_error and P_error in the result
are estimates of what is left. With density.scheme = "eulerian" the equation is solved by Scharfetter-Gummel finite
volumes on cells that stay where they are; so it is with density.cells, steps or order, which fix the discretisation.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from meanfield.commands.solving import add_problem_and_output, say_where, solve_and_save
from meanfield.errors import InputError
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem_and_output(parser)
    parser.add_argument(
        "--backend",
        choices=["numba", "fipy"],
        help="numba: our kernel (default); fipy: the same scheme in FiPy, a slow reference, for contrastive problems",
    )
    parser.add_argument(
        "--joint",
        type=Path,
        metavar="JOINT.nc",
        help="netCDF file for the density of both weights of two channels together, which OUT.nc does not hold",
    )


def run(arguments: Namespace) -> int:
    """Solve the problem, and save the density, or both densities of two channels."""
    if arguments.joint is not None:
        return _solve_both(arguments)
    chosen = {} if arguments.backend is None else {"backend": arguments.backend}
    return solve_and_save(arguments, "density", **chosen)


def _solve_both(arguments: Namespace) -> int:
    """Solve for the density of each weight and for that of both weights together, and save them."""
    with start_up():
        from meanfield import load_problem, save
        from meanfield.commands.outputs import check_outputs
        from meanfield.contrastive import solve_joint_density
    if arguments.backend == "fipy":
        raise InputError("--backend fipy with --joint: joint densities have 'numba' alone; leave --backend out")
    check_outputs([arguments.problem], [arguments.output, arguments.joint])
    problem: Any = load_problem(arguments.problem)  # one of another family is refused with the words of the method
    density, joint = solve_joint_density(problem)
    save(density, arguments.output)
    save(joint, arguments.joint)
    code = say_where(arguments, density, resumable=False)
    print(f"wrote {arguments.joint} ({joint.attrs['method']})")
    return code
