"""Numbers of an update rule in time: those of rules and priors change as they like, those of samples in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meanfield.ingredients.laws.hidden import ThreePoint
from meanfield.problems.base import schedules_of
from meanfield.problems.in_time import pieces_in_steps
from meanfield.problems.phases import Piece, pieces_of

if TYPE_CHECKING:
    from meanfield.families.update_rule.problem import Problem

SMOOTH = ("model.rule_parameters.", "prior.")
"""Beginnings of keys of numbers that may change smoothly."""


def pieces_of_samples(problem: Problem) -> list[Piece[Problem]]:
    """Phases of a problem, cut where numbers of its samples become others; in each piece these are numbers."""
    schedules = (schedules_of(piece.problem) for piece in pieces_of(problem))
    return pieces_in_steps(problem, besides={key for each in schedules for key in each if key.startswith(SMOOTH)})


def check_schedules(problem: Problem) -> None:
    """Refuse samples whose law changes smoothly, or that have none at some time.

    Raises
    ------
    ValueError
    """
    if not problem.trusted:  # what a result names is not opened
        return
    for key, schedule in schedules_of(problem).items():
        if not (schedule.in_steps or "whole" in schedule.bounds or key.split(".set.")[-1].startswith(SMOOTH)):
            raise ValueError(
                f"{key}: changes smoothly, and averages over samples take a law that changes in steps; give it "
                "interpolation = 'step', or schedule = 'step'"
            )
    for k, feature in enumerate(problem.features):
        if isinstance(law := feature.hidden, ThreePoint):
            law.check_moments(f"features[{k}].hidden", problem.time.stop)
