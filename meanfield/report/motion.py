"""Motion through results of one problem: curves in time with their bands, and laws of weights at each output time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.distributions import (
    Condition,
    conditions_of,
    group_distribution,
    group_sample,
    groups_of,
    laws_given_u,
    marginal_distribution,
    vector_of,
    weights_alone,
)
from meanfield.comparison.inputs import in_time, is_comparable
from meanfield.comparison.sides import moments, predicted_variance
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.plotting.histograms import VISIBLE, bin_edges
from meanfield.plotting.trajectories import all_entries
from meanfield.plotting.weights import reached
from meanfield.problems.family import resolve
from meanfield.problems.output_times import same_times
from meanfield.report.charts import CHANCE, MOST_CURVES, Chart
from meanfield.results.result import Result
from meanfield.typing import FloatArray, IntArray

MOST_POINTS = 150
"""Largest number of points of a curve, and of frames."""

SNAPSHOTS = ("snapshot_time", "density_time")
"""Coordinates with the times at which weights, or densities of several, are known."""

Panel = dict[str, Any]


def motion_of(results: Mapping[str, Result], comparison: xr.Dataset | None = None) -> dict[str, Any] | None:
    """Frames of results of one problem as plain data, or None if none of them is in time.

    Parameters
    ----------
    results : mapping of str to Result
        Labels and results, of which those show nothing that are not in time and have no charts.
    comparison : xarray.Dataset, optional
        What `meanfield.compare` returns of them; then each frame has its share of what chance allows.

    Returns
    -------
    dict
        `times` of the frames, `panels` of kind "course" or "law" or of charts, and `pairs` with a verdict and shares of
        chance.
    """
    comparable = {label: in_time(each) for label, each in results.items() if is_comparable(each)}
    known = {label: each for label, each in comparable.items() if "time" in each.dataset.dims}
    charts = [(label, chart) for label, each in results.items() if each.kind.charts for chart in charts_of(each)]
    times = _frames_of(known, charts)
    panels = [*_courses(known), *_panels_of_charts(charts, times), *_laws(known, times)]
    if len(times) < 2 or not panels:
        return None
    pairs = [] if comparison is None else list(_pairs(Result.of(comparison), times))
    return {"times": rounded(times), "panels": panels, "pairs": pairs}


def rounded(values: Any) -> list[Any]:
    """Numbers to a thousandth of their range, and None for what is not finite, which JSON has no word for."""
    flat = np.ravel(values)
    known = flat[np.isfinite(flat)]
    size = float(np.ptp(known) or np.abs(known).max()) if len(known) else 0.0
    digits = 3 - math.floor(math.log10(size)) if size > 0.0 else 3
    return [round(float(value), digits) if np.isfinite(value) else None for value in flat]


def thinned(values: FloatArray) -> FloatArray:
    """Some of values in order, the ends included."""
    kept = np.linspace(0, len(values) - 1, min(MOST_POINTS, len(values))).round().astype(int)
    return np.asarray(values[np.unique(kept)])


def _in_short(long_name: str) -> str:
    """What a variable is, without what holds in other problems."""
    return long_name.partition("; ")[0]


def charts_of(result: Result) -> list[Chart]:
    """Charts that the family has of a result."""
    return list(resolve(result.kind.charts)(result.dataset))


def _frames_of(results: Mapping[str, Result], charts: list[tuple[str, Chart]]) -> FloatArray:
    """Times of the first result or else chart; of many some, with those at which weights are known."""
    snapshots = [each.dataset[name].values for each in results.values() for name in SNAPSHOTS if name in each.dataset]
    places = [chart.values[chart.values.dims[0]].values for _, chart in charts]
    times = next((each.dataset["time"].values for each in results.values()), next(iter(places), np.empty(0)))
    few = [each for each in (*snapshots, *places) if len(each) < len(times)]
    kept = times[np.unique(np.concatenate([same_times(times, each) for each in few]))] if few else times[:0]
    return np.union1d(thinned(times), kept)


def _panels_of_charts(charts: list[tuple[str, Chart]], times: FloatArray) -> Iterator[Panel]:
    """A panel for each title, with a part for each chart of that title and its values in each frame."""
    panels: dict[str, Panel] = {}
    for label, chart in charts:
        panel = panels.setdefault(chart.title, {"kind": chart.kind, "title": chart.title, "parts": []})
        at = same_times(chart.values[chart.values.dims[0]].values, times)
        places = {key: rounded(each) if isinstance(each, np.ndarray) else each for key, each in chart.places.items()}
        part = {"label": f"{label}, {chart.label}" if chart.label else label, "tab": chart.tab, **places}
        part["frames"], part["shape"] = _rows(chart.values.values, at), chart.values.shape[1:]
        panel["parts"].append(part if chart.half is None else part | {"half": _rows(chart.half, at)})
    yield from panels.values()


def _rows(values: FloatArray, at: IntArray) -> list[Any]:
    """Values at each frame in a row, None for frames without."""
    flat, size = rounded(values), math.prod(values.shape[1:])
    return [flat[k * size : (k + 1) * size] if k >= 0 else None for k in at.tolist()]


def _courses(results: Mapping[str, Result]) -> Iterator[Panel]:
    """A panel for each compared variable, but for further ones that vanish."""
    found = False
    compared = next((each.family.compared for each in results.values()), {})
    for name, variable in compared.items():
        curves = [curve for k, label in enumerate(results) for curve in _curves(k, label, results[label], name)]
        moves = any(value for curve in curves for value in curve["y"])
        if curves and (moves or not found):
            found = True
            yield {"kind": "course", "name": name, "title": _in_short(variable.long_name), "curves": curves}


def _curves(number: int, label: str, result: Result, name: str) -> Iterator[dict[str, Any]]:
    found = moments(result, name)
    if found is None:
        return
    held = result.dataset[f"{name}_mean" if f"{name}_mean" in result.dataset else name]
    held = held.isel(replica=0, drop=True) if "replica" in held.dims else held
    spread = predicted_variance(result, name)
    variance = found.variance if spread is None else spread / result.steps_per_time
    known = np.isfinite(found.runs) or spread is not None
    mean, half = held.copy(data=found.mean), held.copy(data=CHANCE * np.sqrt(variance))
    shown = np.isin(held["time"].values, thinned(held["time"].values))
    entries = all_entries(held, "time")
    for entry, (index, place) in enumerate(entries[:MOST_CURVES]):
        y, width = mean.isel(place).values[shown], half.isel(place).values[shown]
        bands = {"low": rounded(y - width), "high": rounded(y + width)} if known and np.isfinite(width).any() else {}
        text = f"{label} {index}" if len(entries) > 1 else label
        style = {"colour": entry if len(entries) > 1 else number, "dash": number}
        yield style | {"label": text, "t": rounded(held["time"].values[shown]), "y": rounded(y), **bands}


def _laws(results: Mapping[str, Result], times: FloatArray) -> Iterator[Panel]:
    """Panels of weights alone and given their coordinates, of the first density, over histograms of the first runs."""
    densities = [r for r in results.values() if "P" in r.dataset and "feature" in r.dataset.sizes]
    runs = [r.dataset for r in results.values() if "weights" in r.dataset and "snapshot_time" in r.dataset]
    if not densities:
        return
    density = densities[0]
    for place, part, particles in _vectors(density, runs):
        vector = f" of {vector_of(density)} {place[0] + 1}" if place else ""

        def alone(time: float, part: Result = part) -> FloatArray:
            return marginal_distribution(part, time)[0]

        yield _law(f"all weights{vector}", part, times, alone, particles)
        for condition in conditions_of(part.dataset):
            yield from _given(condition, vector, part, times, particles)


def _vectors(density: Result, runs: list[xr.Dataset]) -> Iterator[tuple[tuple[int, ...], Result, xr.Dataset | None]]:
    """The weights of each vector: its place, its density, and its weights of SGD, if there are any."""
    vector = vector_of(density)
    if runs:
        yield from ((pair.place, pair.density, pair.particles) for pair in weights_alone(density, runs[0]))
    elif not vector:
        yield (), density, None
    else:
        for k in range(density.dataset.sizes[vector]):
            yield (k,), density.part(density.dataset.isel({vector: k})), None


def _given(
    condition: Condition, vector: str, density: Result, times: FloatArray, particles: xr.Dataset | None
) -> Iterator[Panel]:
    groups = groups_of(density.dataset, condition.axis)
    laws = {float(time): laws_given_u(density, float(time), condition.axis) for time in _frames(density, times)}
    several = len(conditions_of(density.dataset)) > 1
    name = f"{condition.name}{condition.axis + 1}" if several and condition.name == "u" else condition.name
    for group in groups:

        def distribution(time: float, group: Any = group) -> FloatArray:
            return group_distribution(laws[time], condition.axis, group)[0]

        def sample(held: xr.Dataset, time: float, group: Any = group) -> tuple[FloatArray, FloatArray]:
            w, _, membership = group_sample(held, time, condition.axis, group)
            return w, membership

        title = f"weights{vector} given {name} = {group.centre:.3g}"
        yield _law(title, density, times, distribution, particles, sample)


def _frames(density: Result, times: FloatArray) -> FloatArray:
    known = reached(density.dataset)
    return times[same_times(known, times) >= 0]


def _law(
    title: str,
    density: Result,
    times: FloatArray,
    distribution: Callable[[float], FloatArray],
    particles: xr.Dataset | None,
    sample: Callable[[xr.Dataset, float], tuple[FloatArray, FloatArray]] | None = None,
) -> Panel:
    """Panel of a law: averages of its density over equal intervals in each frame, and histograms in some."""
    edges = edges_of(density.dataset)
    F = {float(time): distribution(float(time)) for time in _frames(density, times)}
    ends = [np.interp([VISIBLE, 1.0 - VISIBLE], each, edges) for each in F.values()]
    w = np.linspace(min(low for low, _ in ends), max(high for _, high in ends), MOST_POINTS + 1)
    frames = [rounded(np.diff(np.interp(w, edges, F[t])) / np.diff(w)) if t in F else None for t in times.tolist()]
    bars = {} if particles is None else dict(_histograms(times, edges, F, particles, sample))
    middle = 0.5 * (w[1:] + w[:-1])
    return {"kind": "law", "title": title, "w": rounded(middle), "frames": frames, "bars": bars}


def _histograms(
    times: FloatArray,
    edges: FloatArray,
    F: Mapping[float, FloatArray],
    particles: xr.Dataset,
    sample: Callable[[xr.Dataset, float], tuple[FloatArray, FloatArray]] | None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Histograms of SGD by their frame, with what chance makes of as many draws from the law."""
    for snapshot in particles["snapshot_time"].values:
        frame = int(same_times(times, np.array([snapshot]))[0])
        if frame < 0 or float(times[frame]) not in F:
            continue
        law = F[float(times[frame])]
        held = particles["weights"].sel(snapshot_time=snapshot).values.ravel()
        drawn, membership = (held, np.ones(len(held))) if sample is None else sample(particles, float(snapshot))
        finite = np.isfinite(drawn)
        if not finite.any():
            continue
        drawn, membership = drawn[finite], membership[finite]
        draws = float(membership.sum() ** 2 / (membership @ membership))
        bins = bin_edges(edges, law, draws)
        widths, share = np.diff(bins), np.diff(np.interp(bins, edges, law))
        heights = np.histogram(drawn, bins, weights=membership)[0] / membership.sum()
        half = CHANCE * np.sqrt(np.clip(share * (1.0 - share), 0.0, None) / draws)
        band = {"low": rounded(np.clip(share - half, 0.0, None) / widths), "high": rounded((share + half) / widths)}
        yield frame, {"edges": rounded(bins), "y": rounded(heights / widths), **band}


