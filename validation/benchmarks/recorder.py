"""What recording costs: a step of a training loop of one's own with the recorder, over the same step without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

import meanfield
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds

N, BATCH, STEPS = 1000, 10, 4000
STEP = "own steps of a neuron with 1,000 weights, ten samples each, from t = 0 to 4; 5 output times, 2,000 inputs kept"

Loop = Callable[[Any], None]


def by_numpy(x: Any, record: Any) -> None:
    """Steps of a neuron in NumPy."""
    w = np.ones(N)
    for k in range(STEPS + 1):
        batch = x.standard_normal((BATCH, N))
        if record is not None:
            record(k, w, batch)
        s = batch @ w / N**0.5
        w += 0.02 / N**0.5 * (4.0 * s**3 / BATCH) @ batch
        w *= N**0.5 / np.linalg.norm(w)


def by_torch(generator: Any, record: Any) -> None:
    """The same by the optimiser of PyTorch."""
    import torch

    w = torch.ones(N, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.02)
    for k in range(STEPS + 1):
        batch = torch.as_tensor(generator.standard_normal((BATCH, N)))
        if record is not None:
            record(k, w, batch)
        y = (batch @ w / N**0.5) ** 2
        optimizer.zero_grad()
        (-(y * y).mean()).backward()
        optimizer.step()
        with torch.no_grad():
            w *= N**0.5 / w.norm()


def tables() -> Iterator[Table]:
    """One row for each loop."""
    problem = meanfield.with_values(
        meanfield.load_problem(ROOT / "data/problems/no_prior.toml"),
        {"time.stop": 4.0, "time.outputs": 5, "particles.snapshots": (0.0, 4.0)},
    )
    rows, seeds = [], count()
    for name, loop in (("NumPy", by_numpy), ("PyTorch", by_torch)):
        works = [
            lambda loop=loop: loop(np.random.default_rng(next(seeds)), None),
            lambda loop=loop: loop(
                np.random.default_rng(next(seeds)), meanfield.Recorder(problem, features=np.ones((N, 1)))
            ),
        ]
        plain, recorded = (1e6 * each / STEPS for each in seconds(*works, rounds=5))
        rows.append(Row(f"a step in {name}", recorded, "us", "without the recorder", plain, "ratio at most 1.05"))
    yield Table("The recorder", f"{STEP}; {ONE_THREAD}", tuple(rows))
