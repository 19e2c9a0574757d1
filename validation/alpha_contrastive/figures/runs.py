"""Runs of SGD of two layers that the studies share: a file for each group of settings and each seed.

`python -m validation.alpha_contrastive.figures.runs infonce_1` makes one of them; `make figures` makes all.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np
import xarray as xr

from meanfield.cli import DONE, run
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from validation import OUTPUT
from validation.alpha_contrastive.figures.token_sgd import train
from validation.alpha_contrastive.figures.two_layers import ACTIVATIONS, Setting, effective_rank, matches

RUNS = OUTPUT / "alpha_contrastive" / "runs"
"""Folder of the files."""

SEEDS = 1, 2, 3

GRID = {"P": "patterns", "beta": "beta"}
"""Dims that all figures on the number of filters have, and the settings that they are of."""

Grid = dict[str, dict[Any, dict[str, Any]]]
"""For each dim its labels, and for each label the settings that it stands for."""


def _each(setting: str, *values: Any) -> dict[Any, dict[str, Any]]:
    return {value: {setting: value} for value in values}


SIZES: Grid = {"P": _each("patterns", 1, 3, 5, 10), "beta": _each("beta", 1, 2, 5, 10)}

GROUPS: dict[str, tuple[dict[str, Any], Grid]] = {
    "infonce": ({}, {"activation": _each("activation", *ACTIVATIONS), **SIZES}),
    "quadratic": ({"loss": "quadratic"}, {"activation": _each("activation", *ACTIVATIONS), **SIZES}),
    "zeta_10": (
        {"zeta": 10.0},
        {"normalisation": _each("normalisation", "none", "frozen", "variance", "mean", "both"), **SIZES},
    ),
    "zeta": ({}, {"zeta": _each("zeta", 2.0, 5.0), "normalisation": _each("normalisation", "none", "mean"), **SIZES}),
    "decay": (
        {},
        {
            "case": {
                "decay 5e-3": {},
                "decay 5e-3, learning rate 0.002": {"rate": 0.002},
                "no decay": {"decay": 0.0},
                "no decay, 3 times as long": {"decay": 0.0, "batches": 15000},
                "no decay, start / 10": {"decay": 0.0, "scale": 0.1},
            },
        },
    ),
}
"""Settings that a group shares, and those that it varies."""

MEASURED = {
    "plus": "chi+, match of tokens that generators use",
    "minus": "chi-, match of other tokens",
    "loss": "mean loss of the last tenth of the batches",
    "top_rank": "effective rank of the top",
    "filter_rank": "effective rank of the filters of a place",
}


def measured(setting: Setting) -> list[float]:
    """Numbers of one trained network, in the order of `MEASURED`."""
    w, V, generators, loss = train(setting)
    ranks = effective_rank(V.reshape(-1, V.shape[-1])), float(np.mean([effective_rank(place) for place in w]))
    return [*matches(w, generators, setting.activation != "linear"), loss, *ranks]


def make_runs(name: str) -> int:
    """Train all networks of a group with one seed, and save what is measured."""
    group, _, seed = name.rpartition("_")
    shared, grid = GROUPS[group]
    started, rows = time.process_time(), []
    cells = list(itertools.product(*(labels.values() for labels in grid.values())))
    with progress_bar(len(cells), f"SGD, {name}", "run") as bar:
        for cell in cells:
            settings = {key: value for part in cell for key, value in part.items()}
            rows.append(measured(Setting(**shared | settings, seed=int(seed))))
            bar.update(1)
    shape = [len(labels) for labels in grid.values()]
    values = np.moveaxis(np.reshape(rows, (*shape, len(MEASURED))), -1, 0)
    found = xr.Dataset(
        {
            key: (tuple(grid), part, {"long_name": what})
            for (key, what), part in zip(MEASURED.items(), values, strict=True)
        },
        {dim: list(labels) for dim, labels in grid.items()},
    )
    found["seconds"] = ((), time.process_time() - started, {"long_name": "processor time"})
    RUNS.mkdir(parents=True, exist_ok=True)
    save(found, RUNS / f"{name}.nc")
    return DONE


def load_runs(group: str) -> xr.Dataset:
    """Runs of a group with all seeds that there are, along the dim `seed`."""
    found = {seed: RUNS / f"{group}_{seed}.nc" for seed in SEEDS}
    parts = {seed: xr.load_dataset(path) for seed, path in found.items() if path.exists()}
    return xr.concat(parts.values(), dim=xr.IndexVariable("seed", list(parts)))


if __name__ == "__main__":
    names = [f"{group}_{seed}" for group in GROUPS for seed in SEEDS]
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=names)
    name = parser.parse_args().name
    run(lambda: make_runs(name))
