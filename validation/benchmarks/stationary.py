"""How long stationary states, their stability and their branches take, on one core.

Measured is processor time; seconds on the clock, which are more where the machine is shared, are beside what was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from meanfield import find_stationary_states, load_problem
from meanfield.contrastive import Problem, continue_stationary_states
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.stability import stability
from meanfield.problems.problem_keys import with_value
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds, timed_row

EXAMPLES = ROOT / "data/problems"
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


def branches(problem: Problem, key: str, start: float, stop: float) -> str:
    found = continue_stationary_states(problem, key, start, stop, points=41)
    count = len(np.unique(found["branch"]))
    unstable, turning = int((found["stability"] < 0).sum()), int(found["turning"].sum())
    return f"{found.sizes['point']} points on {count} branches, {unstable} unstable, {turning} turning points"


def tables() -> Iterator[Table]:
    problem = with_value(SPARSE, "prior.strength", 0.2)
    equations = StationaryEquations(limit_of(problem))
    overlaps = [np.array([0.97 + 1e-3 * i]) for i in range(5)]
    state = equations.state(overlaps[0])
    assert state is not None
    pieces = seconds(lambda: [equations(q) for q in overlaps], lambda: stability(equations, state))
    rows = [
        Row("residual and Jacobian", 1e3 * pieces[0] / len(overlaps), "ms"),
        Row("stability of a state", 1e3 * pieces[1], "ms"),
    ]
    yield Table("Equations of stationary states", ONE_THREAD, tuple(rows))
    rows = [
        timed_row("all states, l1", lambda: f"{find_stationary_states(problem).sizes['state']} states"),
        timed_row("all states, two features", lambda: f"{find_stationary_states(TWO).sizes['state']} states"),
    ]
    rows += [timed_row(what, partial(branches, *arguments), compiled=True) for what, *arguments in BRANCHES]
    yield Table("Stationary states and their branches", "one core; processor time of one call", tuple(rows))
