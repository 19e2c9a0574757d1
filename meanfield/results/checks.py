"""Whether what a file says can be a result at all: kinds, sizes, ranges and order of its numbers.

The schema says which variables there are. Here are checks that cost little and that no run of ours fails, so that a
file that somebody edited is refused where it would give nonsense.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.results import NAMES
from meanfield.results.schema import problem_of, validate, variables_of

AXES = ("time", "snapshot_time", "w", "w_edge", "quantile", "dimension", "line")
"""Variables that increase along their dim."""

NEVER_MISSING = (*AXES, "u", "u_weight", "parameter", "branch", "turning", "stability", "count", "orbit", "region")
"""Variables that have no gaps, however a run ended."""

MISSING_IF_UNFINISHED = ("q", "r", "P", "mass", "norm", "g", "Lambda", "weights", "U", "q_mean", "r_mean", "q_quantile")
"""Variables that have gaps only where a run failed or was interrupted."""

ROUNDING = 1e-6
"""Of sums that are 1."""

RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("time", "snapshot_time", "Lambda", "norm", "residual", "count", "branch", "orbit"), (0, inf)),
    **dict.fromkeys(("q_error", "r_error", "P_error", "quadrature_error", "table_error", "escape_time"), (0, inf)),
    **dict.fromkeys(("q_standard_error", "r_standard_error", "r_variance", "learnable_moment"), (0, inf)),
    **dict.fromkeys(("P_l1", "W1", "W1_expected", "W1_given_u", "W1_expected_given_u"), (0, inf)),
    **dict.fromkeys(("KS", "KS_given_u", "region_share", "win_chance", "u_weight"), (0, 1 + ROUNDING)),
    **dict.fromkeys(("quantile", "nullcline_component", "turning"), (0, 1)),
    **dict.fromkeys(("stability", "line"), (-1, 1)),
    **dict.fromkeys(("state_count", "stable_count", "q_final_error", "r_final_error"), (0, inf)),
    **dict.fromkeys(("similarity", "least_similarity"), (0, 1 + ROUNDING)),
    "P": (-ROUNDING, inf),
    "dimension": (1, inf),
    "region": (-2, inf),
    "winner": (-1, inf),
}
"""Smallest and largest values."""

OF_SWEEPS = ("similarity", "least_similarity", "state_count", "stable_count", "q_final_error", "r_final_error")
"""Variables of sweeps alone."""

OF_THE_SAME_SIZE = (("feature_", "feature"), ("row", "column"))

PACKED = ("scale_factor", "add_offset", "missing_value", "_FillValue")
"""Attributes by which readers change numbers. Files of ours have gaps that are NaN, and nothing else."""

BELONGS_TO: dict[str, tuple[str, ...]] = {
    "uninformed_rate": ("learnable_moment",),
    "rate": ("line",),
    "escape_time_quantile": ("dimension", "quantile"),
    "win_chance": ("dimension",),
    "weights": ("snapshot_time", "U"),
    "q_cell": ("velocity", "region", "region_share", "separatrix", "nullcline", "nullcline_component"),
}
"""Variables that a result may lack, and what it must hold if it does not."""

KINDS = ("stable node", "stable focus", "saddle", "unstable node", "unstable focus", "marginal")

BEYOND_ONE = 1e-2
"""How far |q|^2 may be above E[w^2]: coarse nodes miss E[u^2] = 1 by less."""


def check(dataset: xr.Dataset) -> None:
    """Refuse a Dataset that no run can have given.

    Raises
    ------
    InputError
        If it does not obey the schema (see `meanfield.results.schema.validate`), or its attributes, sizes or numbers
        contradict each other or what they mean.
    """
    validate(dataset)
    for fault in _faults(dataset):
        raise InputError(f"{fault}; run the solver again, or take back what was changed in the file")


def _faults(dataset: xr.Dataset) -> Iterator[str]:
    problem = problem_of(dataset)
    if dataset.attrs["method"] == "sweep":
        yield from _faults_of_sweep(dataset)
        return
    own = set(variables_of(dataset))
    dataset = dataset.drop_vars([name for name in dataset.variables if name not in own])
    yield from _faults_of_company(dataset)
    yield from _faults_of_attributes(dataset)
    yield from _faults_of_sizes(dataset, problem)
    complete = dataset.attrs["status"] == "complete"
    for name in variables_of(dataset):
        values = dataset.variables[name].values
        yield from _faults_of_words(name, values) if name in NAMES else _faults_of_numbers(name, values, complete)
    yield from _faults_of_axes(dataset)
    yield from _faults_of_weights(dataset)
    yield from _faults_of_indices(dataset)
    yield from _faults_of_overlaps(dataset)


def _faults_of_sweep(dataset: xr.Dataset) -> Iterator[str]:
    """Of results of many problems at once: gaps are where a point failed."""
    yield from _faults_of_words("status", dataset["status"].values)
    for name in OF_SWEEPS:
        if name in dataset:
            yield from _faults_of_numbers(name, dataset[name].values, complete=False)


def _faults_of_company(dataset: xr.Dataset) -> Iterator[str]:
    for name, others in BELONGS_TO.items():
        for other in others:
            if name in dataset and other not in dataset:
                yield f"variable '{other}' is missing, without which '{name}' says nothing"


def _faults_of_attributes(dataset: xr.Dataset) -> Iterator[str]:
    for name, variable in dataset.variables.items():
        for key in PACKED:
            if key in variable.encoding and not (key == "_FillValue" and _is_gap(variable.encoding[key])):
                yield f"variable '{name}' has the attribute '{key}', with which its numbers are others than were saved"
    if "parameter" in dataset and not isinstance(dataset["parameter"].attrs.get("key"), str):
        yield "variable 'parameter' has no attribute 'key', the number that is varied"
    if "q_cell" in dataset and str(dataset.attrs.get("plane")) not in ("q", "Q"):
        yield "the attribute 'plane' is neither 'q' nor 'Q'"
    if dataset.attrs["method"] == "dynamics" and str(dataset.attrs.get("indices_add_up")) not in ("true", "false"):
        yield "the attribute 'indices_add_up' is neither 'true' nor 'false'"
    if "escape_time_quantile" in dataset:
        overlap = dataset["escape_time_quantile"].attrs.get("escape_overlap")
        if not isinstance(overlap, float) or not 0 < overlap <= 1:
            yield "variable 'escape_time_quantile' has no attribute 'escape_overlap' in (0, 1]"


def _is_gap(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _faults_of_sizes(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    sizes = dataset.sizes
    if sizes.get("feature", len(problem.features)) != len(problem.features):
        yield f"dim 'feature' has size {sizes['feature']}, but the problem has {len(problem.features)} feature(s)"
    for name, other in OF_THE_SAME_SIZE:
        if name in sizes and sizes[name] != sizes.get(other):
            yield f"dim '{name}' has size {sizes[name]}, and '{other}' {sizes.get(other)}: they must be equal"
    if "edge" in sizes and sizes["edge"] != sizes["w"] + 1:
        yield f"dim 'edge' has size {sizes['edge']}, but {sizes['w']} cells have {sizes['w'] + 1} edges"
    for name, size in (("bound", 2), *((("quantile", 3),) if "escape_time_quantile" in dataset else ())):
        if name in sizes and sizes[name] != size:
            yield f"dim '{name}' has size {sizes[name]}, not {size}"
    for name in ("time", "replica", "node", "w", "quantile", "line", "row", "dimension"):
        if sizes.get(name) == 0:
            yield f"dim '{name}' has size 0"


def _faults_of_words(name: str, values: np.ndarray) -> Iterator[str]:
    words = values.ravel().tolist()
    if not all(isinstance(word, str) for word in words):
        yield f"variable '{name}' holds {values.dtype}, not words"
    elif name == "kind" and set(words) - set(KINDS):
        yield f"variable 'kind' holds '{(set(words) - set(KINDS)).pop()}', which is none of {', '.join(KINDS)}"


def _faults_of_numbers(name: str, values: np.ndarray, complete: bool) -> Iterator[str]:
    if values.dtype.kind not in "fiu":
        yield f"variable '{name}' holds {values.dtype}, not numbers"
        return
    gaps = name not in NEVER_MISSING and not (complete and name in MISSING_IF_UNFINISHED)
    if not gaps and not np.isfinite(values).all():
        yield f"variable '{name}' holds {values[~np.isfinite(values)][0]}"
    low, high = RANGES.get(name, (-inf, inf))
    outside = values[(values < low) | (values > high)]  # a gap is not
    if outside.size:
        yield f"variable '{name}' holds {outside[0]:.6g}, outside [{low:g}, {high:g}]"


def _faults_of_axes(dataset: xr.Dataset) -> Iterator[str]:
    for name in AXES:
        if name in dataset.variables and not np.all(np.diff(dataset.variables[name].values) > 0):
            yield f"variable '{name}' does not increase"
    if "w_edge" in dataset:
        edges, cells = dataset["w_edge"].values, dataset["w"].values
        if not np.all((edges[:-1] < cells) & (cells < edges[1:])):
            yield "variable 'w' holds cells that do not lie between their edges"


def _faults_of_weights(dataset: xr.Dataset) -> Iterator[str]:
    if "u_weight" in dataset:
        total = float(dataset["u_weight"].sum())
        if abs(total - 1) > ROUNDING:
            yield f"variable 'u_weight' sums to {total:.9g}, not to 1"
    if "mass" in dataset:
        mass = np.diff(dataset["w_edge"].values) @ (dataset["u_weight"].values @ dataset["P"].values).T
        gap = np.abs(mass - dataset["mass"].values)
        if np.any(gap > ROUNDING):
            yield f"variable 'P' has a mass that differs from 'mass' by {np.nanmax(gap):.3g}"


def _faults_of_indices(dataset: xr.Dataset) -> Iterator[str]:
    for name, among in (("winner", "feature"), ("region", "state")):
        if name in dataset and np.any(dataset[name].values >= dataset.sizes[among]):
            yield f"variable '{name}' holds {dataset[name].values.max()}, but dim '{among}' ends before"


def _faults_of_overlaps(dataset: xr.Dataset) -> Iterator[str]:
    for name in ("q", "q_mean"):
        if name in dataset:
            squared = (dataset[name] ** 2).sum("feature")
            limit = dataset.get("norm", 1.0)
            if np.any(squared > limit + BEYOND_ONE):
                yield f"variable '{name}' has |q|^2 = {float(squared.max()):.6g}, and on the sphere it is at most 1"
