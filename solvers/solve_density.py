"""Solve a problem for the density P_t(w|u) of weights and features.

The McKean-Vlasov Fokker-Planck equation by finite volumes, with self-consistent order parameters q and r.
Half-width, cells, nodes and steps follow from density.tolerance, the error that is allowed in q and r; q_error, r_error
and P_error in the result are estimates of what is left. With density.cells, steps or order they are fixed instead.
"""

from meanfield import solve_density
from meanfield.cli import run, solve_and_save, solver_parser


def main() -> int:
    """Parse, solve, save."""
    parser = solver_parser(__doc__ or "")
    parser.add_argument(
        "--backend",
        choices=["numba", "fipy"],
        default="numba",
        help="numba: our kernel (default); fipy: the same scheme in FiPy, a slow reference",
    )
    arguments = parser.parse_args()
    return solve_and_save(arguments, lambda problem: solve_density(problem, backend=arguments.backend))


if __name__ == "__main__":
    run(main)
