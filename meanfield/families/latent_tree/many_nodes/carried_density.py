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

from meanfield.families.latent_tree.many_nodes.carried import Carried, Nodes
from meanfield.families.latent_tree.many_nodes.latents import BLOW_UP_GROWTH, SIGNS, Density, grown_at
from meanfield.families.latent_tree.problem import Problem
from meanfield.numerics.refinement import Change, doublings, largest_of_times, missed, refine
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

See = Callable[[Nodes, Nodes], dict[str, FloatArray]]
"""Further variables at an output time by their names, from the nodes and from others that went along."""

STEP_OF_FASTEST = 0.2
"""Step times the rate of the fastest node."""

DEGREE = 5
"""Degree of splines, whose errors fall with the sixth power of steps."""


def follow(nodes: Carried, others: Nodes, times: FloatArray, label: str, see: See) -> tuple[dict[str, FloatArray], str]:
    """Variables at the output times, NaN where these were not reached, and the status.

    Parameters
    ----------
    others : Nodes
        Further nodes that go along, and count in no average.
    times : ndarray, shape (times,)
    label : str
        Of the progress bar.
    """
    at, status = marched_times(nodes, times, label)
    rows: list[dict[str, FloatArray]] = []
    before = 0.0
    for T in at[np.isfinite(at)].tolist():
        others, before = nodes.moved(others, abs(T) - before), abs(T)
        places = nodes.at(T)
        rows.append({"Delta": np.array(nodes.Delta(T))} | seen(nodes, places) | see(places, others))
    return by_time(rows, len(times)), status


def by_time(rows: list[dict[str, FloatArray]], times: int) -> dict[str, FloatArray]:
    """Variables at all output times, NaN behind those that were reached."""
    found = {name: np.full((times, *np.shape(value)), np.nan) for name, value in rows[0].items()}
    for k, row in enumerate(rows):
        for name, value in row.items():
            found[name][k] = value
    return found


def seen(nodes: Carried, places: Nodes) -> dict[str, FloatArray]:
    """Lengths and shares of nodes at a time."""
    by_sign = nodes.shares * np.ones((len(nodes.polarity), len(SIGNS)))
    held = (places.side == 0).any(axis=1)
    idle = nodes.paths.gates.idle(places.side)
    return {
        "square": nodes.by_row(nodes.square(places), nodes.weight),
        "held": nodes.by_row(held.astype(float), nodes.weight) * by_sign,
        "idle": nodes.by_row(idle.astype(float), nodes.weight) * by_sign,
    }


def on_cells(
    problem: Problem,
    kind: str,
    counts: tuple[int, int],
    run: Callable[[int], tuple[dict[str, FloatArray], str]],
    what: str,
) -> Density:
    """Density whose cells become smaller until two runs agree.

    Errors are the differences of the two finest runs, of which that of the finer one is half or less: jumps of the
    paths, where nodes pass a corner of gates on one side or the other, leave an order between 1 and 2.

    Parameters
    ----------
    counts : (int, int)
        Numbers of cells in the first run and the last.
    run : callable
        Number of cells -> variables at the output times, and the status.
    what : str
        The cells, in words behind their number.
    """
    tolerance = problem.density.tolerance
    found = refine(
        doublings(*counts),
        run,
        lambda coarse, fine: change_by(np.abs(fine[0]["Delta"] - coarse[0]["Delta"]), fine[0]["Delta"]),
        tolerance,
        lambda run: run[1] if run[1] == "interrupted" else "complete",  # weights become infinite on all levels alike
    )
    fine, status = found.result
    text = f"Delta with {found.level} {what}"
    warning = missed(text, found.change.largest, "density.tolerance", tolerance, "raise it, or lower time.stop")
    errors = found.change.errors or {"Delta_error": np.full_like(fine["Delta"], np.nan)}
    if found.before is not None:
        before = found.before[0]
        if "projected" in fine:
            moved = np.abs(fine["projected"] - before["projected"]).max(axis=(1, 2, 3, 4))
            errors |= {"projected_error": np.maximum.accumulate(moved)}
        if "loss" in fine:
            errors |= {"loss_error": largest_of_times(fine["loss"] - before["loss"])}
    return Density(kind, fine | errors, "interrupted" if found.interrupted else status, warning)


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
