"""Update rules of users: the step of one sample as a function, with its kinks and what is measured beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Rule:
    """Update rule: what a sample adds to the trained vectors, as functions of what the algorithm sees of it.

    What a function reads follows from the names of its arguments: `s` and `y` are the fields of students and features,
    w.x/sqrt(N) and u.x/sqrt(N), `c` are hidden variables, and further names are those of the problem file. A name of
    one vector stands for a number, a name of several for an array over them.

    Parameters
    ----------
    step : callable
        F, the factor of the sample: w += x F/sqrt(N) for each student; a number, or an array over students.
    along : callable, optional
        B, factors of vectors: w += Z B/N with Z the features and then the students; for a single student the factor
        of itself, otherwise an array of shape (features + students, students).
    kinks : tuple of str
        Linear forms of fields, such as `s`, `s - y` or `s - 1`, at whose zeros one of the functions jumps or bends.
    observables : mapping of str to callable
        What is averaged over samples at each time, for the limit and for SGD alike, such as an error.

    Notes
    -----
    Source: update_rules.md, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield
    >>> def step(y, s, rate):
    ...     return rate * np.sign(y) * (s * y < 0)
    >>> perceptron = meanfield.Rule(step, kinks=("y", "s"), observables={"error": lambda y, s: s * y < 0})
    """

    step: Function
    along: Function | None = None
    kinks: tuple[str, ...] = ()
    observables: Mapping[str, Function] | tuple[tuple[str, Function], ...] = field(default=())

    def __post_init__(self) -> None:
        kinks = (self.kinks,) if isinstance(self.kinks, str) else tuple(self.kinks)
        for kink in kinks:
            if not isinstance(kink, str):
                raise ValueError(f"the kink {kink!r:.60} is no text; write a linear form such as 's - y' or 's - 1'")
        object.__setattr__(self, "kinks", kinks)
        try:
            measured = dict(self.observables)
            if not all(isinstance(name, str) and name for name in measured):
                raise TypeError
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"observables = {self.observables!r:.60}; give functions by their names, such as {{'error': error}}"
            ) from error
        object.__setattr__(self, "observables", tuple(measured.items()))

    @property
    def functions(self) -> dict[str, Function]:
        """All of its functions, by the words for them."""
        along = {} if self.along is None else {"along": self.along}
        return {"step": self.step} | along | {f"observable '{name}'": each for name, each in self.measured.items()}

    @property
    def measured(self) -> dict[str, Function]:
        """Observables by name."""
        return dict(self.observables)


def arguments_of(function: Function, what: str) -> tuple[str, ...]:
    """Names of the arguments of a user's function.

    Raises
    ------
    ValueError
        If it is none, or takes arguments without a name.
    """
    plain = getattr(function, "py_func", function)
    if not inspect.isfunction(plain):
        raise ValueError(f"{what} is {type(function).__name__}; give a function, such as def step(y, s, rate)")
    given = inspect.signature(plain).parameters.values()
    unnamed = [f"{each} ({each.kind.description})" for each in given if each.kind is not each.POSITIONAL_OR_KEYWORD]
    if unnamed:
        raise ValueError(f"{what} takes {unnamed[0]}; what it reads follows from names, so give it plain arguments")
    return tuple(each.name for each in given)


def check_rule(rule: Rule, name: str) -> Rule:
    """The rule, if what it reads follows from names.

    Raises
    ------
    ValueError
    """
    for what, function in rule.functions.items():
        arguments_of(function, f"'{name}', {what}")
    return rule
