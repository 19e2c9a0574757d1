"""Schedules and phases of all families, held against SciPy and SGD."""
