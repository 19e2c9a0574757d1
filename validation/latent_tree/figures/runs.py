"""Networks of the paper's tables on the trees of its ten trials, in the readings that print leaves open.

    python -m validation.latent_tree.figures.runs

writes data/runs/latent_tree/trees.nc. The numbers of each case are saved when they are there, and a run that is stopped
goes on from them. Depth 5, learning rate 0.1, batches of 128, 500 steps per epoch and 50 epochs, as in the paper.
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
from validation.latent_tree.figures import single_precision
from validation.latent_tree.figures.printed import LOWS, NODES
from validation.latent_tree.figures.seeds import TRIALS
from validation.latent_tree.figures.trees import CROSSED, READINGS, Reading, problem_of, scores, train, unnormalised

EPOCHS = (0, 1, 5, 20, 50)
"""Epochs at which scores are taken."""

CROSSED_LOWS = LOWS[:1]
"""Least polarities for which losses, temperatures and signs are crossed with 2 nodes: learning changes these most."""

REPEATS = 10
"""Runs of the public code's reading with 2 nodes, from the same weights with other samples: some networks learn in a
few of them alone, so that what two runs differ by says little."""

LATENTS = {"s": 0, "s0": 1, "s1": 2, "s101": 12, "s0111": 22}
"""Latents of the paper's table 6 by their places among all, the root first."""

FOLDER = OUTPUT / "latent_tree" / "trees"
NUMBERS = FOLDER.with_suffix(".nc")
SOURCES = [Path(__file__).with_name(f"{name}.py") for name in ("runs", "trees", "seeds", "sgd", "single_precision")]


class Case(NamedTuple):
    """Networks of all trials."""

    reading: Reading
    low: float
    nodes: int
    repeat: int = 0

    @property
    def name(self) -> str:
        """Name of the reading of a run."""
        return CROSSED[self.reading]

    @property
    def file(self) -> Path:
        """File of the numbers of a run."""
        return FOLDER / f"{list(CROSSED).index(self.reading)}_{self.low:g}_{self.nodes}_{self.repeat}.nc"


def cases() -> list[Case]:
    """The main readings, and with 2 nodes that of the public code more than once, and all others."""
    printed, code = READINGS.values()
    main = [Case(reading, low, nodes) for nodes in NODES for reading in (code, printed) for low in LOWS]
    main += [Case(code, low, 2, repeat) for repeat in range(1, REPEATS) for low in LOWS]
    others = [Case(reading, low, 2) for reading in CROSSED if reading not in (printed, code) for low in CROSSED_LOWS]
    return sorted(main + others, key=lambda case: (case.repeat, case.nodes))


CASES = cases()


def run_case(case: Case) -> xr.Dataset:
    """Scores of all trials of a case at its epochs, exactly and in single precision."""
    began, places, found = time.process_time(), list(LATENTS.values()), []
    title = f"trials, {case.name}, U[{case.low:g}, 1], {case.nodes} nodes"
    with progress_bar(len(TRIALS), title) as bar:
        for seed in TRIALS:
            problem = problem_of(case.reading, case.low, case.nodes, seed)
            tables, rng = unnormalised(problem), np.random.default_rng((seed, case.repeat))
            values = single_precision.sample(problem.tree.polarities, rng)
            found.append(
                [
                    [scores(tables, tables.forward(weights))[places], single_precision.scores(weights, values)[places]]
                    for weights in train(problem, (seed, case.repeat), EPOCHS)
                ]
            )
            bar.update(1)
    return xr.Dataset(
        {
            "score": (
                ("trial", "epoch", "arithmetic", "latent"),
                np.array(found),
                {"long_name": "largest |correlation|"},
            ),
            "seconds": ((), time.process_time() - began, {"long_name": "processor time"}),
        },
        {
            "trial": list(TRIALS),
            "epoch": list(EPOCHS),
            "arithmetic": ["exact", "single precision"],
            "latent": list(LATENTS),
        },
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
    index = {name: ("case", [getattr(case, name) for case in CASES]) for name in ("name", "low", "nodes", "repeat")}
    data = xr.concat([xr.load_dataset(case.file) for case in CASES], dim="case").assign_coords(index)
    data.attrs = {"Conventions": "CF-1.11", "title": "networks on latent trees, depth 5"}
    data.attrs["provenance"] = provenance(time.perf_counter() - began)
    save(data, NUMBERS)
    print(f"{len(CASES)} cases, {float(data.seconds.sum()) / 60:.0f} min of processor time")
    return DONE


if __name__ == "__main__":
    run(main)
