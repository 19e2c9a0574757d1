"""Problems of several channels for tests."""

from __future__ import annotations

from typing import Any

import meanfield
from meanfield.families.contrastive.problem import Problem

HIDDEN = ((1.1, 6.05), (1.0, 5.0))
"""Second and fourth moments of the three-point hidden variables of the standard state."""

OVERLAPS = ((0.5, 0.3), (0.2, 0.4))
"""Overlaps q(0) of the standard state, rows features."""

STANDARD = """
[model]
activation = "quadratic"
centering = "none"
learning_rate = 0.01
batch_size = 3
channels = 2
initial_channel_overlap = 0.25
[decorrelation]
strength = 0.05
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = [0.5, 0.3]
[[features]]
hidden = { law = "three_point", second_moment = 1.0, fourth_moment = 5.0 }
initial_overlap = [0.2, 0.4]
[time]
stop = 4.0
outputs = 2
"""


def standard(*changes: tuple[str, str]) -> Problem:
    """The problem of the standard state, with texts replaced by others."""
    text = STANDARD
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    problem: Any = meanfield.parse_problem(text)
    return problem
