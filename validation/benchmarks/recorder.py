"""What recording costs: a step of a training loop of one's own with the recorder, over the same step without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np

import meanfield
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds

BATCH = 10
STEP = "own steps of neurons that train at once, ten samples each; 5 output times, 2,000 inputs kept"

Loop = Callable[[Any, Any, int, int, int], None]

SIZES = ((1000, 1, 4000), (1000, 8, 1000), (10_000, 1, 2000), (10_000, 8, 400))
"""N, runs at once, and steps: the fewer these are, the more do the first ones and 2,000 inputs count."""


def by_numpy(x: Any, record: Any, N: int, runs: int, steps: int) -> None:
    """Steps of neurons in NumPy."""
    w = np.ones((runs, N) if runs > 1 else N)
    for k in range(steps + 1):
        batch = x.standard_normal((runs, BATCH, N) if runs > 1 else (BATCH, N))
        if record is not None:
            record(k, w, batch)
        s = (batch @ w[..., None])[..., 0] / N**0.5
        w += 0.02 / N**0.5 * ((4.0 * s**3 / BATCH)[..., None, :] @ batch)[..., 0, :]
        w *= N**0.5 / np.linalg.norm(w, axis=-1, keepdims=True)


def by_torch(generator: Any, record: Any, N: int, runs: int, steps: int) -> None:
    """Those of one by the optimiser of PyTorch."""
    import torch

    w = torch.ones(N, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.02)
    for k in range(steps + 1):
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
    """One row for each loop and size."""
    rows, seeds = [], count()
    cases = [("NumPy", by_numpy, *size) for size in SIZES]
    cases += [("PyTorch", by_torch, *SIZES[0])] if find_spec("torch") else []
    for name, loop, N, runs, steps in cases:
        time = {"time.stop": steps / N, "time.outputs": 5, "particles.snapshots": (0.0, steps / N)}
        problem = meanfield.with_values(meanfield.load_problem(ROOT / "data/problems/no_prior.toml"), time)

        def plain(loop: Loop = loop, size: Any = (N, runs, steps)) -> None:
            loop(np.random.default_rng(next(seeds)), None, *size)

        def recorded(loop: Loop = loop, size: Any = (N, runs, steps), problem: Any = problem) -> None:
            loop(np.random.default_rng(next(seeds)), meanfield.Recorder(problem, np.ones((size[0], 1))), *size)

        without, with_it = (1e6 * each / steps for each in seconds(plain, recorded, rounds=5))
        label = f"a step in {name}, N = {N:,}, {runs} at once"
        rows.append(Row(label, with_it, "us", "without the recorder", without, "ratio at most 1.05"))
    yield Table("The recorder", f"{STEP}; {ONE_THREAD}", tuple(rows))
