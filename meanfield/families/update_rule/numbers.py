"""Numbers of results of update rules: how they depend on each other, and which of them reports show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.update_rule.problem import Problem
from meanfield.mckean_vlasov.checks import faults as shared_faults
from meanfield.report.order_parameters import Labels, at_the_end, means_of_an_ensemble, means_of_replicas
from meanfield.results.text import plain


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    yield from shared_faults(dataset, problem)
    if "Q" not in dataset:
        return
    Q = dataset["Q"].values
    there = np.isfinite(Q)
    gap = np.abs(Q - np.swapaxes(Q, -1, -2))[there]
    if np.any(gap > 1e-9 * np.abs(Q[there]).max(initial=1.0)):  # rounding
        yield "variable 'Q' is not symmetric"


def of_order_parameters(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Q, R, observables and side variables at the last time that was reached."""
    return at_the_end(dataset, _labels(dataset))


def of_particles(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and their means at the end."""
    return means_of_replicas(dataset, _labels(dataset))


def of_an_ensemble(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of replicas, and the means that statistics keep."""
    return means_of_an_ensemble(dataset, _labels(dataset))


def of_an_escape(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Quantiles of the escape time."""
    for share, t in zip(dataset["quantile"].values, dataset["escape_time_quantile"].values, strict=True):
        yield f"time by which {100 * share:g} % of runs escape", plain(float(t))


def _labels(dataset: xr.Dataset) -> Labels:
    """Order parameters that a result has, and what they are called."""
    labels = {"Q": "Q", "R": "R", "r": "prior work r", "observables": "observable ", "v": "side variable "}
    return {name: label for name, label in labels.items() if {name, f"{name}_mean"} & {*dataset}}
