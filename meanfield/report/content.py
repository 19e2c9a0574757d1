"""What a page says of one result: status, key numbers, tables, conservation, provenance and variables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.comparison import summary_of_pair
from meanfield.explanation.explanation import duration, size
from meanfield.families.contrastive.dynamics.description import describe_growth
from meanfield.numerics.growth_rates import VERDICTS
from meanfield.results.description import describe_branches
from meanfield.results.numbers import plain, with_error
from meanfield.results.schema import problem_of
from meanfield.sweep import describe as describe_sweep

METHODS = {
    "density": "density of weights and features, from the Fokker-Planck equation",
    "order_parameters": "order parameters, from the reduced ODEs",
    "stationary": "stationary states of the density",
    "continuation": "branches of stationary states",
    "fixed_point_branches": "branches of fixed points",
    "portrait": "phase portrait of two features",
    "dynamics": "dynamics of the order parameters",
    "comparison": "comparison of results",
    "particles": "stochastic gradient descent at finite N",
    "ensemble": "stochastic gradient descent at finite N, statistics of an ensemble",
    "sweep": "many problems at once, over values of some of their keys",
}
"""By the attribute `method`."""

MOST_ROWS = 60
"""Of a table; a result may have more states."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""


@dataclass(frozen=True)
class Content:
    """All words and numbers of one result.

    Parameters
    ----------
    method : str
        In words.
    state : str
        `complete`, `interrupted` or `failed`.
    reason : str
        What the attribute `status` says besides.
    numbers : list of (str, str)
        Names and values, with errors where they are known.
    conserved : list of (str, str)
        Deviations of what the equations conserve.
    tables : list of Table
    notes : list of str
    provenance : list of (str, str)
    variables : Table
    """

    method: str
    state: str
    reason: str
    numbers: list[tuple[str, str]] = field(default_factory=list)
    conserved: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    provenance: list[tuple[str, str]] = field(default_factory=list)
    variables: Table = field(default_factory=lambda: Table((), []))


def content_of(dataset: xr.Dataset) -> Content:
    """The content of a result of any method.

    Parameters
    ----------
    dataset : xarray.Dataset
    """
    method, status = str(dataset.attrs["method"]), str(dataset.attrs["status"])
    state, _, reason = status.partition(": ")
    return Content(
        METHODS[method],
        state if state in ("complete", "interrupted") else "failed",
        reason,
        list(NUMBERS.get(method, _no_numbers)(dataset)),
        list(_conserved(dataset)),
        list(_tables(dataset)),
        list(_notes(dataset)),
        _provenance(dataset),
        _variables(dataset),
    )


