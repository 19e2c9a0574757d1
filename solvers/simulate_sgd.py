"""Simulate a problem by SGD at finite N, in replicas over all cores.

How steps are taken, N, the number of replicas, the seed, and what is kept come from the problem file's [particles]
table. The numbers do not depend on the number of workers. While it runs, results and states are kept in the folder
OUT.nc.checkpoint: a run that was interrupted or killed goes on when the same command is given again.
"""

from pathlib import Path

from meanfield import Checkpoint, simulate_sgd
from meanfield.cli import at_least, run, solve_and_save, solver_parser


def main() -> int:
    """Parse, simulate, save."""
    parser = solver_parser(__doc__ or "")
    parser.add_argument(
        "--workers", type=at_least(1, "threads"), default=None, metavar="N", help="threads; by default one per core"
    )
    arguments = parser.parse_args()
    checkpoint = Checkpoint(Path(f"{arguments.output}.checkpoint"))
    return solve_and_save(arguments, lambda problem: simulate_sgd(problem, arguments.workers, checkpoint), checkpoint)


if __name__ == "__main__":
    run(main)
