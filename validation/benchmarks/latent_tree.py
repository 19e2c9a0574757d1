"""How fast latent trees are: SGD in the paper's setting against PyTorch, and exact averages.

The setting of the paper: depth 5, two children, 10 nodes per latent, biases, normalised outputs, InfoNCE with one
negative, 500 steps with 128 anchors and fresh samples per epoch. PyTorch computes all latents of a level by one
product, and takes gradients by automatic differentiation, in single precision; the public code of the paper, which
loops over samples, is said to take 256 s for an epoch. Times of an epoch are 50 times those of ten steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from typing import Any

from threadpoolctl import threadpool_limits

from meanfield.families.latent_tree.initial import find_operators
from meanfield.families.latent_tree.particles import Replicas
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import ONE_THREAD, seconds
from validation.latent_tree.figures.sgd import advance
from validation.latent_tree.figures.trees import EPOCH, READINGS, problem_of, start_of, unnormalised

STEPS = 10
PUBLIC_CODE = 256.0
"""Seconds of an epoch of the public code: 4 ms a sample."""


def ours(problem: Problem) -> Callable[[], None]:
    """Takes the next steps of the method `particles`."""
    stepper, taken = Replicas(problem, range(1)), count()
    return lambda: stepper.advance(STEPS * next(taken), STEPS)


def of_studies(problem: Problem) -> Callable[[], None]:
    """Takes steps of the compiled SGD of the studies, in single precision."""
    net, moves, training = start_of(problem)
    return lambda: advance(net, moves, training, (0,), STEPS)


class Elsewhere:
    """SGD of the latent tree in PyTorch.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        import torch

        self._torch: Any = torch
        start = problem.initial_weights
        self._W = [torch.tensor(W.reshape(*W.shape[:2], -1), dtype=torch.float32, requires_grad=True) for W in start.W]
        self._b = [torch.tensor(b[:, None], dtype=torch.float32, requires_grad=True) for b in start.b]
        self._stay = [torch.tensor(0.5 * (1.0 + rho), dtype=torch.float32) for rho in reversed(problem.tree.polarities)]
        self._problem = problem
        self._sgd = torch.optim.SGD([*self._W, *self._b], lr=problem.training.learning_rate)

    def _leaves(self, roots: Any) -> Any:
        values = roots[:, None]
        for stay in self._stay:
            values = values.repeat_interleave(2, dim=1) ^ (self._torch.rand(len(roots), len(stay)) >= stay)
        return values.T[:, :, None].float()

    def _outputs(self, x: Any) -> Any:
        for level, (W, b) in enumerate(zip(self._W, self._b, strict=True)):
            x = x if level == 0 else self._torch.relu(x)
            pairs = x.reshape(len(x) // 2, 2, *x.shape[1:]).transpose(1, 2).flatten(2)
            x = self._torch.baddbmm(b, pairs, W.transpose(1, 2))
        f = x[0]
        return f / (f.norm(dim=1, keepdim=True) + self._problem.network.epsilon)

    def advance(self) -> None:
        """Take steps."""
        torch, batch = self._torch, self._problem.training.batch_size
        for _ in range(STEPS):
            roots, others = (torch.rand(batch) < 0.5 for _ in range(2))
            y, near, far = self._outputs(self._leaves(torch.cat([roots, roots, others]))).chunk(3)
            gap = ((y - near) ** 2 - (y - far) ** 2).sum(dim=1) / 2
            loss = torch.nn.functional.softplus(gap / self._problem.loss.temperature).mean()
            self._sgd.zero_grad()
            loss.backward()
            self._sgd.step()


def epoch_table() -> Table:
    """An epoch in the paper's setting."""
    rows, torch = [], find_spec("torch") is not None
    for nodes in (2, 10):
        problem = problem_of(READINGS["as printed"], 0.7, nodes, 0)
        works = [ours(problem), of_studies(problem), *([Elsewhere(problem).advance] if torch else [])]
        own, study, *other = (EPOCH / STEPS * t for t in seconds(*works))
        required = "5 s at most" if nodes == 10 else ""
        rows.append(Row(f"{nodes} nodes, particles", own, "s", "public code", PUBLIC_CODE, required))
        rows.extend(Row("the same, PyTorch", t, "s", "ours", own) for t in other)
        rows.append(Row("the same, compiled, single precision (studies)", study, "s", "ours", own))
    return Table("One epoch of 64000 samples, depth 5", ONE_THREAD, tuple(rows))


LOSSES: dict[str, dict[str, Any]] = {
    "simple": {"kind": "simple"},
    "beta": {"kind": "beta", "beta": 0.3},
    "exact": {"kind": "exact"},
    "batch ratio": {"kind": "batch_ratio"},
    "triplet": {"kind": "triplet", "temperature": 0.5, "margin": 0.2},
    "InfoNCE, tau 0.5": {"kind": "infonce", "temperature": 0.5},
    "InfoNCE, tau 0.1": {"kind": "infonce"},
    "InfoNCE, tau 0.05": {"kind": "infonce", "temperature": 0.05},
    "InfoNCE, tau 0.01": {"kind": "infonce", "temperature": 0.01},
    "InfoNCE, 5 negatives": {"kind": "infonce", "negatives": 5},
    "NT-Xent, tau 0.1": {"kind": "nt_xent"},
    "NT-Xent, tau 0.01": {"kind": "nt_xent", "temperature": 0.01},
}

SEED = 64
"""Seed of weights with which all 256 outputs of a tree of depth 3 with 2 nodes differ, by up to the diameter: of 500
seeds the worst case."""


def operator_of(depth: int, nodes: int, **loss: Any) -> Callable[[], object]:
    """All that the method `operator` finds."""
    data: dict[str, Any] = {
        "tree": {"depth": depth, "polarity": {"law": "uniform", "low": 0.7}},
        "network": {"nodes_per_latent": nodes, "bias": True, "output_normalisation": True}
        | {"initial": {"law": "uniform", "seed": SEED}},
        "loss": loss,
        "time": {"stop": 1.0},
    }
    problem = Problem.model_validate(data)
    return lambda: find_operators(problem)


def exact_table() -> Table:
    """Exact averages."""
    deep = unnormalised(problem_of(READINGS["as printed"], 0.7, 10, 0))
    four = Tables(problem_of(READINGS["public code"], 0.7, 10, 0, depth=4))
    few = "0.1 s at most"
    works: dict[str, tuple[Callable[[], object], str]] = {
        f"operator, depth 3, 2 nodes, 256 outputs, {loss}": (operator_of(3, 2, **LOSSES[loss]), few) for loss in LOSSES
    } | {
        "operator, depth 3, 12 nodes, InfoNCE": (operator_of(3, 12, kind="infonce"), "2 s at most"),
        "operator, depth 4, 10 nodes, simple": (operator_of(4, 10), ""),
        "operator, depth 4, 2 nodes, exact": (operator_of(4, 2, kind="exact"), ""),
        "loss and gradient, depth 4, 10 nodes, normalised": (_gradient(four), ""),
        "loss and gradient, depth 5, 10 nodes": (_gradient(deep), ""),
    }
    times = seconds(*(work for work, _ in works.values()), rounds=5)
    rows = [Row(what, t, "s", required=works[what][1]) for what, t in zip(works, times, strict=True)]
    return Table("Exact averages on latent trees", ONE_THREAD, tuple(rows))


def _gradient(tables: Tables) -> Callable[[], object]:
    weights = tables.problem.initial_weights
    return lambda: tables.loss_and_gradient(weights)


def tables() -> Iterator[Table]:
    """All tables, with linear algebra on one thread."""
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1):
        yield epoch_table()
        yield exact_table()
