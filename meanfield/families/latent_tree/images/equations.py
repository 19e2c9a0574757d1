"""Equations of training on images: the network, the loss of a batch, and the step; latent_tree.md, section 1.2."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, entry, index, real
from meanfield.explanation.weight_equations import average_line
from meanfield.families.latent_tree.images.problem import ImageProblem

BATCH = (
    r"Of each of $B$ anchors $a$ a batch has the view $v = 0$, another one, $v = 1$, and views $v = 2 \dots H + 1$ of "
    "other images."
)
ALL = r"A batch has two views $i$ of each of $B$ images; $q_i$ is the cosine of the two, and $c_{ik}$ that of any."

a, i, j, k, v = index("a i j k v")
INPUTS, OUTPUTS = index("n_in n_out")


def equations_of(problem: ImageProblem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    table.named(r"\mathrm{images}", "data", str(problem.data.images))
    table.part("x", "data.augmentation", problem.data.augmentation)
    yield Section("Network", [*_network(problem, table)])
    yield Section("Loss", [*_loss(problem, table)])
    yield Section("Step", [*_step(problem, table)])


def _network(problem: ImageProblem, table: Table) -> Iterator[Equation | str]:
    network = problem.network
    table.named("n", "network.widths", str([*network.widths]))
    below = "pixels"
    if network.convolution is not None:
        table.part(r"f_0", "network.convolution", network.convolution)
        below = "averages over pixels of what convolutions make of them"
    yield f"Layers of $n$ nodes have {below} or the nodes $f$ below as inputs; those of the last one are not rectified."
    bias = entry("b", j) if network.bias else 0
    yield Equation(entry("u", j), sp.Sum(entry("W", j, k) * entry("f", k), (k, 1, INPUTS)) + bias)
    yield Equation(entry("f", j), sp.Max(entry("u", j), 0))
    own = entry("u", j)
    if problem.loss.kind == "nt_xent" or network.output_normalisation:
        epsilon = 0 if problem.loss.kind == "nt_xent" else table.known("epsilon", "network.epsilon", network.epsilon)
        own = own / (sp.sqrt(sp.Sum(entry("u", i) ** 2, (i, 1, OUTPUTS))) + epsilon)
    yield Equation(entry("y", j), own)


def _loss(problem: ImageProblem, table: Table) -> Iterator[Equation | str]:
    loss, kind = problem.loss, problem.loss.kind
    B = table.known("B", "training.batch_size", problem.training.batch_size)
    tau = table.known("tau", "loss.temperature", loss.temperature)
    if kind == "nt_xent":
        beta = table.known("beta", "loss.beta", loss.beta)
        yield ALL
        others = sp.Sum((1 - sp.KroneckerDelta(i, k)) * sp.exp(entry("c", i, k) / tau), (k, 1, 2 * B))
        each = sp.log(others) - entry("q", i) / tau + beta * (1 - entry("q", i)) / tau
        yield Equation(r"\mathcal L", sp.Sum(each, (i, 1, 2 * B)) / (2 * B * (1 + beta)))
        return
    H = table.known("H", "loss.negatives", loss.negatives)
    yield BATCH
    away = (entry("y", j, 0, a) - entry("y", j, v, a)) ** 2
    yield Equation(entry("r", v, a), sp.Sum(away, (j, 1, OUTPUTS)) / 2)
    near, far = entry("r", 1, a), entry("r", v, a)
    if kind == "batch_ratio":
        gap = sp.Sum(entry("r", 2, a) - near, (a, 1, B)) / B
        yield Equation(r"\mathcal L", -1 / (1 + sp.exp(-2 * gap / (OUTPUTS * tau))))
        return
    if kind == "exact":
        yield r"$D_{va}$ is $r_{va}$ of outputs of the images without augmentation; $\nabla$ leaves $\xi$ as it is."
        yield Equation(entry("xi", v, a), 1 / (tau * (1 + sp.exp(entry("D", v, a) / tau))))
        each = sp.Sum(entry("xi", v, a) * (near - far), (v, 2, H + 1))
    elif kind == "infonce":
        each = sp.log(1 + sp.Sum(sp.exp((near - far) / tau), (v, 2, H + 1)))
    elif kind == "triplet":
        margin = table.known("r_0", "loss.margin", loss.margin, False)
        each = tau * sp.log(1 + sp.exp((near - entry("r", 2, a) + margin) / tau))
    else:
        beta = table.known("beta", "loss.beta", loss.beta, False) if kind == "beta" else 0
        each = (1 + beta) * near - entry("r", 2, a)
    yield Equation(r"\mathcal L", sp.Sum(each, (a, 1, B)) / B)


def _step(problem: ImageProblem, table: Table) -> Iterator[Equation | str]:
    training, (theta, p, s) = problem.training, real("theta p s")
    eta = table.known("eta", "training.learning_rate", training.learning_rate)
    change = (
        sp.Symbol(r"\nabla\mathcal L") + table.known("kappa", "training.weight_decay", training.weight_decay) * theta
    )
    yield r"Of all that is trained, $\theta$, in step $k = 1, 2, \dots$:"
    if training.optimiser == "adam":
        first, second = sp.Rational(9, 10), sp.Rational(999, 1000)
        yield Equation(p, first * p + (1 - first) * change, r"\leftarrow")
        yield Equation(s, second * s + (1 - second) * change**2, r"\leftarrow")
        change = p / (1 - first**k) / (sp.sqrt(s / (1 - second**k)) + sp.Rational(1, 10**8))
    elif training.momentum_rate is not None:
        pace = table.known("b_p", "training.momentum_rate", training.momentum_rate)
        yield Equation(p, (1 - pace * eta) * p + pace * eta * change, r"\leftarrow")
        change = p
    elif (mu := table.known("mu", "training.momentum", training.momentum)) != 0:
        yield Equation(p, mu * p + change, r"\leftarrow")
        change = p
    yield Equation(theta, theta - eta * change, r"\leftarrow")
    if (noise := table.known("eta_w", "training.weight_noise", training.weight_noise)) != 0:
        yield (
            r"After each epoch fresh weights are mixed in, uniform within $\sqrt{6/(n_{in} + n)}$ for $n_{in}$ inputs "
            "and $n$ nodes; biases stay:"
        )
        yield Equation(real("W"), (1 - noise) * real("W") + noise * sp.Symbol(r"\tilde W"), r"\leftarrow")
    if training.average_rate is not None:
        average = table.known("alpha", "training.average_rate", training.average_rate) * eta
        yield average_line(theta, sp.Symbol("thetaprime"), average)
