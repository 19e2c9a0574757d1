"""Animation of the weights: the density P_t(w|u) over the histograms of SGD, beside the overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

from meanfield.comparison.distributions import (
    Group,
    group_distribution,
    group_sample,
    groups_of,
    laws_given_u,
    marginal_distribution,
)
from meanfield.errors import InputError
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import density_of
from meanfield.plotting.arguments import draws
from meanfield.plotting.histograms import bins_of_sample, density_curve
from meanfield.plotting.style import COLOURS, curve_style
from meanfield.plotting.trajectories import plot_overlap
from meanfield.plotting.weights import reached, visible_weights
from meanfield.results.result import Result
from meanfield.typing import FloatArray


@draws(density="", particles="")
def animate_weights(density: xr.Dataset, particles: xr.Dataset | None = None, feature: int = 0) -> FuncAnimation:
    """Animate the density of the weights, all of them and for some groups of u, over the histograms of SGD.

    There is a frame for each output time of the density. SGD keeps weights at its snapshots only: the histogram is
    that of the nearest one, and faint unless the time is its own. Set `particles.snapshots` to more times for more.

    Parameters
    ----------
    density : xarray.Dataset
        From `meanfield.solve_density`; an interrupted one is shown as far as it came.
    particles : xarray.Dataset, optional
        From `meanfield.simulate_sgd` with weights.
    feature : int
        Whose coordinate makes the groups.

    Returns
    -------
    FuncAnimation
        To be saved by `meanfield.results.figure_files.save_animation`; in a notebook `to_jshtml()` shows it.

    Raises
    ------
    InputError
        If there is no density, the run of SGD has no weights, or there is no such feature.
    """
    if density.attrs.get("method") != "density":
        raise InputError(
            f"an animation shows a density, not '{density.attrs.get('method')}'; give one of solve_density"
        )
    if particles is not None and "weights" not in particles:
        raise InputError("the run of SGD kept no weights; give particles.snapshots the times to keep them at")
    film = _Film(density, particles, feature)
    # milliseconds for which a frame is shown
    return FuncAnimation(film.figure, film.show, frames=len(film.times), interval=100)


@dataclass(frozen=True)
class _Part:
    """Part of the weights: its density at each time, its sample at each snapshot, and the artists that draw both."""

    w: FloatArray
    predicted: FloatArray
    simulated: FloatArray
    line: Line2D
    histogram: StepPatch | None


class _Film:
    """Animation with the artists of all frames."""

    def __init__(self, density: xr.Dataset, particles: xr.Dataset | None, feature: int) -> None:
        self._density, self._particles, self._feature = Result.of(density), particles, feature
        self.times = reached(density)
        self._snapshots = np.empty(0) if particles is None else particles["snapshot_time"].values
        self._range = visible_weights(density, *self.times)
        self._bins = np.array(self._range) if particles is None else self._shared_bins(particles)
        # films need even numbers of pixels
        self.figure = Figure(figsize=(10.0, 3.6), dpi=100, layout="constrained")
        overlap, self._all, given_u = self.figure.subplots(1, 3, width_ratios=(0.8, 1, 1))
        plot_overlap(density, overlap, "density" if particles is not None else "")
        if particles is not None:
            style = curve_style(density.sizes["feature"])
            plot_overlap(particles, overlap, "SGD", style["color"], style["linestyle"])
        self._now = overlap.axvline(self.times[0], color="0.4", lw=1.0)
        groups = groups_of(density, feature)
        # three groups of the feature coordinate are shown
        chosen = np.unique(np.linspace(0, len(groups) - 1, 3).astype(int))
        self._parts = [self._part(None, self._all, {"color": COLOURS[-1], "label": "density"})]
        name = "u" if density.sizes["feature"] == 1 else f"u_{feature + 1}"
        for number, group in enumerate(groups[i] for i in chosen):
            label = rf"${name} \approx {group.centre:.3g}$"
            self._parts.append(self._part(group, given_u, {"label": label} | curve_style(number)))
        self._all.set_ylabel("density $P_t(w)$")
        given_u.set_ylabel(f"density $P_t(w|{name})$")
        given_u.set_title(f"weights given ${name}$", fontsize="medium")
        for axes, parts in ((self._all, self._parts[:1]), (given_u, self._parts[1:])):
            highest = max(float(part.predicted.max()) for part in parts)
            axes.set(xlabel="weight $w$", xlim=self._range, ylim=(0, 1.3 * highest))
        given_u.legend(frameon=False, fontsize="small", loc="upper left")
        overlap.legend(frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        self.figure.suptitle(density.attrs["title"], parse_math=False)
        self.show(0)
        # Labels must not jump from frame to frame, and fitting them takes longer than drawing.
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine(None)  # under "none" each frame would be drawn twice

    def _shared_bins(self, particles: xr.Dataset) -> FloatArray:
        """Bins of all histograms, which suit the visible weights of all snapshots together."""
        w = particles["weights"].values.ravel()
        shown = w[(w > self._range[0]) & (w < self._range[1])]
        return bins_of_sample(shown) if len(shown) else np.array(self._range)

    def _part(self, group: Group | None, axes: Axes, style: dict[str, Any]) -> _Part:
        """Part of the weights whose u is in a group, or all of them."""
        distributions = [
            marginal_distribution(self._density, time)[0]
            if group is None
            else group_distribution(laws_given_u(self._density, time, self._feature), self._feature, group)[0]
            for time in self.times
        ]
        edges = edges_of(self._density.dataset)
        w, predicted = density_curve(edges, density_of(edges, np.array(distributions)))
        simulated = np.array([self._heights(time, group) for time in self._snapshots])
        colour = COLOURS[5] if group is None else style["color"]
        bars: dict[str, Any] = {"facecolor": colour, "fill": True, "linewidth": 0}
        histogram = axes.stairs(simulated[0], self._bins, **bars) if len(simulated) else None
        return _Part(w, predicted, simulated, axes.plot([], [], **style)[0], histogram)

    def _heights(self, time: float, group: Group | None) -> FloatArray:
        """Density of the weights of a group in the bins, of all replicas that reached the snapshot."""
        assert self._particles is not None
        everything = group or Group(0.0, width=np.inf)
        w, _, membership = group_sample(self._particles, time, self._feature, everything)
        known = np.isfinite(w)
        counts, edges = np.histogram(w[known], self._bins, weights=membership[known])
        return np.asarray(counts / (membership[known].sum() * np.diff(edges)))

    def show(self, frame: int) -> Sequence[Line2D]:
        """Draw one frame."""
        time = self.times[frame]
        self._now.set_xdata([time, time])
        self._all.set_title(f"all weights, $t = {time:.4g}$", fontsize="medium")
        nearest = int(np.argmin(np.abs(self._snapshots - time))) if len(self._snapshots) else 0
        for part in self._parts:
            part.line.set_data(part.w, part.predicted[frame])
            if part.histogram is not None:
                part.histogram.set_data(part.simulated[nearest])
                part.histogram.set_alpha(0.45 if np.isclose(self._snapshots[nearest], time) else 0.13)  # opacity
                part.histogram.set_label(
                    f"SGD at $t = {self._snapshots[nearest]:.4g}$" if part is self._parts[0] else ""
                )
        self._all.legend(frameon=False, fontsize="small", loc="upper left")
        return [part.line for part in self._parts]
