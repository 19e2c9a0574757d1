"""Methods of a family as data, and objects by their addresses in such declarations."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.process.floating_point import own_errstate

if TYPE_CHECKING:
    from meanfield.problems.base import Problem


def resolve(address: str) -> Any:
    """Object at the address "module:name"; such addresses stand in declarations, never in files."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Method:
    """Declaration of a method, which solves the problems of a family.

    Parameters
    ----------
    title : str
        Name of the method in words, for tables.
    solve : str
        "module:function" of a problem and options, which returns a Dataset; it refuses what `check` does.
    kinds : tuple of str
        Kinds of results that it may return.
    check : str
        "module:function" of a problem that raises `InputError` where the method does not apply, for `explain`.
    cost : str
        "module:function" of a problem that returns a `meanfield.explanation.Prediction`.
    resumes : bool
        Whether it takes `record`, a `meanfield.Checkpoint`, and goes on with an interrupted run.
    threads : bool
        Whether it takes `workers`, a number of threads.
    keep : tuple of str
        Names of the family's reductions that apply to its results.
    purpose : str
        What it is for, in a line of `--help`; the title of its first kind of result if nothing is said.
    follows : tuple of str
        Keys of numbers that may change in time, by a schedule, with [] for any number in brackets; problems in which
        others do are refused.
    phases : bool
        Whether it solves problems of several phases.
    goes_on : bool
        Whether a result of its own can be its start, by the key `initial` of problems.
    """

    title: str
    solve: str
    kinds: tuple[str, ...]
    check: str = ""
    cost: str = ""
    resumes: bool = False
    threads: bool = False
    keep: tuple[str, ...] = ()
    purpose: str = ""
    follows: tuple[str, ...] = ()
    phases: bool = False
    goes_on: bool = False

    def __call__(self, problem: Any, **options: Any) -> Any:
        """Solve a problem; see `meanfield.methods.solve`."""
        self.check_schedules(problem)
        with own_errstate():  # workers of a sweep call it, which import a script that may have set another
            return resolve(self.solve)(problem, **options)

    def does_follow(self, key: str) -> bool:
        """Whether a number may change in time by its key without indices, or that of a table of such numbers."""
        return any(key == known or key.startswith(f"{known}.") for known in self.follows)

    def check_schedules(self, problem: Problem) -> None:
        """Refuse phases and schedules that the method does not follow.

        Raises
        ------
        InputError
            With the key, and the problem to give instead.
        """
        from meanfield.problems.base import schedules_of  # which imports pydantic
        from meanfield.problems.phases import pieces_of
        from meanfield.problems.problem_keys import without_numbers

        if problem.phases is not None and not self.phases:
            raise InputError(
                f"phases: the method '{self.title}' knows one phase only; give it the problem of one time: "
                "meanfield.at_time(problem, t)"
            )
        for piece in pieces_of(problem):
            for key in schedules_of(piece.problem):
                if not self.does_follow(without_numbers(key)):
                    raise InputError(
                        f"{key}: changes in time by a schedule, which the method '{self.title}' does not follow; give "
                        "it a number, such as that of one time: meanfield.at_time(problem, t)"
                    )
