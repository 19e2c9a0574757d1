"""SGD of the paper's protocol: 20 starts with mixtures of their own, for each alpha and m, in both readings.

    python -m validation.hidden_manifold.figures.runs

writes data/runs/hidden_manifold/mixtures.nc. The numbers of every start are saved when they are there, and a run that
is stopped goes on from them. N = 1000, D = 500, two units, t up to 100, as in the paper; alpha = 0 is N(0, 1).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.cli import DONE, at_least, parser, run
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT
from validation.hidden_manifold.figures.laws import GAUSSIAN, LAWS, Law, Means, Samples, draw_means, make_law
from validation.hidden_manifold.figures.mixtures import FloatArray
from validation.hidden_manifold.figures.sgd import ACTIVATIONS, RATE, Start, Student, advance, draw_start, students_of

N, D, STARTS = 1000, 500, 20
COMPONENTS = (2, 3, 5)
"""Numbers m of components; the paper does not print its own, besides 2."""

ALPHAS = tuple(range(1, 10))

GAUSSIAN_RUNS = 4
"""Runs with N(0, 1) from each start, of which the first shares its normal numbers with the mixtures."""

AT_ONCE = 64
"""Number of samples drawn at once, for the sake of caches."""

STEPS = np.unique(np.round(np.geomspace(1, 100 * N, 51)).astype(np.int64))
"""Steps at which order parameters are measured: 10 in each decade."""

FOLDER = OUTPUT / "hidden_manifold" / "mixtures"
NUMBERS = FOLDER.with_suffix(".nc")
SOURCES = [Path(__file__).with_name(name) for name in ("runs.py", "laws.py", "mixtures.py", "sgd.py")]

SLOPE = math.sqrt(2.0 / math.pi)
"""b of the sign."""


def start_of(seed: int, dimension: int = N) -> tuple[Start, dict[int, Means], np.random.Generator]:
    """Networks of a start, means of its mixtures by m, and the generator of its samples."""
    networks, mixtures, samples = (np.random.default_rng([seed, part]) for part in range(3))
    start = draw_start(networks, dimension, dimension // 2)
    return start, {m: draw_means(mixtures, m, dimension // 2) for m in COMPONENTS}, samples


Measure = Callable[[Start, Sequence[Student]], dict[str, FloatArray]]
"""Measurement of students: values by name, after a leading dim of students."""


def train(
    start: Start, laws: Sequence[Law], samples: Samples, measure: Measure, steps: Iterable[int] = STEPS
) -> dict[str, FloatArray]:
    """Measurements of students that learn from each law, shape (laws, activations, times, ...)."""
    students, rows, done = [students_of(start) for _ in laws], [], 0
    for step in steps:
        while done < step:
            count = min(AT_ONCE, int(step) - done)
            samples.draw(count)
            for law, both in zip(laws, students, strict=True):
                fields = samples.of(law)
                for student in both:
                    advance(fields, student, start.vt, RATE)
            done += count
        rows.append(measure(start, [student for both in students for student in both]))
    shape = (len(rows), len(laws), len(ACTIVATIONS))
    found = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return {name: np.moveaxis(values.reshape(shape + values.shape[2:]), 0, 2).copy() for name, values in found.items()}


def order_parameters(start: Start, students: Sequence[Student]) -> dict[str, FloatArray]:
    """Q and R by the paper's (9) and (10) from the weights, and v, after a leading dim of students."""
    W, F = np.array([student.W for student in students]), start.features
    K, inputs, latents = W.shape[1], W.shape[2], len(F)
    S = (W.reshape(-1, inputs) @ F.T).reshape(-1, K, latents) / math.sqrt(inputs)
    Q = (1.0 - SLOPE**2) * W @ W.swapaxes(1, 2) / inputs + SLOPE**2 * S @ S.swapaxes(1, 2) / latents
    return {"Q": Q, "R": SLOPE * S @ start.teacher.T / latents, "v": np.array([student.v for student in students])}


DIMS = {"Q": ("student", "student_"), "R": ("student", "teacher"), "v": ("student",)}
LONG_NAMES = {"Q": "covariances of the student's fields (9)", "R": "covariances with the teacher's fields (10)"}


def of_start(seed: int) -> xr.Dataset:
    """All runs of one start."""
    began = time.process_time()
    start, means, rng = start_of(seed)
    chosen = [(name, m, alpha) for name in LAWS for m in COMPONENTS for alpha in ALPHAS]
    laws = [make_law(name, start, means[m], alpha) for name, m, alpha in chosen]
    gaussian = make_law(GAUSSIAN, start)
    first, *others = rng.spawn(GAUSSIAN_RUNS)
    found = train(start, [gaussian, *laws], Samples(start, COMPONENTS, AT_ONCE, first), order_parameters)
    more = [train(start, [gaussian], Samples(start, (), AT_ONCE, other), order_parameters) for other in others]
    variables: dict[str, Any] = {}
    for name, dims in DIMS.items():
        values = found[name]
        grid = values[1:].reshape(len(LAWS), len(COMPONENTS), len(ALPHAS), *values.shape[1:])
        about = {"long_name": LONG_NAMES.get(name, "second layer")}
        variables[name] = (("law", "m", "alpha", "activation", "time", *dims), grid, about)
        alone = np.concatenate([values[:1], *(run[name] for run in more)])
        variables[f"{name}_{GAUSSIAN}"] = (("run", "activation", "time", *dims), alone, about)
    variables["seconds"] = ((), time.process_time() - began, {"long_name": "processor time of the start"})
    coordinates = {"law": list(LAWS), "m": list(COMPONENTS), "alpha": list(ALPHAS), "activation": list(ACTIVATIONS)}
    return xr.Dataset(variables, coordinates | {"time": STEPS / N, "start": seed})


def main() -> int:
    """Run the starts that are not there, and join all."""
    command = parser(__doc__ or "")
    command.add_argument("--starts", type=at_least(2, "starts"), default=STARTS, metavar="STARTS")
    starts = command.parse_args().starts
    began = time.perf_counter()
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = [FOLDER / f"start_{seed:02}.nc" for seed in range(starts)]
    newest = max(source.stat().st_mtime for source in SOURCES)
    with progress_bar(starts, "starts") as bar:
        for seed, part in enumerate(parts):
            if not part.exists() or part.stat().st_mtime < newest:
                save(of_start(seed), part)
            bar.update(1)
    data = xr.concat([xr.load_dataset(part) for part in parts], dim="start")
    data.attrs = {"Conventions": "CF-1.11", "title": "SGD on the paper's mixtures", "N": N}
    data.attrs["provenance"] = provenance(time.perf_counter() - began)
    save(data, NUMBERS)
    print(f"{starts} starts, {float(data.seconds.sum()) / 60:.0f} min of processor time")
    return DONE


if __name__ == "__main__":
    run(main)
