"""Escape from the symmetric plateau in a sentence, in key numbers, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting.style import TIME, curve_style, draw_panels
from meanfield.results.numbers import plain
from meanfield.results.result import Result


def describe(escape: xr.Dataset) -> str:
    """Result of `predict_escape` as a sentence."""
    times = ["later than the end" if np.isnan(t) else f"at t = {t:.4g}" for t in escape["escape_time_quantile"].values]
    if Result.of(escape).problem.student.initial != "random":
        return f"students are told apart {times[0]}"
    shares = (f"{100 * share:g} % {when}" for share, when in zip(escape["quantile"].values, times, strict=True))
    return f"random start, N = {Result.of(escape).label('dimension'):,.0f}: of starts escape {', '.join(shares)}"


def key_numbers(escape: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Quantiles of the escape time, and the growth rate at the end."""
    for share, t in zip(escape["quantile"].values, escape["escape_time_quantile"].values, strict=True):
        yield f"time by which {100 * share:g} % of starts escape", plain(float(t))
    yield "growth rate at the end", plain(float(escape["antisymmetric_rate"][-1]))


def plot_escape(escape: xr.Dataset) -> Figure:
    """Generalisation error on the plateau, and the deviation between students with the times of escape."""
    return draw_panels(escape, [_plot_error, _plot_deviation])


def _plot_error(escape: xr.Dataset, axes: Axes) -> Axes:
    axes.plot(escape["time"], escape["generalisation_error"], **curve_style(0))
    axes.set(xlabel=TIME, ylabel=r"generalisation error $\epsilon_g$ of students alike")
    return axes


def _plot_deviation(escape: xr.Dataset, axes: Axes) -> Axes:
    axes.semilogy(escape["time"], escape["antisymmetric_part"], **curve_style(0))
    random = Result.of(escape).problem.student.initial == "random"  # else all quantiles are one time
    shown = escape if random else escape.isel(quantile=[0])
    for share, t in zip(shown["quantile"].values, shown["escape_time_quantile"].values, strict=True):
        if np.isfinite(t):
            words = f"{100 * share:g} %" if random else "escape"
            axes.axvline(t, color="0.6", lw=0.8)
            axes.annotate(words, (t, 0.02), xycoords=("data", "axes fraction"), fontsize="small")
    axes.set(xlabel=TIME, ylabel="antisymmetric part of $R$, linearised")
    return axes
