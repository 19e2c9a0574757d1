"""Figures: order parameters in time, reports on assumptions, discrepancies of a sweep; escape also in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting import order_parameters
from meanfield.plotting.order_parameters import mean_of
from meanfield.plotting.panels import Panel, draw_panels, mark_quantiles, mark_time
from meanfield.plotting.phase_diagram import named_in
from meanfield.plotting.style import TIME, curve_style
from meanfield.report.charts import Chart, matrices, profile, profile_of_runs
from meanfield.results.result import Result
from meanfield.results.text import plain
from meanfield.typing import FloatArray

THEORIES = {"": "mixture", "_matched": "matched Gaussian", "_conventional": "conventional"}
"""Endings of variables, and labels of their curves."""

ASSUMPTION_PANELS = {
    "generalisation_error": r"generalisation error $\epsilon_g$",
    "R": "overlap with teacher",
    "Q": "covariance",
}
"""Label of the axis of each variable."""


PANELS = {
    "generalisation_error": (r"generalisation error $\epsilon_g$", r"\epsilon_g"),
    "R": ("overlap with the teacher $R_{km}$", "R"),
    "Q": ("covariance of the student $Q_{kl}$", "Q"),
    "v": ("second layer $v_k$", "v"),
}
"""Label of the axis and symbol of each variable."""


def plot_order_parameters(dataset: xr.Dataset) -> Figure:
    """Generalisation error, R, Q, and the second layer where it is trained; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `order_parameters`, `density`, `particles` or `ensemble`.
    """
    v = mean_of(dataset, "v")
    moves = np.nanmax(np.abs(v - v[0])) > 1e-12
    shown = {name: words for name, words in PANELS.items() if name != "v" or moves}
    return order_parameters.plot_order_parameters(dataset, shown)


def plot_assumptions(report: xr.Dataset) -> Figure:
    """Generalisation error, the entries of R and Q in which the theories differ most, and the kurtosis of fields."""
    panels: list[Panel] = [partial(_plot_theories, name=name) for name in ASSUMPTION_PANELS]
    return draw_panels(report, [*panels, _plot_kurtosis] if "kurtosis" in report else panels)


def _plot_theories(report: xr.Dataset, axes: Axes, name: str) -> Axes:
    values: dict[str, FloatArray] = {end: report[name + end].values for end in THEORIES if name + end in report}
    place = _most_apart(list(values.values()))
    index = "".join(str(k + 1) for k in place)
    for number, (end, curve) in enumerate(values.items()):
        axes.plot(report["time"], [now[place] for now in curve], label=THEORIES[end], **curve_style(number))
    axes.set(
        xlabel=TIME, ylabel=f"{ASSUMPTION_PANELS[name]} ${name}_{{{index}}}$" if index else ASSUMPTION_PANELS[name]
    )
    return axes


def _most_apart(curves: list[FloatArray]) -> tuple[int, ...]:
    """Entry in which curves differ most, the first if there is one curve."""
    apart = np.nan_to_num(np.ptp(np.array(curves), axis=0)).max(axis=0)
    return tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape)) if apart.ndim else ()


def _plot_kurtosis(report: xr.Dataset, axes: Axes) -> Axes:
    values = report["kurtosis"].values
    for k in range(values.shape[1]):
        axes.plot(report["time"], values[:, k], label=rf"$\lambda_{{{k + 1}}}$", **curve_style(k))
    axes.axhline(3.0, color="0.6", lw=0.8)
    axes.set(xlabel=TIME, ylabel="kurtosis of the student's fields")
    return axes


def describe(escape: xr.Dataset) -> str:
    """Result of `predict_escape` as a sentence."""
    times = ["later than the end" if np.isnan(t) else f"at t = {t:.4g}" for t in escape["escape_time_quantile"].values]
    problem = Result.of(escape).problem
    if problem.student.initial != "random":
        return f"students are told apart {times[0]}"
    shares = (f"{100 * share:g} % {when}" for share, when in zip(escape["quantile"].values, times, strict=True))
    return f"random start, N = {problem.particles.dimension:,}: of starts escape {', '.join(shares)}"


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
    quantiles, times = escape["quantile"].values, escape["escape_time_quantile"].values
    random = Result.of(escape).problem.student.initial == "random"  # else all quantiles are one time
    mark_quantiles(axes, quantiles, times) if random else mark_time(axes, times[0], "escape")
    axes.set(xlabel=TIME, ylabel="antisymmetric part of $R$, linearised")
    return axes


def plot_discrepancy(sweep: xr.Dataset) -> Figure:
    """How far SGD is from the ODEs of Gaussian latents against how far latents are from these: Q, R and v.

    Parameters
    ----------
    sweep : xarray.Dataset
        That keeps the reduction `discrepancy`. Axes over seeds are averaged over, with bands of one standard error, the
        first of the others is followed along each curve, and any more tell curves apart.
    """
    return draw_panels(sweep, [partial(_plot_discrepancy, name=name) for name in ("Q", "R", "v")])


def _plot_discrepancy(sweep: xr.Dataset, axes: Axes, name: str) -> Axes:
    variable = named_in(sweep, f"{name}_discrepancy")
    y, x = sweep[variable], sweep[named_in(sweep, "latent_divergence")]
    seeds = [dim for dim in y.dims if str(sweep[dim].attrs["key"]).endswith("seed")]
    along, *others = [dim for dim in y.dims if dim not in seeds] or seeds[:1]
    drawn = seeds if along not in seeds else []
    mean, error = y.mean(drawn), sweep[f"{variable}_error"]
    if drawn:
        error = y.std(drawn, ddof=1) / np.sqrt(y.count(drawn))
    for number, place in enumerate(np.ndindex(*(y.sizes[dim] for dim in others))):
        at = dict(zip(others, place, strict=True))
        label = ", ".join(f"{dim} = {plain(float(sweep[dim][k]))}" for dim, k in at.items())
        curve = xr.Dataset({"x": x.mean(drawn), "mean": mean, "error": error}).isel(at).sortby("x")
        style = curve_style(number)
        axes.plot(curve["x"], curve["mean"], marker="o", markersize=4, label=label or None, **style)
        low, high = (curve["mean"] + sign * curve["error"].fillna(0.0) for sign in (-1.0, 1.0))
        axes.fill_between(curve["x"], low, high, alpha=0.2, lw=0, color=style["color"])
    logarithmic = Result.of(sweep).problem.time.spacing == "log"
    axes.set(xlabel=r"KL divergence of latents from $\mathcal{N}(0, 1)$")
    axes.set_ylabel(f"{'tLog-RMSE' if logarithmic else 'RMSE'} of ${name}$", rotation="vertical")
    axes.set_title(r"mean $\pm$ standard error", fontsize="small")
    axes.set_ylim(bottom=0.0)
    return axes


def charts(dataset: xr.Dataset) -> Iterator[Chart]:
    """Matrices R and Q, and overlaps over eigenvalues of the features: of the limit, and of weights of SGD."""
    yield from matrices(dataset, "R", "Q")
    with_teacher, of_students = "overlaps r with teachers", "overlaps sigma of students"
    if "sigma" in dataset:
        yield from profile(with_teacher, dataset["r"])
        yield from profile(of_students, dataset["sigma"])
    if "S" in dataset:
        S, rho = dataset["S"], dataset["rho_of_coordinate"]
        yield from profile_of_runs(with_teacher, S, dataset["teacher_components"], rho)
        yield from profile_of_runs(of_students, S, S.rename(student="student_"), rho)
