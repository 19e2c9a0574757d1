"""The problem with the numbers of one time, of a problem whose numbers change in time."""

from __future__ import annotations

import numpy as np

from meanfield.arguments import as_number
from meanfield.problems.base import check_problem, schedules_of
from meanfield.problems.file import P
from meanfield.problems.problem_keys import with_values


def at_time(problem: P, time: float) -> P:
    """Problem with the numbers that its schedules have at one time, which do not change any more.

    Parameters
    ----------
    problem : Problem
        Of any family.
    time : float
        Time t = k/N, at least 0.

    Returns
    -------
    Problem
        The problem itself, if nothing of it changes in time.

    Raises
    ------
    InputError
        If the time is negative or no number.
    """
    check_problem(problem)
    as_number(time, "time", "give a time t = k/N", least=0.0)
    values = {key: float(each.values_at(np.array(float(time)))) for key, each in schedules_of(problem).items()}
    return with_values(problem, values)
