"""How long stationary states, their stability and their branches take, on one core.

Columns: seconds on the clock and of the processor (they differ where the machine is shared), and what was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from meanfield import Problem, continue_stationary_states, find_stationary_states, load_problem
from meanfield.closures import Closure
from meanfield.keys import with_value
from meanfield.stationary.coordinates import Coordinates
from meanfield.stationary.equations import StationaryEquations
from meanfield.stationary.line import Line
from meanfield.stationary.stability import stability

EXAMPLES = Path(__file__).parents[2] / "data/problems"
SPARSE = load_problem(EXAMPLES / "sparse_prior.toml")
TWO = load_problem(EXAMPLES / "two_features.toml")
NOISY = Problem.model_validate(SPARSE.model_dump() | {"augmentation": {"variance": [0.3, 0.3], "correlation": 0.1}})
BRANCHES = [
    ("l1 strength 0 to 0.3", SPARSE, "prior.strength", 0.0, 0.3),
    ("learning rate 0.02 to 0.3", SPARSE, "model.learning_rate", 0.02, 0.3),
    ("learning rate 0.06 to 0.09, a third unstable", SPARSE, "model.learning_rate", 0.06, 0.09),
    ("second moment 0.6 to 1.2", SPARSE, "features[0].hidden.second_moment", 0.6, 1.2),
    ("quartic strength 0 to 1, two features", TWO, "prior.strength", 0.0, 1.0),
    ("correlation of the noise 0 to 1", with_value(NOISY, "prior.strength", 0.2), "augmentation.correlation", 0.0, 1.0),
]


def line(label: str, work: Callable[[], str], repeats: int = 1) -> None:
    """Run once to compile, where that is worth it, then time."""
    if repeats > 1:
        work()
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        found = work()
    clock, processor = (time.perf_counter() - clock) / repeats, (time.process_time() - processor) / repeats
    print(f"{label:<50}{clock:>10.3g} s{processor:>10.3g} s   {found}", flush=True)


def branches(problem: Problem, key: str, start: float, stop: float) -> str:
    found = continue_stationary_states(problem, key, start, stop, points=41)
    count = len(np.unique(found["branch"]))
    unstable, turning = int((found["stability"] < 0).sum()), int(found["turning"].sum())
    return f"{found.sizes['point']} points on {count} branches, {unstable} unstable, {turning} turning points"


def main() -> None:
    problem = with_value(SPARSE, "prior.strength", 0.2)
    equations = StationaryEquations(problem, Closure(problem), Coordinates(problem))
    overlaps = [np.array([0.97 + 1e-3 * i]) for i in range(5)]
    state = equations.state(overlaps[0])
    assert state is not None
    line("residual and Jacobian", lambda: f"{len([equations(q) for q in overlaps])} of them", repeats=20)
    line("stability", lambda: f"growth rate {stability(Line(equations, state), state).growth_rate:.3g}", repeats=20)
    line("all states, l1", lambda: f"{find_stationary_states(problem).sizes['state']} states", repeats=3)
    line("all states, two features", lambda: f"{find_stationary_states(TWO).sizes['state']} states")
    for label, varied, key, start, stop in BRANCHES:
        line(label, lambda: branches(varied, key, start, stop))  # noqa: B023


if __name__ == "__main__":
    main()
