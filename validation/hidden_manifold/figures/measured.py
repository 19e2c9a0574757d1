"""Discrepancies of all runs from the ODE of one Gaussian that starts from the same weights, and the mixtures' KL."""

from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from validation import ROOT
from validation.hidden_manifold.figures.discrepancy import log_rmse, printed_log_rmse
from validation.hidden_manifold.figures.laws import GAUSSIAN
from validation.hidden_manifold.figures.mixtures import divergence, standardisation
from validation.hidden_manifold.figures.runs import NUMBERS, start_of
from validation.hidden_manifold.figures.start_from_run import solve_from, solve_limit

METRICS = ("Q", "R", "v")


@cache
def finished_runs() -> xr.Dataset:
    """SGD of all starts.

    Raises
    ------
    InputError
        If it was not run.
    """
    if not NUMBERS.exists():
        name = NUMBERS.relative_to(ROOT)
        raise InputError(f"{name} is missing; run python -m validation.hidden_manifold.figures.runs")
    return xr.load_dataset(NUMBERS)


def discrepancies(activation: str) -> xr.Dataset:
    """Discrepancies that studies of the sweep judge, for each start and entry of Q, R and v.

    `sgd_Q` is the tLog-RMSE under each law, `sgd_Q_gaussian` under N(0, 1), `sgd_Q_printed` the same by the printed
    (18) with `sgd_Q_real`, the share of times where its root is real, `sgd_Q_limit` the same from an ODE that starts
    from the overlaps of the limit instead of the run's, and `scale_Q` the mean of |Q| along the ODE.
    """
    runs = finished_runs().sel(activation=activation)
    times = runs.time.values
    starts = [start_of(int(seed))[0] for seed in runs.start]
    theory, limit = (
        xr.concat([solve(start, activation, times) for start in starts], runs.start)
        for solve in (solve_from, solve_limit)
    )
    found: dict[str, xr.DataArray] = {}
    for name in METRICS:
        alone = runs[f"{name}_{GAUSSIAN}"]
        found[f"sgd_{name}"] = log_rmse(runs[name], theory[name])
        found[f"sgd_{name}_{GAUSSIAN}"] = log_rmse(alone, theory[name])
        found[f"sgd_{name}_printed"], found[f"sgd_{name}_real"] = printed_log_rmse(alone, theory[name])
        found[f"sgd_{name}_limit"] = log_rmse(alone, limit[name])
        found[f"sgd_{name}_largest"] = np.abs(runs[name]).max("time")
        found[f"scale_{name}"] = np.abs(theory[name]).mean("time")
    return xr.Dataset(found).assign(divergences()).drop_vars("activation").assign_attrs(activation=activation)


@cache
def divergences() -> xr.Dataset:
    """KL of every mixture of the runs from N(0, 1), for a latent that draws its own component."""
    runs = finished_runs()
    mixtures = [start_of(int(seed))[1] for seed in runs.start]
    KL = [[[divergence(a * means[int(m)].number) for a in runs.alpha.values] for m in runs.m] for means in mixtures]
    about = {"long_name": "KL(P, N(0, 1)) of a mixture on a line"}
    return xr.Dataset({"KL": (("start", "m", "alpha"), KL, about)})


def standardised_divergence(means: np.ndarray) -> float:
    """KL of a standardised mixture from N(0, 1)."""
    shift, scale = standardisation(means)
    return divergence((means - shift) / scale, 1.0 / float(scale))
