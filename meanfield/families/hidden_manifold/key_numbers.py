"""Key numbers of hidden-manifold results with their errors, for reports."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.results.numbers import plain, with_error


def of_order_parameters(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Generalisation error, Q and R at the last time that was reached."""
    reached = np.flatnonzero(np.isfinite(dataset["generalisation_error"].values))
    if not len(reached):
        return
    last = dataset.isel(time=reached[-1])
    when = f"at t = {float(last['time']):g}"
    error = float(last.get("generalisation_error_error", math.nan))
    yield f"generalisation error {when}", with_error(float(last["generalisation_error"]), error)
    for name in ("Q", "R"):
        values = last[name].values
        errors = last[f"{name}_error"].values if f"{name}_error" in last else np.full(values.shape, math.nan)
        for k, j in np.ndindex(*values.shape):
            if name == "R" or j >= k:
                yield f"{name}{k + 1}{j + 1} {when}", with_error(float(values[k, j]), float(errors[k, j]))


def of_fixed_points(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of fixed points, and of each its generalisation error and unstable directions."""
    count = int(dataset.sizes["state"])
    yield "fixed points", f"{count}"
    for i in range(count):
        state = dataset.isel(state=i)
        yield f"generalisation error at fixed point {i + 1}", plain(float(state["generalisation_error"]))
        yield f"unstable directions of fixed point {i + 1}", f"{int(state['unstable_directions'])}"
