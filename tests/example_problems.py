"""Problems for tests: the sparse-prior example with lines of TOML laid over it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

import tomli_w

from meanfield.families.contrastive.problem import Problem

BASE = """
title = "test"
model = { activation = "quadratic", centering = "none", learning_rate = 0.02, batch_size = 10 }
time = { stop = 20.0, outputs = 41 }
particles = { method = "plain", dimension = 64, replicas = 2, seed = 0 }

[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
coordinate = { law = "gaussian" }
initial_overlap = 0.5
"""


SMALL = """
title = "small"
[model]
activation = "quadratic"
learning_rate = 0.05
batch_size = 4
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
[time]
stop = 1.0
outputs = 3
[density]
cells = 200
feature_nodes = 15
[particles]
method = "plain"
dimension = 64
replicas = 3
"""
"""A problem file that every method solves in well under a second."""


def make_problem(*lines: str) -> Problem:
    """The base problem with lines such as `prior.name = "l1"` laid over it; arrays are replaced as a whole."""
    return Problem.model_validate(_laid_over(lines))


def problem_text(*lines: str) -> str:
    """Text of a problem file; see `make_problem`."""
    return tomli_w.dumps(_laid_over(lines))


THREE_POINT = '{ law = "three_point", second_moment = 2.0, fourth_moment = 8.0 }'
"""A hidden variable that is learnt fast."""


def gaussian(second_moment: float) -> str:
    """The inline table of a Gaussian hidden variable."""
    return f'{{ law = "gaussian", second_moment = {second_moment} }}'


def feature(overlap: float | str = 0.5, hidden: str = THREE_POINT, coordinate: str = "gaussian") -> str:
    """The inline table of one feature."""
    shown = f'"{overlap}"' if isinstance(overlap, str) else overlap
    return f'{{ hidden = {hidden}, coordinate = {{ law = "{coordinate}" }}, initial_overlap = {shown} }}'


def features(*tables: str) -> str:
    """The line that replaces the features of the base problem."""
    return f"features = [{', '.join(tables)}]"


def _laid_over(lines: Iterable[str]) -> dict[str, Any]:
    data = tomllib.loads(BASE)
    for line in lines:
        data = _merged(data, tomllib.loads(line))
    return data


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for key, value in above.items():
        nested = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = _merged(both[key], value) if nested else value
    return both