def _pairs(comparison: Result, times: FloatArray) -> Iterator[dict[str, Any]]:
    """Verdict on each pair, and in each frame the largest difference as a share of what chance allows, named."""
    held = comparison.dataset
    for i in range(held.sizes["pair"]):
        pair = held.isel(pair=i)
        shares: dict[str, tuple[FloatArray, FloatArray]] = {}
        for name in comparison.family.compared:
            if f"{name}_chance" in pair and f"{name}_difference" in pair:
                ratio = abs(pair[f"{name}_difference"]) / pair[f"{name}_standard_error"]
                shares[name] = _by_time(ratio / pair[f"{name}_chance"])
        for name in comparison.family.judged:
            if name in pair and f"{name}_chance" in pair:
                shares[_in_short(comparison.family.variables[name].long_name)] = _by_time(
                    pair[name] / pair[f"{name}_chance"]
                )
        frames = [_largest(shares, float(time)) for time in times]
        verdict = str(pair["verdict"].values) if "verdict" in pair else ""
        yield {"label": str(pair["pair"].values), "verdict": verdict, "frames": frames}


def _by_time(share: xr.DataArray) -> tuple[FloatArray, FloatArray]:
    """Times, and the largest share of all entries at each."""
    dim = next((str(dim) for dim in ("time", "snapshot_time") if dim in share.dims), None)
    if dim is None or not share.size:  # no snapshot is compared
        return np.empty(0), np.empty(0)
    values = share.transpose(dim, ...).values.reshape(share.sizes[dim], -1)
    return share[dim].values, np.nan_to_num(values, nan=0.0, posinf=0.0).max(axis=1, initial=0.0)


def _largest(shares: Mapping[str, tuple[FloatArray, FloatArray]], time: float) -> list[Any]:
    """Name of what differs most at a time, and its share; an empty list where nothing is compared."""
    found = []
    for name, (known, share) in shares.items():
        at = int(same_times(known, np.array([time]))[0]) if len(known) else -1
        found += [[name, round(float(share[at]), 3)]] if at >= 0 else []
    return max(found, key=lambda each: each[1], default=[])
