"""Equations of a latent-tree problem: data, network, loss, the flow of all weights, and the covariance operators.

Source: latent_tree.md, sections 1, 3.1, 3.2 and 3.4. Entries have the numbers of nodes, and of configurations of the
leaves; small trees have closed forms of the selectivity of nodes, of which everything else is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, entry, index, real
from meanfield.explanation.weight_equations import average_line, speed_lines
from meanfield.families.latent_tree.closed_equations import closed_lines
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import SphereStart
from meanfield.families.latent_tree.wording import edges_in_words, ring_in_words

TREE = (
    r"A view of the tree keeps the value $z$ of its root, and draws everything else anew: children are independent "
    r"given their parent. $P_{zc}$ is the probability of the configuration $c$ of the leaves."
)
NETWORK = (
    "A latent has nodes $j$ that are fed by the nodes $k$ of its children, leaves by their inputs; nodes of the root "
    "are "
)
TRIPLES = (
    r"Averages $\langle \cdot \rangle_{ce}$ are over negatives given the anchor $c$ and its positive $e$, in $G$ "
    r"behind the minus sign over all other views given the anchor and the first negative $e$."
)

c, d, e, h, i, j, k, z, v, n, C, Z = index("c d e h i j k z v n C Z")
INPUTS, OUTPUTS, PARENTS = index("n_in n_out n_up")
P_PLUS, Q = entry("P_+", c, e), entry("q", c) * entry("q", e)


class _Given(sp.Function):  # type: ignore[misc]
    """Average over all views of a loss but two."""

    def _latex(self, printer: Any) -> str:
        of, *fixed = map(printer._print, self.args)
        return rf"\left\langle {of} \right\rangle_{{{''.join(fixed)}}}"


given, others = (type(name, (_Given,), {}) for name in ("given", "others"))


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    yield Section("Data", [*_data(problem, table)])
    yield Section("Network", [*_network(problem, table)])
    yield Section("Loss", [*_loss(problem, table)])
    yield Section("Flow of the weights", [*_flow(problem, table), *_training(problem, table)])
    yield Section("Covariance operator of a latent", [*_operator(problem)])
    if lines := [*closed_lines(problem, table)]:
        yield Section("Closed form", lines)
    if lines := [*speed_lines(problem.training, table)]:
        yield Section("Momentum", lines)


def _data(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Law of views, latent_tree.md, sections 1.4 and 1.5."""
    tree = problem.tree
    if problem.data is not None:
        yield f"There are {ring_in_words(problem.data)}. Both are equally frequent. Patterns $c$ are 00, 01, 10 and 11:"
        sites = table.known("d", "data.sites", problem.data.sites)
        for number, row in enumerate(problem.data.given_object):
            seen = [round(chance * problem.data.sites) for chance in row[1:]]
            for pattern, count in zip(("00", "01", "10", "11"), (sites - sum(seen), *seen), strict=True):
                yield Equation(rf"P({pattern} | {number})", sp.sympify(count) / sites)
        return
    table.named("L", "tree.depth", str(tree.depth))
    table.named("n_{\\nu}", "tree.children", str(tree.children))
    table.named("m", "tree.values", str(tree.values))
    table.named("p", "tree.root", str([*tree.root]))
    table.named("x", "tree.leaves", str(tree.leaves))
    yield TREE
    if tree.polarity is None:
        table.named("P_{\\mu\\nu}", "tree.transitions", edges_in_words(tree))
        return
    table.named(r"\rho_{\mu\nu}", "tree.polarity", edges_in_words(tree))
    m, rho = tree.values_at[0], real("rho")
    yield r"Along an edge with the polarity $\rho$ a child has the value $j$, if its parent has $i$, with the chance"
    yield Equation(entry("P", i, j), rho * sp.KroneckerDelta(i, j) + (1 - rho) / m)


