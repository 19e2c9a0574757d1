"""Results that follow from nodes that are carried along their paths, at the output times.

Averages over nodes have kinks in T, those of each node at its gates, and an integrator that looks for smooth pieces
would find none. So T goes on in steps that are short for the fastest node, and once nodes gather, for the time that has
passed; 1/(o Delta) is a spline.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq

from meanfield.families.latent_tree.many_nodes.carried import Carried
from meanfield.families.latent_tree.many_nodes.latents import BLOW_UP_GROWTH, SIGNS, grown_at
from meanfield.numerics.refinement import Change, largest_of_times
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

See = Callable[[float], dict[str, FloatArray]]
"""Further variables at an output time, from T, by their names."""

STEP_OF_FASTEST = 0.2
"""Step times the rate of the fastest node."""

DEGREE = 5
"""Degree of splines, whose errors fall with the sixth power of steps."""


def follow(nodes: Carried, times: FloatArray, label: str, see: See) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times, NaN where these were not reached, and the status.

    Parameters
    ----------
    times : ndarray, shape (times,)
    label : str
        Of the progress bar.
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
    held = (places.side == 0).any(axis=1)
    idle = nodes.paths.gates.idle(places.side)
    return {
        "Delta": np.array(nodes.from_averages(s)),
        "square": square,
        "held": nodes.by_row(held.astype(float), nodes.weight) * by_sign,
        "idle": nodes.by_row(idle.astype(float), nodes.weight) * by_sign,
    }


def change_by(error: FloatArray, Delta: FloatArray) -> Change:
    """Change by an error of Delta, for which the tolerance is absolute below 1 and relative above."""
    size = np.maximum(np.abs(Delta), 1.0)
    relative = largest_of_times(error / size)
    return Change({"Delta_error": relative * size}, float(np.nanmax(relative)))


def marched_times(nodes: Carried, times: FloatArray, label: str) -> tuple[FloatArray, str]:
    """T at each output time, NaN where it was not reached, and the status.

    Parameters
    ----------
    times : ndarray, shape (times,)
    label : str
        Of the progress bar.
    """
    stop, status = float(times[-1]), "complete"
    depth = [0.0]
    rate = [_rate(nodes, 0.0)]
    passed = 0.0
    shortest = min(STEP_OF_FASTEST / nodes.fastest, stop / (rate[0] * 8))  # and 8 steps at least
    with progress_bar(stop, label, "t") as bar:
        try:
            while passed < 1.01 * stop:  # the trapezoidal rule is not as exact as the spline
                # All comes to rest where lengths stay.
                step = shortest if nodes.grows else max(shortest, 0.05 * depth[-1])
                depth.append(depth[-1] + step)
                rate.append(_rate(nodes, depth[-1]))
                passed += 0.5 * step * (rate[-1] + rate[-2])
                bar.update(min(passed, stop) - bar.n)
                if rate[0] > BLOW_UP_GROWTH * rate[-1]:
                    break
        except KeyboardInterrupt:
            status = "interrupted"
            del depth[len(rate) :]
    found = np.full(len(times), np.nan)
    found[0] = 0.0
    if len(depth) <= DEGREE:
        return found, status
    t = make_interp_spline(np.array(depth), np.array(rate), k=DEGREE).antiderivative()
    reached = float(t(depth[-1]))
    for k in np.flatnonzero((times > 0.0) & (times <= reached)):
        found[k] = brentq(lambda T, at=float(times[k]): float(t(T)) - at, 0.0, depth[-1], xtol=1e-14 * depth[-1])
    if status == "complete" and rate[0] > BLOW_UP_GROWTH * rate[-1] and reached < stop:
        status = grown_at(reached).status
    return nodes.sign * found, status


def _rate(nodes: Carried, depth: float) -> float:
    """dt/dT."""
    return 1.0 / (nodes.o * abs(nodes.Delta(nodes.sign * depth)))
