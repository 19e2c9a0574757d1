"""Description of the dynamics of a problem in a few lines of text."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield.results.description import describe_states


def describe(dynamics: xr.Dataset) -> str:
    """Result of `analyse_dynamics` as text: a line for each fixed point, then growth from q = 0 and random starts."""
    lines = describe_states(dynamics)
    if dynamics.attrs.get("indices_add_up", "true") != "true":
        lines.append("the indices of these do not add up to 1: a fixed point may be missing")
    return "\n".join([*lines, *describe_growth(dynamics)])


def describe_growth(dynamics: xr.Dataset) -> list[str]:
    """Growth from q = 0, and the outcome of random starts, as text."""
    return [*_growth(dynamics), *_random_starts(dynamics)]


def _growth(dynamics: xr.Dataset) -> list[str]:
    if "copies" in dynamics:
        return _growth_of_channels(dynamics)
    if "uninformed_rate" not in dynamics:
        return ["q = 0 is not stationary: overlaps leave it at once"]
    rates = ", ".join(f"{value:.4g}" for value in dynamics["uninformed_rate"].values)
    low, high = dynamics["learnable_moment"].values
    if np.isnan(low):
        learnable = "no second moment is learnable"
    else:
        learnable = f"second moments above {low:.4g}" if np.isinf(high) else f"second moments below {high:.4g}"
        learnable += " are learnable from nothing"
    return [f"growth rates at q = 0: {rates}; {learnable}"]


def _growth_of_channels(dynamics: xr.Dataset) -> list[str]:
    """Growth in channels that have learnt nothing, while no other or another one has learnt a feature."""
    starts = dynamics["region_share"].attrs["starts"]
    last = f"shares are of {starts} random starts; no search can prove that it has found all fixed points"
    if "uninformed_channel_rate" not in dynamics:
        return ["where nothing is learnt overlaps do not grow by themselves: they are driven, or features mix", last]
    rates = dynamics["uninformed_channel_rate"].values[:, 0]
    given = dynamics["conditional_rate"].values
    lines = [f"growth rates where no channel has learnt: {', '.join(f'{value:.4g}' for value in rates)}"]
    for learnt in range(len(rates)):
        others = ", ".join(f"{value:.4g} of feature {f + 1}" for f, value in enumerate(given[:, learnt]) if f != learnt)
        if np.isfinite(given[:, learnt]).any():
            lines.append(f"beside a channel with feature {learnt + 1}: {others}")
    return [*lines, last]


def _random_starts(dynamics: xr.Dataset) -> list[str]:
    if "escape_time_quantile" not in dynamics:
        return []
    lines = []
    for i, N in enumerate(dynamics["dimension"].values):
        times = dynamics["escape_time_quantile"].values[i]
        line = f"random start, N = {N:.0e}: escape at t = {times[0]:.4g}, {times[1]:.4g}, {times[2]:.4g} (10, 50, 90 %)"
        if "win_chance" in dynamics:
            line += "; features win with chance " + ", ".join(f"{p:.3f}" for p in dynamics["win_chance"].values[i])
        lines.append(line)
    return lines
