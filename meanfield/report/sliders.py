"""Page to move through results and sweeps: sliders over time and over the solved points of a sweep, no figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison import compare
from meanfield.comparison.inputs import is_comparable
from meanfield.errors import InputError
from meanfield.plotting.trajectories import all_entries
from meanfield.report.charts import MOST_CURVES
from meanfield.report.motion import motion_of, rounded, thinned
from meanfield.report.page import Page, grouped, names_of, rendered
from meanfield.results.collection import by_label
from meanfield.results.result import Result


def explore(datasets: Mapping[str, xr.Dataset] | xr.DataTree) -> Page:
    """Self-contained HTML page with sliders through results, as text that notebooks show.

    Parameters
    ----------
    datasets : mapping of str to xarray.Dataset
        Labels and results in time; those of one problem share a panel and are compared there. A sweep over one or two
        keys has a slider for each, which stops at the points that were solved.

    Returns
    -------
    Page
        A str, HTML with a script of its own, which needs no network and no other file.

    Raises
    ------
    InputError
        If nothing is in time or a sweep, a sweep has more than two axes, or the page would be too large.
    """
    motions: list[tuple[str, dict[str, Any]]] = []
    groups = grouped(by_label(datasets))
    names = names_of([problem for problem, _ in groups])
    for name, (_, group) in zip(names, groups, strict=True):
        for label in [label for label, result in group.items() if result.method == "sweep"]:
            sweep = group.pop(label)
            motions.append((str(sweep.dataset.attrs.get("title")) or label, _motion_of_sweep(sweep)))
        found = _motion_of_group(group)
        if found is not None:
            motions.append((name, found))
    if not motions:
        raise InputError("none of the results is in time or a sweep; put others on a page by meanfield report")
    titles, shown = zip(*motions, strict=True)
    return rendered("explore.html", title=titles[0], names=titles, motions=shown)


def _motion_of_group(group: Mapping[str, Result]) -> dict[str, Any] | None:
    whole = {label: each for label, each in group.items() if not each.status.startswith("failed")}
    compared = {label: each.dataset for label, each in whole.items() if is_comparable(each)}
    if len(compared) < 2:
        return motion_of(group)
    return motion_of(whole, compare(*compared.values(), labels=list(compared)))


def _motion_of_sweep(result: Result) -> dict[str, Any]:
    """Points of a sweep in the order of its axes, each with its curves in time or the reason why it has none."""
    sweep = result.dataset
    dims = sweep["status"].dims
    if not 1 <= len(dims) <= 2:
        raise InputError(
            f"the sweep has {len(dims)} axes ({', '.join(map(str, dims))}), and a page has sliders for one or two; "
            "select values of the others first, as in sweep.isel(name=0), and save that"
        )
    axes = [{"label": str(dim).replace("_", " "), "values": sweep[dim].values.tolist()} for dim in dims]
    points = [_point(sweep.isel(place)) for place in _places(sweep, dims)]
    motion: dict[str, Any] = {"axes": axes, "points": points}
    shown = next(_numbers(sweep, dims), None)
    if shown is not None:
        values = shown.transpose(*dims).values
        motion["map"] = {"title": str(shown.attrs.get("long_name", shown.name)), "values": rounded(values)}
    return motion


def _places(sweep: xr.Dataset, dims: tuple[Any, ...]) -> Iterator[dict[Any, int]]:
    yield from (dict(zip(dims, place, strict=True)) for place in np.ndindex(*(sweep.sizes[dim] for dim in dims)))


def _numbers(sweep: xr.Dataset, dims: tuple[Any, ...]) -> Iterator[xr.DataArray]:
    """Numbers of all points: those that a sweep keeps, then the last ones in time."""
    floats = [each for each in sweep.data_vars.values() if each.dtype.kind == "f"]
    yield from (each for each in floats if set(each.dims) == set(dims))
    for each in floats:
        if "time" in each.dims:
            last = each.isel({dim: -1 if dim == "time" else 0 for dim in each.dims if dim not in dims})
            yield last.assign_attrs(long_name=f"{each.attrs.get('long_name', each.name)}, at the end")


def _point(point: xr.Dataset) -> dict[str, Any]:
    status = str(point["status"].values)
    if status != "complete":
        return {"reason": status}
    panels = [_course(each) for each in point.data_vars.values() if "time" in each.dims and each.dtype.kind == "f"]
    if not panels:
        return {}
    return {"times": panels[0]["curves"][0]["t"], "panels": panels}


def _course(values: xr.DataArray) -> dict[str, Any]:
    shown = values.sel(time=thinned(values["time"].values))
    title = str(values.attrs.get("long_name", values.name))
    entries = all_entries(shown, "time")[:MOST_CURVES]
    curves = [
        {
            "colour": number,
            "dash": number,
            "label": f"{values.name} {index}" if len(entries) > 1 else str(values.name),
            "t": rounded(shown["time"]),
            "y": rounded(shown.isel(place)),
        }
        for number, (index, place) in enumerate(entries)
    ]
    return {"kind": "course", "title": title, "curves": curves}