def _network(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Pre-activations u, activations f and outputs y, latent_tree.md, section 1.1."""
    network, ring = problem.network, problem.data is not None
    table.named("n", "network.nodes_per_latent", str(network.nodes_per_latent))
    if problem.initial is None:
        table.part("W(0)", "network.initial", network.initial)
    else:
        table.named("W(0)", "initial", problem.initial.in_words)
    yield (
        f"{NETWORK}{'rectified, too' if ring else 'not rectified'}. A node is fed by $n_{{in}}$ nodes or inputs, and "
        rf"there are $n_{{out}} = {problem.shape.width(problem.shape.depth)}$ outputs."
    )
    bias = entry("b", j) if network.bias else 0
    yield Equation(entry("u", j, c), sp.Sum(entry("W", j, k) * entry("f", k, c), (k, 1, INPUTS)) + bias)
    yield Equation(entry("f", j, c), sp.Max(entry("u", j, c), 0))
    last = "f" if ring else "u"
    own, normalisation = entry(last, j, c), problem.normalisation
    if normalisation.active:
        own = own / (_length() + _epsilon(problem, table))
    yield Equation(entry("y", j, c), own)


def _length() -> Any:
    """Length of the last layer; of an output that is 0 nothing is divided."""
    return sp.sqrt(sp.Sum(entry("u", i, c) ** 2, (i, 1, OUTPUTS)))


def _epsilon(problem: Problem, table: Table) -> Any:
    """What is added to lengths; directions, which `nt_xent` takes, have none."""
    epsilon = problem.normalisation.epsilon
    return 0 if problem.loss.kind == "nt_xent" else table.known("epsilon", "network.epsilon", epsilon)


def _loss(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Loss, and its derivatives by distances and outputs, latent_tree.md, sections 1.2 and 1.3."""
    kind = problem.loss.kind
    directions = kind == "nt_xent"
    away = 1 - entry("y", j, c) * entry("y", j, e) if directions else (entry("y", j, c) - entry("y", j, e)) ** 2 / 2
    cosine = 1 - sp.Sum(entry("y", j, c) * entry("y", j, e), (j, 1, OUTPUTS))
    yield Equation(entry("r", c, e), cosine if directions else sp.Sum(away, (j, 1, OUTPUTS)))
    yield r"Probabilities of a view, and of two views of a sample, are"
    yield Equation(entry("q", c), sp.Sum(entry("p", z) * entry("P", z, c), (z, 1, Z)))
    yield Equation(P_PLUS, sp.Sum(entry("p", z) * entry("P", z, c) * entry("P", z, e), (z, 1, Z)))
    yield r"With $G$, the derivative of the loss $\mathcal L$ by the distance of two views,"
    yield from (
        _of_pairs(problem, table) if kind in ("simple", "beta", "batch_ratio", "exact") else _of_triples(problem, table)
    )
    slope = (entry("G", c, e) + entry("G", e, c)) * (entry("y", j, c) - entry("y", j, e))
    yield Equation(entry("g", j, c), sp.Sum(slope, (e, 1, C)))
    yield (
        r"$g_{jc}$ is the derivative of $\mathcal L$ by $y_{jc}$"
        + ", but for what is along $y$." * directions
        + "." * (not directions)
    )


def _pairs(of: Any) -> Any:
    return sp.Sum(of, (c, 1, C), (e, 1, C))


def _of_pairs(problem: Problem, table: Table) -> Iterator[Equation]:
    """Losses of mean distances."""
    loss, r = problem.loss, entry("r", c, e)
    G, value = P_PLUS - Q, _pairs(entry("G", c, e) * r)
    if loss.kind == "beta":
        G = (1 + table.known("beta", "loss.beta", loss.beta, False)) * P_PLUS - Q
    elif loss.kind == "batch_ratio":
        tau, F = table.known("tau", "loss.temperature", loss.temperature), real("F")
        scale = 2 / (OUTPUTS * tau)
        yield Equation(F, 1 / (1 + sp.exp(-scale * _pairs((Q - P_PLUS) * r))))
        G, value = scale * F * (1 - F) * (P_PLUS - Q), -F
    elif loss.kind == "exact":
        tau = table.known("tau", "loss.temperature", loss.temperature)
        H = table.known("H", "loss.negatives", loss.negatives)
        both = entry("P", z, c) * entry("P", v, e)
        yield Equation(entry("xi", z, v), _pairs(both / (tau * (1 + sp.exp(r / tau)))))
        weight = H * entry("p", z) * entry("p", v) * entry("xi", z, v)
        G = sp.Sum(weight * (entry("P", z, c) * entry("P", z, e) - both), (z, 1, Z), (v, 1, Z))
    yield Equation(entry("G", c, e), G)
    yield Equation(r"\mathcal L", value)


def _of_triples(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Losses of an anchor, a positive at the distance r_+, and negatives at r_k."""
    loss, kind = problem.loss, problem.loss.kind
    tau = table.known("tau", "loss.temperature", loss.temperature)
    margin = table.known("r_0", "loss.margin", loss.margin, False) if kind == "triplet" else 0
    count = sp.S.One
    if kind == "infonce":
        count = table.known("H", "loss.negatives", loss.negatives)
    elif kind == "nt_xent":
        count = 2 * (table.known("B", "training.batch_size", problem.training.batch_size) - 1)
        yield "Negatives are the two views of each other sample of the batch."
    unit = tau if kind == "triplet" else sp.S.One
    share, S = sp.exp((real("r_+") - entry("r", k) + margin) / tau), real("S")
    yield Equation(S, sp.Sum(share, (k, 1, count)))
    yield Equation(real(r"\ell"), unit * sp.log(1 + S))
    yield Equation(real("F_+"), unit / tau * S / (1 + S))
    yield Equation(real("F_1"), unit / tau * share.subs(k, 1) / (1 + S))
    yield TRIPLES
    yield Equation(entry("G", c, e), P_PLUS * given(real("F_+"), c, e) - count * Q * others(real("F_1"), c, e))
    yield Equation(r"\mathcal L", _pairs(P_PLUS * given(real(r"\ell"), c, e)))


def _flow(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """Gradient through all levels, latent_tree.md, sections 3.1 and 3.2."""
    start, bias = problem.network.initial, problem.network.bias
    own = entry("g", j, c)
    if problem.data is not None:
        own *= sp.Heaviside(entry("u", j, c), 0)
    elif problem.normalisation.active:
        epsilon, length = _epsilon(problem, table), _length()
        along = sp.Sum(entry("u", i, c) * entry("g", i, c), (i, 1, OUTPUTS))
        own = own / (length + epsilon) - entry("u", j, c) * along / (length * (length + epsilon) ** 2)
    yield r"Derivatives of $\mathcal L$ by $u_{jc}$, at the root" + (
        ", and below it, where $k$ are the $n_{up}$ nodes of the parent:" if problem.shape.depth > 1 else ":"
    )
    yield Equation(entry("s", j, c), own)
    if problem.shape.depth > 1:
        above = sp.Sum(entry("W", k, j) * entry("s", k, c), (k, 1, PARENTS))
        yield Equation(entry("s", j, c), sp.Heaviside(entry("u", j, c), 0) * above)
    down = -sp.Sum(entry("s", j, c) * entry("f", k, c), (c, 1, C))
    by_bias = -sp.Sum(entry("s", j, c), (c, 1, C))
    if not isinstance(start, SphereStart):
        yield Equation(entry("V", j, k), down)
        if bias:
            yield Equation(entry("V", j, 0), by_bias)
    else:
        yield from _many_nodes(down, by_bias, start, problem)
    if not isinstance(start, SphereStart) or not start.fixed_lengths:
        yield r"$\mathrm dW_{jk}/\mathrm dt = V_{jk}$" + r" and $\mathrm db_j/\mathrm dt = V_{j0}$" * bias + "."


def _many_nodes(down: Any, by_bias: Any, start: SphereStart, problem: Problem) -> Iterator[Equation | str]:
    """Nodes whose outputs are averaged, and which move n times as fast; latent_tree.md, section 3.4."""
    nodes, bias = problem.network.nodes_per_latent, problem.network.bias
    held = start.fixed_lengths
    yield "Below the root:" if held else "Below the root, and at the root:"
    yield Equation(entry("V", j, k), nodes * down)
    if bias:
        yield Equation(entry("V", j, 0), nodes * by_bias)
    if held:
        own = sp.Sum(entry("W", j, i) * entry("V", j, i), (i, 1, INPUTS))
        length = sp.Sum(entry("W", j, i) ** 2, (i, 1, INPUTS))
        if bias:
            own, length = own + entry("b", j) * entry("V", j, 0), length + entry("b", j) ** 2
        yield Equation(entry(r"\dot W", j, k), entry("V", j, k) - entry("W", j, k) * own / length)
        if bias:
            yield Equation(entry(r"\dot b", j), entry("V", j, 0) - entry("b", j) * own / length)
        yield "Weights of the root stand still" + (", its biases do not:" if bias else ".")
        if bias:
            yield Equation(entry(r"\dot b", j), by_bias)
        return
    yield Equation(entry("V", j, k), down / nodes)
    if bias:
        yield Equation(entry("V", j, 0), by_bias)


def _training(problem: Problem, table: Table) -> Iterator[Equation | str]:
    """What SGD makes of the flow, and averages of its weights."""
    training, (theta, average) = problem.training, real("theta thetaprime")
    eta = table.known("eta", "training.learning_rate", training.learning_rate)
    table.known("B", "training.batch_size", training.batch_size)
    lengths = getattr(problem.network.initial, "fixed_lengths", False)
    yield (
        "SGD averages over $B$ anchors in place of all views"
        + ", and lengths go back to 1 behind each step" * lengths
        + r". A step takes the time $\eta$: $t$ is the sum of the learning rates so far."
    )
    if training.average_rate is not None:
        alpha = table.known("alpha", "training.average_rate", training.average_rate)
        yield average_line(theta, average, alpha * eta)


def _operator(problem: Problem) -> Iterator[Equation | str]:
    """Covariance operator, latent_tree.md, section 1.3."""
    yield (
        r"With $K_{ihc}$, the derivative of the output $i$ by the weight $h$ of the latent"
        + (
            r", and $K'$ that of $u$ at the root over $|u|" + r" + \epsilon" * (problem.loss.kind != "nt_xent") + "$"
            if problem.normalisation.active
            else ""
        )
        + r", $-\nabla \mathcal L = 2\,O\,\mathrm{vec}\,W$ for a latent that is alone in its level, without biases:"
    )
    away = entry("K", i, h, c) - entry("K", i, h, e)
    name = "K'" if problem.normalisation.active else "K"
    other = entry(name, i, k, c) - entry(name, i, k, e)
    pulls = entry("G", c, e) * away * other
    yield Equation(entry("O", h, k), -sp.Sum(pulls, (i, 1, OUTPUTS), (c, 1, C), (e, 1, C)) / 2)
    yield r"Here $h$ and $k$ count the weights of all nodes of the latent."
