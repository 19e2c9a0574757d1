"""Errors of a solution by others, with coarser averages or with independent random ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meanfield.families.update_rule.order_parameters.equations import Choices
from meanfield.numerics.gaussian_moments.choosing import Choice
from meanfield.numerics.gaussian_moments.rules import RANDOMISATIONS, Rule
from meanfield.numerics.refinement import largest_of_times
from meanfield.typing import FloatArray

STANDARD_ERRORS = 3.5
"""Standard errors of random averages that are stated."""


def chosen_rule(choice: Choice) -> Rule:
    """Rule of a choice."""
    return choice.rule


def other_rules(choices: Choices) -> list[Callable[[Choice], Rule]]:
    """Rules of other solutions, by what was chosen: a coarser one, or independent ones of random points."""
    random = any(choice.rule.kind == "random" for choice in choices.values())
    return [partial(_other, number=number) for number in range(RANDOMISATIONS if random else 1)]


def errors_by(others: Sequence[dict[str, FloatArray]], found: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Estimated errors of a solution, the largest of all times: at single times solutions agree by chance."""
    if len(others) == 1:
        return {f"{name}_error": largest_of_times(others[0][name] - values) for name, values in found.items()}
    spread = {name: np.std([other[name] for other in others], axis=0, ddof=1) for name in found}
    factor = STANDARD_ERRORS / math.sqrt(len(others))
    return {f"{name}_error": factor * largest_of_times(each) for name, each in spread.items()}


def _other(choice: Choice, number: int) -> Rule:
    return choice.rule.randomisations()[number] if choice.rule.kind == "random" else choice.coarser
