"""Report on assumptions in words: which regime the latents are in, why, and what the theories get wrong at the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.assumptions.laws import COORDINATES, GAUSSIAN, MEANS, SAMPLES
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.results.result import Result
from meanfield.results.text import plain
from meanfield.typing import FloatArray

THEORIES = {"conventional": "the conventional theory", "matched": "one Gaussian of the same mean and covariance"}
"""Theories beside the exact one, and their names in sentences."""

MEASURED = {"Q": "Q", "R": "R", "generalisation_error": "the generalisation error"}
"""Variables that theories predict, and their names in sentences."""

ZERO_TO_ROUNDING = 1e-9
"""Number that is 0 to rounding."""

MEANINGS = {
    GAUSSIAN: "each latent is a standard Gaussian, as the conventional theory assumes",
    COORDINATES: "each latent draws a component of its own, so that fields are Gaussian by the central limit theorem",
    SAMPLES: "all latents of a sample share a component, whose mean has a length of order 1: the exact theory is the "
    "ODE of the mixture",
    MEANS: "inputs have means of length sqrt(N), along which the student moves within single steps: overlaps follow an "
    "average over these fast moves, where every input has the same mean, and not the conventional theory",
}
"""Regimes in words."""


def describe(report: xr.Dataset) -> str:
    """Result of `examine_assumptions` as text."""
    problem: Problem = Result.of(report).problem
    regime = str(report["regime"].item())
    kind = "Gaussian latents" if regime == GAUSSIAN else f"regime {regime}"
    return "\n".join(
        [
            f"{kind}: {MEANINGS[regime]}",
            *(f"  {line}" for line in _reasons(report, problem.particles.dimension)),
            *_differences(report, problem.order_parameters.tolerance),
        ]
    )


def _reasons(report: xr.Dataset, N: int) -> Iterator[str]:
    """Numbers in which latents differ from standard Gaussians."""
    scale, chance = report["component_scale"].values, report["component_weight"].values
    variance = float(chance @ scale**2)
    if abs(variance - 1.0) > ZERO_TO_ROUNDING:
        yield f"the variance of latents is {variance:.4g}, not 1"
    radius = float(report["radius_variance"])
    if radius > ZERO_TO_ROUNDING:
        yield f"|C|^2/D varies from sample to sample: its standard deviation is {radius**0.5:.4g}, and should be 0"
    lengths = report["component_mean_norm"].values
    overlaps = np.abs(report["teacher_field_mean"].values)
    if lengths.max() > 0.0:
        root = N**0.5
        yield (
            f"means of components have lengths up to {lengths.max():.4g} ({lengths.max() / root:.2g} of sqrt(N), which "
            f"must be small), and move the teacher's fields by up to {overlaps.max():.4g}"
        )
    means = report["input_mean"].values
    if means.max() > ZERO_TO_ROUNDING * np.sqrt(report["f_square"].values.max()):
        yield f"inputs have means of {', '.join(f'{mean:.4g}' for mean in means)} in the components"
    if "kurtosis" in report:
        yield from _tails(report)


def _tails(report: xr.Dataset) -> Iterator[str]:
    """Fields that are not Gaussian."""
    last = _end(report)
    if last is None:
        return
    own = report["kurtosis"].values[last]
    teacher = report["teacher_kurtosis"].values
    far = max((*own, *teacher), key=lambda value: abs(value - 3.0))
    if abs(far - 3.0) > ZERO_TO_ROUNDING:
        shown = [", ".join(f"{value:.3g}" for value in values) for values in (own, teacher)]
        yield f"kurtosis of the fields: {shown[0]} of the student, {shown[1]} of the teacher (3 if Gaussian)"


def _differences(report: xr.Dataset, tolerance: float) -> Iterator[str]:
    last = _end(report)
    if "Q" not in report or last is None:
        return
    tolerance = max(tolerance, _stated(report, last))
    for theory, words in THEORIES.items():
        found = {name: _largest(report, name, theory, last) for name in MEASURED}
        if all(abs(difference) <= 2.0 * tolerance for difference, _ in found.values()):
            yield f"{words} is right, to {tolerance:.2g}"
            continue
        listed = ", ".join(f"{MEASURED[name]} by {d:+.2g} (of {value:.3g})" for name, (d, value) in found.items())
        yield f"{words} is off at t = {float(report['time'][last]):g}: {listed}"


def _stated(report: xr.Dataset, last: int) -> float:
    """Largest error that the exact theory states."""
    stated = (report[f"{name}_error"].values[last] for name in MEASURED if f"{name}_error" in report)
    return max((float(np.nanmax(error, initial=0.0)) for error in stated), default=0.0)


def _end(report: xr.Dataset) -> int | None:
    """Index of the last time that all theories reached."""
    names = [name for name in report.data_vars if str(name).startswith("generalisation_error")]
    there = np.all(
        [np.isfinite(report[name].values) for name in names if not str(name).endswith("_error_error")], axis=0
    )
    return int(np.flatnonzero(there)[-1]) if there.any() else None


def _largest(report: xr.Dataset, name: str, theory: str, last: int) -> tuple[float, float]:
    """Largest difference of a theory from the exact one at a time, and the exact number there."""
    exact: FloatArray = np.atleast_1d(report[name].values[last]).ravel()
    difference = np.atleast_1d(report[f"{name}_{theory}"].values[last]).ravel() - exact
    place = int(np.argmax(np.abs(difference)))
    return float(difference[place]), float(exact[place])


def key_numbers(report: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Regime, and the largest errors of the theories at the last time."""
    yield "regime", str(report["regime"].item())
    yield "standard deviation of |C|^2/D", plain(float(report["radius_variance"]) ** 0.5)
    last = _end(report)
    if "Q" not in report or last is None:
        return
    for theory, words in THEORIES.items():
        for name, variable in MEASURED.items():
            difference, _ = _largest(report, name, theory, last)
            yield f"error of {words} in {variable} at t = {float(report['time'][last]):g}", plain(difference)
