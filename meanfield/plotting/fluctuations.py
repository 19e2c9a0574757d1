"""Fluctuations of the overlaps at finite N: predicted bands, and the spread of an ensemble."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.arguments import draws
from meanfield.plotting.style import MARKERS, TIME, curve_style, feature_label
from meanfield.plotting.trajectories import DEVIATIONS, OVERLAP
from meanfield.results.result import Result


@draws(prediction="q_covariance", ensemble="q_covariance")
def plot_fluctuations(
    prediction: xr.Dataset, axes: Axes, ensemble: xr.Dataset | None = None, dimension: int | None = None
) -> Axes:
    """Limit of q with the band of two standard deviations at finite N, and the same of an ensemble as bars.

    Parameters
    ----------
    prediction : xarray.Dataset
        From `meanfield.solve_order_parameters`, with `q_covariance`.
    axes : Axes
    ensemble : xarray.Dataset, optional
        From `meanfield.simulate_sgd` with `particles.record = 'statistics'`.
    dimension : int, optional
        N of the band; by default that of the ensemble, or else `particles.dimension` of the prediction's problem.
    """
    source = prediction if ensemble is None else ensemble
    N = dimension or Result.of(source).label("dimension")
    for k in range(prediction.sizes["feature"]):
        style = curve_style(k)
        q = prediction["q"].isel(feature=k)
        spread = _spread(prediction, k, N)
        label = rf"{feature_label(prediction, 'q', k)}: limit $\pm$ 2 deviations" + "\n" + f"at $N = {N}$"
        axes.plot(q["time"], q, label=label, **style)
        axes.fill_between(q["time"], q - spread, q + spread, color=style["color"], alpha=0.25, lw=0)
        if ensemble is not None:
            _plot_bars(ensemble, axes, k, "" if k else r"SGD $\pm$ 2 deviations")
    axes.set(xlabel=TIME, ylabel=OVERLAP)
    return axes


def _spread(dataset: xr.Dataset, feature: int, dimension: float) -> xr.DataArray:
    """Half-width of a band: rounding may leave variances a little below 0."""
    variance = dataset["q_covariance"].isel(feature=feature, feature_=feature)
    return DEVIATIONS * (variance.clip(min=0.0) / dimension) ** 0.5


def _plot_bars(ensemble: xr.Dataset, axes: Axes, feature: int, label: str) -> None:
    shown = ensemble.isel(time=slice(None, None, max(1, -(-ensemble.sizes["time"] // 15))))  # more bars hide the band
    axes.errorbar(
        shown["time"],
        shown["q_mean"].isel(feature=feature),
        yerr=_spread(shown, feature, Result.of(ensemble).label("dimension")),
        fmt=MARKERS[feature % len(MARKERS)],
        markersize=2.5,
        capsize=2,
        lw=1,
        color="0.2",
        label=label,
    )
