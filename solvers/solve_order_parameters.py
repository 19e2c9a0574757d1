"""Solve a problem for its order parameters: the overlaps q_t from the reduced ODEs.

They close for priors with linear phi (none, l2); other priors need solve_density.py or simulate_sgd.py.
"""

from meanfield import solve_order_parameters
from meanfield.cli import run, solve_and_save, solver_parser


def main() -> int:
    """Parse, solve, save."""
    return solve_and_save(solver_parser(__doc__ or "").parse_args(), solve_order_parameters)


if __name__ == "__main__":
    run(main)
