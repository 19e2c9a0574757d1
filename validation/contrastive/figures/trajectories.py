"""Trajectories Q(t) of one feature by the reduced ODE, from the starts of figures 2a and 6b."""

from __future__ import annotations

import numpy as np
import xarray as xr

import meanfield
from meanfield.families.contrastive.problem import Problem
from validation.contrastive.figures.one_feature import SECOND_MOMENTS, Ensemble, problem_with, started

STARTS = (0.1, 0.3)
STOP, OUTPUTS = 25.0, 51

RETRIEVED = 0.5
"""Final Q above which a feature counts as retrieved: the recovery states are at 0.69 and 0.74."""


def problem_at(m2: float, Q: float, dimension: int = 1000, replicas: int = 1, **record: str) -> Problem:
    """A start of the figures, and SGD from there."""
    return started(problem_with(m2), Q, Ensemble(STOP, dimension, replicas, OUTPUTS), **record)


def trajectories() -> xr.Dataset:
    """Q(t) of the reduced ODE for the second moments and the starts of the figures."""
    runs = [[meanfield.solve_order_parameters(problem_at(m2, Q)) for Q in STARTS] for m2 in SECOND_MOMENTS]
    values = np.array([[run["q"].values[:, 0] ** 2 for run in row] for row in runs])
    return xr.Dataset(
        {"ode_Q": (("m2", "start", "time"), values, {"long_name": "squared overlap of the reduced ODE"})},
        {"m2": list(SECOND_MOMENTS), "start": list(STARTS), "time": runs[0][0]["time"].values},
    )
