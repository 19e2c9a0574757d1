"""The main job from end to end: solve, compare, draw. `make demo` runs it.

Two problems that differ in the prior alone. Under the sparse (l1) prior of `sparse_prior.toml` the order parameters
do not close, so its three independent ways are our density, FiPy's density on a coarser grid, and SGD. Without a
prior (`no_prior.toml`) all three methods apply: density, order parameters, SGD.

Densities have a process of their own. On a fresh clone compiling takes far longer than solving, on one core, and so two
processes compile side by side.
"""

from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import xarray as xr

import meanfield
from meanfield.cli import DONE, FAILED, run
from meanfield.comparison import format_comparison
from meanfield.extend import DensitySettings
from meanfield.plotting import plot_comparison
from meanfield.results.figure_files import save_figure
from validation import OUTPUT, ROOT

COARSE = DensitySettings(cells=320, feature_nodes=31, steps=80, order=2)


SPARSE, WITHOUT_PRIOR = (
    meanfield.load_problem(ROOT / "data" / "problems" / f"{name}.toml") for name in ("sparse_prior", "no_prior")
)


def solve_both(other: Executor) -> tuple[dict[str, xr.Dataset], dict[str, xr.Dataset]]:
    """The l1 prior by our kernel, by FiPy and by SGD; and no prior, where the order parameters close."""
    ode = other.submit(meanfield.solve_order_parameters, WITHOUT_PRIOR)
    sgd = [other.submit(meanfield.simulate_sgd, problem) for problem in (SPARSE, WITHOUT_PRIOR)]
    coarse = meanfield.with_value(SPARSE, "density", COARSE)
    sparse = {
        "density": meanfield.solve_density(SPARSE),
        "FiPy, 320 cells": meanfield.solve_density(coarse, backend="fipy"),
    }
    without = {
        "density": meanfield.solve_density(WITHOUT_PRIOR),
        "ODE": ode.result(),
    }
    return sparse | {"SGD": sgd[0].result()}, without | {"SGD": sgd[1].result()}


def compare_and_save(results: Mapping[str, xr.Dataset], directory: Path) -> xr.Dataset:
    """Print the comparison with SGD, and write the whole one and every result to a netCDF file.

    FiPy states no error, so that no verdict follows from the difference of two densities alone.
    """
    directory.mkdir(parents=True, exist_ok=True)
    report = meanfield.compare(*results.values(), labels=list(results))
    print(f"\n{directory.name}\n{format_comparison(with_sgd(report))}")
    for label, dataset in (results | {"comparison": report}).items():
        meanfield.save(dataset, directory / f"{label.split(',')[0].lower()}.nc")
    return report


def with_sgd(report: xr.Dataset) -> xr.Dataset:
    """Pairs of which one is SGD."""
    return report.isel(pair=["SGD" in pair for pair in report["pair"].values])


def main() -> int:
    """Solve both problems, compare, and say where the files are."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        sparse, without = solve_both(other)
    report = compare_and_save(sparse, OUTPUT / "sparse_prior")
    compare_and_save(without, OUTPUT / "no_prior")
    shown = sparse | {"ODE without the prior": without["ODE"]}
    save_figure(plot_comparison(shown, with_sgd(report)), OUTPUT / "demo.png")
    print(f"\nnetCDF files: {OUTPUT}/sparse_prior, {OUTPUT}/no_prior\nfigure: {OUTPUT}/demo.png")
    complete = all(dataset.attrs["status"] == "complete" for dataset in (sparse | without).values())
    return DONE if complete else FAILED


if __name__ == "__main__":
    run(main)
