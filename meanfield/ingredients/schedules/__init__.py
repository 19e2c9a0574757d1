"""Schedules: numbers that change during training, which may stand in a problem file where a number may."""

from meanfield.ingredients.schedules.base import Schedule
from meanfield.ingredients.schedules.key import OrSchedule

__all__ = ["OrSchedule", "Schedule"]
