"""Results that follow from nodes that are carried along their paths, at the output times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.latents import SIGNS
from meanfield.families.latent_tree.many_nodes.marched_time import marched_times
from meanfield.typing import FloatArray

See = Callable[[float], dict[str, FloatArray]]
"""What else is seen at an output time, at T, by the name of a variable."""


def follow(nodes: Carried, times: FloatArray, label: str, see: See) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times, NaN where these were not reached, and the status.

    Parameters
    ----------
    nodes : Carried
    times : ndarray, shape (times,)
    label : str
        Of the progress bar.
    see : callable
    """
    at, status = marched_times(nodes, times, label)
    rows: dict[int, dict[str, FloatArray]] = {}
    for k in np.flatnonzero(np.isfinite(at)).tolist():
        rows[k] = _seen(nodes, float(at[k])) | see(float(at[k]))
    found = {name: np.full((len(times), *np.shape(value)), np.nan) for name, value in rows[0].items()}
    for k, row in rows.items():
        for name, value in row.items():
            found[name][k] = value
    return found, status


def _seen(nodes: Carried, T: float) -> dict[str, FloatArray]:
    """Variables of all densities at a time."""
    s, square = nodes.averages(T)
    places = nodes.at(T)
    by_sign = nodes.shares * np.ones((len(nodes.polarity), len(SIGNS)))
    held, idle = (places.side == 0).any(axis=1), nodes.paths.gates.idle(places.side)
    return {
        "Delta": np.array(nodes.from_averages(s)),
        "square": square,
        "held": nodes.by_row(held.astype(float), nodes.weight) * by_sign,
        "idle": nodes.by_row(idle.astype(float), nodes.weight) * by_sign,
    }