def _no_numbers(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    yield from ()


def _last(dataset: xr.Dataset, name: str) -> tuple[xr.Dataset, str] | None:
    """The last time that was reached, and what to call it."""
    values = dataset[name].transpose("time", ...).values
    reached = np.flatnonzero(np.isfinite(values.reshape(len(values), -1)).any(axis=1))
    if not len(reached):
        return None
    at = int(reached[-1])
    return dataset.isel(time=at), f"at t = {float(dataset['time'][at]):g}"


def _of_the_limit(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Density and order parameters: values with estimated errors, or with the spread of SGD."""
    found = _last(dataset, "q")
    if found is None:
        return
    last, when = found
    errors = last["q_error"].values if "q_error" in last else np.full(last.sizes["feature"], np.nan)
    for name, value, error in zip(_features(last, "q"), last["q"].values, errors, strict=True):
        yield f"overlap {name} {when}", with_error(value, error)
    if "r" in last:
        yield f"prior work r {when}", with_error(float(last["r"]), float(last.get("r_error", math.nan)))
    yield f"diffusion coefficient Lambda {when}", plain(float(last["Lambda"]))
    if "P_error" in last:
        yield "estimated L1 error of P", plain(float(last["P_error"]))
    if "q_covariance" in last:
        N = problem_of(dataset).particles.dimension
        for k, name in enumerate(_features(last, "q")):
            spread = math.sqrt(max(float(last["q_covariance"].values[k, k]), 0.0) / N)
            yield f"spread of {name} over runs of SGD at N = {N:,}", plain(spread)


def _of_particles(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Means over replicas with their standard errors."""
    found = _last(dataset, "q")
    if found is None:
        return
    last, when = found
    q, r = last["q"].values.reshape(-1, last.sizes["feature"]), last["r"].values.reshape(-1)
    yield "replicas", f"{len(q):,}"
    for k, name in enumerate(_features(last, "q")):
        yield f"overlap {name} {when}, mean and standard error", _mean(q[:, k])
    yield f"prior work r {when}, mean and standard error", _mean(r)
    yield from _of_escapes(dataset)


def _of_an_ensemble(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Statistics, with standard errors of the means."""
    found = _last(dataset, "q_mean")
    count, N = int(dataset["count"]), problem_of(dataset).particles.dimension
    yield "replicas", f"{count:,}"
    if found is None:
        return
    last, when = found
    for k, name in enumerate(_features(last, "q")):
        spread = math.sqrt(max(float(last["q_covariance"].values[k, k]), 0.0) / N)
        mean = with_error(float(last["q_mean"][k]), spread / math.sqrt(max(count, 1)))
        yield f"overlap {name} {when}, mean and standard error", mean
        yield f"spread of {name} over replicas", plain(spread)
    error = math.sqrt(max(float(last["r_variance"]), 0.0) / N / max(count, 1))
    yield f"prior work r {when}, mean and standard error", with_error(float(last["r_mean"]), error)
    yield from _of_escapes(dataset)


def _of_escapes(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Escape times and winners, where they were kept."""
    if "escape_time" not in dataset:
        return
    times = dataset["escape_time"].values
    escaped = times[np.isfinite(times)]
    yield "replicas that escaped", f"{len(escaped):,} of {len(times):,}"
    if len(escaped):
        yield "median escape time of these", plain(float(np.median(escaped)))
    winners = dataset["winner"].values if "winner" in dataset else np.empty(0)
    features = int(dataset.sizes["feature"])
    if features > 1 and len(winners):
        for k in range(features):
            yield f"replicas in which feature {k + 1} won", f"{np.count_nonzero(winners == k):,}"


def _of_states(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """How many states there are, and of which stability."""
    dim = dataset["stability"].dims[0]
    verdicts = dataset["stability"].values
    yield f"{'points on branches' if dim == 'point' else 'states'}", f"{len(verdicts)}"
    for code, word in VERDICTS.items():
        if np.any(verdicts == code):
            yield f"of these {word}", f"{np.count_nonzero(verdicts == code)}"


def _of_a_sweep(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """The axes, and the range of each number that is kept at every point."""
    for axis in dataset["status"].dims:
        values, key = dataset[axis].values, str(dataset[axis].attrs["key"])
        ends = [plain(float(end)) if values.dtype.kind in "fiu" else str(end) for end in values[[0, -1]]]
        yield f"axis {key}", f"{len(values)} values from {ends[0]} to {ends[1]}"
    for name, variable in dataset.data_vars.items():
        finite = variable.values[np.isfinite(variable.values)] if variable.dtype.kind in "fiu" else np.empty(0)
        if variable.dims == dataset["status"].dims and finite.size:
            yield f"{name}: {variable.attrs['long_name']}", f"{plain(finite.min())} to {plain(finite.max())}"


NUMBERS: dict[str, Callable[[xr.Dataset], Iterator[tuple[str, str]]]] = {
    "density": _of_the_limit,
    "order_parameters": _of_the_limit,
    "particles": _of_particles,
    "ensemble": _of_an_ensemble,
    "stationary": _of_states,
    "continuation": _of_states,
    "fixed_point_branches": _of_states,
    "portrait": _of_states,
    "dynamics": _of_states,
    "sweep": _of_a_sweep,
}
"""What makes the key numbers of a method."""


def _mean(values: Any) -> str:
    finite = values[np.isfinite(values)]
    error = finite.std(ddof=1) / math.sqrt(len(finite)) if len(finite) > 1 else math.nan
    return with_error(float(finite.mean()), float(error)) if len(finite) else "nothing finite"


def _features(dataset: xr.Dataset, symbol: str) -> list[str]:
    count = int(dataset.sizes["feature"])
    return [symbol] if count == 1 else [f"{symbol}{k + 1}" for k in range(count)]


CONSERVED = {
    "mass": ("total probability, largest |mass - 1|", 1.0),
    "norm": ("second moment, largest |E[w²] - 1|", 1.0),
    "residual": ("equations of the state, largest residual", 0.0),
    "multiplier_residual": ("multiplier of the norm, largest residual", 0.0),
    "quadrature_error": ("quadrature over u and w, largest error of q", 0.0),
}
"""What should be constant: its meaning and its value."""


def _conserved(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    for name, (meaning, right) in CONSERVED.items():
        if name in dataset and np.isfinite(dataset[name].values).any():
            yield meaning, plain(float(np.nanmax(np.abs(dataset[name].values - right))))
    if "weights" in dataset and np.isfinite(dataset["weights"].values).any():
        square = (dataset["weights"].astype(float) ** 2).mean("coordinate")
        yield "length of the weights, largest | |w|²/N - 1 |", plain(float(np.nanmax(np.abs(square.values - 1.0))))


def _tables(dataset: xr.Dataset) -> Iterator[Table]:
    method = dataset.attrs["method"]
    if method == "comparison":
        for i, pair in enumerate(dataset["pair"].values):
            yield Table(("quantity", "largest over time"), summary_of_pair(dataset.isel(pair=i)), str(pair))
    elif "state" in dataset.dims:
        yield _state_table(dataset)


def _state_table(dataset: xr.Dataset) -> Table:
    """One row for each stationary state or fixed point."""
    columns: list[tuple[str, Callable[[xr.Dataset], str]]] = [
        (name, lambda state, k=k: f"{float(state['q'][k]) + 0.0:.6f}")  # type: ignore[misc]
        for k, name in enumerate(_features(dataset, "q"))
    ]
    if "r" in dataset:
        columns.append(("r", lambda state: plain(float(state["r"]))))
    if "kind" in dataset:
        columns.append(("kind", lambda state: str(state["kind"].values)))
    else:
        columns.append(("stability", lambda state: VERDICTS.get(int(state["stability"]), "unknown")))
    columns.append(("growth rate", lambda state: plain(float(state["growth_rate"]))))
    if "region_share" in dataset:
        columns.append(("attracts", lambda state: _share(float(state["region_share"]))))
    count = dataset.sizes["state"]
    rows = [tuple(of(dataset.isel(state=i)) for _, of in columns) for i in range(min(count, MOST_ROWS))]
    caption = "" if count <= MOST_ROWS else f"the first {MOST_ROWS} of {count} states"
    return Table(tuple(name for name, _ in columns), rows, caption)


def _share(share: float) -> str:
    return f"{share:.1%}" if share > 0 else ""


def _notes(dataset: xr.Dataset) -> Iterator[str]:
    """Branches, growth from nothing and random starts, as the scripts print them."""
    method = dataset.attrs["method"]
    if method in ("continuation", "fixed_point_branches") and dataset.sizes["point"]:
        yield from describe_branches(dataset)
    if method == "dynamics":
        yield from describe_growth(dataset)
    if method == "sweep":
        yield from describe_sweep(dataset).splitlines()


def _provenance(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Names and values; what is not JSON is shown as it is."""
    text = str(dataset.attrs.get("provenance", ""))
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        return [("provenance", text)]
    seconds = record.pop("wall_time_seconds", None)
    rows = [] if not isinstance(seconds, int | float) else [("wall time", duration(seconds))]
    versions = record.pop("versions", {})
    for key, value in record.items():
        rows.append((key.replace("_", " "), value if isinstance(value, str) else json.dumps(value)))
    if isinstance(versions, dict):
        rows.append(("versions", ", ".join(f"{name} {number}" for name, number in versions.items())))
    return [*rows, ("schema version", str(dataset.attrs.get("schema_version", "unknown")))]


def _variables(dataset: xr.Dataset) -> Table:
    rows = [
        (
            str(name),
            " x ".join(f"{dim} {length}" for dim, length in variable.sizes.items()) or "one number",
            str(variable.attrs.get("long_name", "")),
            size(variable.nbytes),
        )
        for name, variable in dataset.variables.items()
    ]
    return Table(("variable", "dims", "meaning", "size"), rows)
