"""How long fixed points, portraits, regions of attraction and branches of the reduced ODEs take, on one core.

Columns: seconds on the clock and of the processor (they differ where the machine is shared), and what was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from meanfield import Problem
from meanfield.order_parameters.field import VectorField
from meanfield.order_parameters.fixed_points.attraction import attraction_shares
from meanfield.order_parameters.fixed_points.branches import continue_fixed_points
from meanfield.order_parameters.fixed_points.points import find_fixed_points
from meanfield.order_parameters.fixed_points.portrait import phase_portrait
from meanfield.problem_file import parse_problem

GAUSSIAN = '{ law = "gaussian", second_moment = 1.2 }'
THREE_POINT = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'
LAPLACE = '{ law = "laplace", second_moment = 1.2 }'
SKEW = '{ law = "two_point", values = [-0.5, 2.0], probability = 0.8 }'


def problem(*laws: str, activation: str = "quadratic") -> Problem:
    features = "".join(f"[[features]]\nhidden = {law}\ninitial_overlap = 0.1\n" for law in laws)
    model = f'[model]\nactivation = "{activation}"\nlearning_rate = 0.02\nbatch_size = 10\n'
    return parse_problem(f"{model}{features}[time]\nstop = 1.0\noutputs = 2\n")


def line(label: str, work: Callable[[], str]) -> None:
    """Run once to compile, then time."""
    work()
    clock, processor = time.perf_counter(), time.process_time()
    found = work()
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    print(f"{label:<52}{clock:>8.3g} s{processor:>8.3g} s   {found}", flush=True)


def fixed_points(given: Problem) -> str:
    points = find_fixed_points(VectorField(given))
    return f"{len(points.points)} fixed points, {len(points.stable)} of them stable"


def portrait(given: Problem) -> str:
    result = phase_portrait(given)
    shares = ", ".join(f"{share:.3f}" for share in result["region_share"].values if share > 0)
    return f"plane {result.attrs['plane']}, regions {shares}, table error {float(result['table_error']):.1e}"


def branches(given: Problem, key: str, start: float, stop: float) -> str:
    found = continue_fixed_points(given, key, start, stop)
    return f"{found.sizes['point']} points on {len(np.unique(found['branch']))} branches"


def main() -> None:
    paper, three = problem(GAUSSIAN, THREE_POINT), problem(THREE_POINT, THREE_POINT, THREE_POINT)
    shares = find_fixed_points(VectorField(three))
    line("fixed points, one feature", lambda: fixed_points(problem(THREE_POINT)))
    line("fixed points, two features (figure 3)", lambda: fixed_points(paper))
    line("fixed points, three features", lambda: fixed_points(three))
    line("portrait 60 x 60, figure 3", lambda: portrait(paper))
    line("portrait 60 x 60, tanh", lambda: portrait(problem(THREE_POINT, THREE_POINT, activation="tanh")))
    line("portrait 60 x 60, whole disc, relu", lambda: portrait(problem(SKEW, THREE_POINT, activation="relu")))
    line("portrait 60 x 60, Laplace", lambda: portrait(problem(LAPLACE, THREE_POINT)))
    line("shares of 400 directions, three features", lambda: f"{attraction_shares(shares, 0.3)[0].max():.3f}")
    line(
        "branches, learning rate, one feature", lambda: branches(problem(THREE_POINT), "model.learning_rate", 0.02, 0.3)
    )
    line("branches, learning rate, two features", lambda: branches(paper, "model.learning_rate", 0.02, 0.3))
    line("branches, second moment, two features", lambda: branches(paper, "features[0].hidden.second_moment", 0.9, 1.4))


if __name__ == "__main__":
    main()
