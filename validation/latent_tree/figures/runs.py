"""Networks of the paper's tables on many trees, in the readings that print leaves open.

    python -m validation.latent_tree.figures.runs

writes data/runs/latent_tree/trees.nc. The numbers of each case are saved when they are there, and a run that is stopped
goes on from them. Depth 5, learning rate 0.1, batches of 128, 500 steps per epoch, as in the paper.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.cli import DONE, parser, run
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT
from validation.latent_tree.figures.trees import READINGS, problem_of, scores, train, unnormalised

LOWS = (0.7, 0.8, 0.9)
"""Least polarities."""

NODES = (2, 10)

LONGEST = (0, 1, 5, 10, 20, 50)
"""Epochs at which scores are taken where two nodes have the least polarities, which take longest."""

EPOCHS = {2: (0, 1, 5, 20), 10: (0, 1, 5)}
"""Epochs of other cases: with 10 nodes scores no longer change after five, with 2 after twenty."""

TREES = {2: 60, 10: 20}
"""Trees that are trained, each with its own network; 100 where numbers decide between readings."""

STARTS = {2: 600, 10: 200}
"""Trees of the first column, trained or not."""

LATENTS = {"s": 0, "s0": 1, "s1": 2, "s101": 12, "s0111": 22}
"""Latents of the paper's table 6 by their places among all, the root first."""

FOLDER = OUTPUT / "latent_tree" / "trees"
NUMBERS = FOLDER.with_suffix(".nc")
SOURCES = [Path(__file__).with_name(name) for name in ("runs.py", "trees.py", "sgd.py")]


class Case(NamedTuple):
    """Trees that differ in their seeds alone."""

    reading: str
    low: float
    nodes: int

    @property
    def file(self) -> Path:
        """Its numbers."""
        return FOLDER / f"{list(READINGS).index(self.reading)}_{self.low:g}_{self.nodes}.nc"

    @property
    def _decides(self) -> bool:
        return self.nodes == 2 and self.low == min(LOWS)

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs at which scores are taken."""
        return LONGEST if self._decides else EPOCHS[self.nodes]

    @property
    def trees(self) -> int:
        """Number of trees that are trained."""
        return 100 if self._decides else TREES[self.nodes]


CASES = [Case(reading, low, nodes) for nodes in NODES for reading in READINGS for low in LOWS]


def run_case(case: Case) -> xr.Dataset:
    """Scores of all trees of a case at its epochs, and of more trees before training."""
    began, trained, first = time.process_time(), [], []
    places, starts = list(LATENTS.values()), STARTS[case.nodes]
    with progress_bar(starts, f"trees, {case.reading}, U[{case.low:g}, 1], {case.nodes} nodes") as bar:
        for seed in range(starts):
            problem = problem_of(READINGS[case.reading], case.low, case.nodes, seed)
            tables = unnormalised(problem)
            networks = train(problem, seed, case.epochs) if seed < case.trees else [problem.initial_weights]
            found = [scores(tables, tables.forward(weights))[places] for weights in networks]
            first.append(found[0])
            if seed < case.trees:
                trained.append(found)
            bar.update(1)
    return xr.Dataset(
        {
            "score": (("tree", "epoch", "latent"), np.array(trained), {"long_name": "largest exact |correlation|"}),
            "initial_score": (("start", "latent"), np.array(first), {"long_name": "the same before training"}),
            "seconds": ((), time.process_time() - began, {"long_name": "processor time"}),
        },
        {"epoch": list(case.epochs), "latent": list(LATENTS)},
    )


def main() -> int:
    """Run the cases that are not there, and join all."""
    parser(__doc__ or "").parse_args()
    began = time.perf_counter()
    FOLDER.mkdir(parents=True, exist_ok=True)
    newest = max(source.stat().st_mtime for source in SOURCES)
    for case in CASES:
        if not case.file.exists() or case.file.stat().st_mtime < newest:
            save(run_case(case), case.file)
    parts = [xr.load_dataset(case.file) for case in CASES]
    parts = [part.assign_coords({name: np.arange(part.sizes[name]) for name in ("tree", "start")}) for part in parts]
    index = {name: ("case", [getattr(case, name) for case in CASES]) for name in Case._fields}
    data = xr.concat(parts, dim="case", join="outer").assign_coords(index)
    data.attrs = {"Conventions": "CF-1.11", "title": "networks on latent trees, depth 5"}
    data.attrs["provenance"] = provenance(time.perf_counter() - began)
    save(data, NUMBERS)
    print(f"{len(CASES)} cases, {float(data.seconds.sum()) / 60:.0f} min of processor time")
    return DONE


if __name__ == "__main__":
    run(main)
