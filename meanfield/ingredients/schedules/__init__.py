"""Schedules: numbers that change during training, which may stand in a problem file where a number may."""
