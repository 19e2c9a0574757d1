"""Equations of contrastive learning with pairwise importance: its step, its flow, and the density of filters.

Source: alpha_contrastive.md, sections 1 to 4 and 6. Indices i and j count samples or atoms, k places, m filters of a
place, o outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from meanfield.errors import InputError
from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, dot, entry, function_of, index, mean, named, rate_of, real, total
from meanfield.explanation.weight_equations import activation_lines, average_line, speed_lines
from meanfield.families.alpha_contrastive.importance import USES_EPSILON, USES_TEMPERATURE
from meanfield.families.alpha_contrastive.laws import GaussianMixture, Images
from meanfield.families.alpha_contrastive.limit.fields import mixture_field
from meanfield.families.alpha_contrastive.limit.pairs import NORMALISED
from meanfield.families.alpha_contrastive.particles.pairs import DIVIDED
from meanfield.families.alpha_contrastive.population.solver import check_population
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.in_time import check_at_extremes

LOSSES = {
    "quadratic": ("x", "x"),
    "infonce": ("tau*log(epsilon + x)", "exp(x/tau)"),
    "triplet": ("x", "Max(x + epsilon, 0)"),
    "soft_triplet": ("tau*log(1 + x)", "exp(x/tau + epsilon)"),
    "tuplet": ("log(1 + x)", "exp(x)"),
    "lifted": ("Max(log(x), 0)**2", "exp(x + epsilon)"),
    "modified_triplet": ("x", "1/(1 + exp(-x/tau))"),
}
"""phi and psi of losses; the importance of others is a function of the distance of a pair."""

H, SLOPE = named("h", "h"), named("h_slope", "h'")
PHI, PSI, KERNEL = named("phi", r"\phi"), named("psi", r"\psi"), named("kernel", r"\mathcal K")
PHI_SLOPE, PSI_SLOPE = named("phi_slope", r"\phi'"), named("psi_slope", r"\psi'")

BATCH = (
    r"A batch has $N$ samples, each with two views and the outputs $f_i$ and $f_i'$. With $d_{ij}^2 = |f_i - f_j|^2/2$ "
    r"and $d_i^2 = |f_i - f_i'|^2/2$ let $s_{ij} = d_i^2 - d_{ij}^2$."
)
PAIRS = {"exclude": "$c_{ij} = 1$ but for $c_{ii} = 0$.", "include": "$c_{ij} = 1$, also of a sample with itself."}
LARGE = (
    r"Sums over $i$ are over the atoms of the data with probabilities $p_i$, or averages over a mixture; "
    r"$z_i = w \cdot x_i$."
)
PLACES = (
    r"Places are independent given the generator or component of a sample, over which averages are; $F_{km}$ is the "
    r"mean of $f_{km}$ given it, and $X_{km}$ that of $g_{km} = "
)
GATED = r"h'(w_{km} \cdot x_k)\,x_k$."
GATED_NORMALISED = r"h'(w_{km} \cdot x_k)\,x_k/\sigma_{km}$"
WITHIN = (
    r"$O_{kml}$ is the mean of $\mathrm{Cov}[f_{km}, f_{kl}]$ given it, and $Y_{kml}$ that of "
    r"$\mathrm{Cov}[g_{km}, f_{kl}]$"
)
NO_PLACES = (
    r"All weights follow $\dot\theta = \nabla E - \kappa\,\theta$, where $E$ is that of the step, averaged over large "
    r"batches at fixed $\alpha$. "
)
NORMALISED_BATCH = (
    r"Batch normalisation takes $(f_{km} - \mu_{km})/\sigma_{km}$ in place of $f_{km}$, where "
    r"$\sigma_{km}^2 = \mathrm{Var} f_{km} + \epsilon_b$. Statistics are those of each view"
)
TANGENTIAL = "Where lengths are kept, only what is tangential counts."
NO_FLOW = "No exact flow is known: only SGD is followed."
FLOW = r"Flow in the limit of large batches, in the time $t = \eta k$ after $k$ steps"


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    model, training = problem.model, problem.training
    N, eta = (
        table.known(letter, f"training.{key}", getattr(training, key))
        for letter, key in (("N", "batch_size"), ("eta", "learning_rate"))
    )
    numbers = {}
    for letter, key, kinds in (("tau", "temperature", USES_TEMPERATURE), ("epsilon", "epsilon", USES_EPSILON)):
        if problem.importance.kind in kinds:
            numbers[letter] = table.known(
                letter, f"importance.{key}", getattr(problem.importance, key), letter == "tau"
            )
    table.part("x", "data", problem.data)
    if problem.initial is None:
        table.part("w(0)", "filters.start", problem.filters.start)
    else:
        table.named("w(0)", "initial", problem.initial.in_words)
    table.known("K" if model.layers == 1 else "M", "filters.count", problem.filters.count)
    table.named(r"\mathrm{layers}", "model.layers", str(model.layers))
    decay = table.known("kappa", "training.weight_decay", training.weight_decay)
    yield Section("Step", [*_importance(problem, numbers, N, table), *_training(problem, eta, decay, table)])
    if not _has_flow(problem):
        yield Section(FLOW, [NO_FLOW])
        return
    share = 1 - 1 / sp.sympify(N) if problem.population.finite_batch else sp.S.One
    flow = _flow(problem, share, numbers) if model.layers == 1 else _places(problem, share, N, decay)
    yield Section(FLOW, [*flow, *speed_lines(problem.training, table)])


def _has_flow(problem: Problem) -> bool:
    """Whether a solver has the flow of filters of one layer, or that of two whose equations are printed."""
    data, importance, model = problem.data, problem.importance, problem.model
    if not (importance.at_hand and model.at_hand) or (model.layers == 2 and not _is_of_places(problem)):
        return True
    try:
        if model.layers == 1 and isinstance(data, GaussianMixture) and importance.kind != "quadratic":  # of densities
            check_at_extremes(problem, lambda each: mixture_field(each, data))
        else:
            check_population(problem)
    except InputError:
        return False
    return True


def _is_of_places(problem: Problem) -> bool:
    """Whether covariances of places decide the flow."""
    images = isinstance(problem.data, Images)
    return problem.importance.kind == "quadratic" and not problem.model.normalise_outputs and not images


def _augments(data: Any) -> bool:
    """Whether the two views of a sample differ."""
    given = (getattr(data, key, None) for key in ("augmentation", "crop"))
    return getattr(data, "sample_of", None) is not None or any(given)


def _importance(problem: Problem, numbers: dict[str, Any], N: Any, table: Table) -> Iterator[Equation | str]:
    """Importance of pairs, and the energy; alpha_contrastive.md, section 1."""
    model, importance, x, (i, j) = problem.model, problem.importance, real("x"), index("i j")
    if model.layers == 1:
        yield r"Filters $w_k$, $k = 1 \dots K$, have the outputs $f_k = h(w_k \cdot x)/\sqrt K$."
    else:
        table.named(r"\dim f", "model.outputs", str(model.outputs))
        yield (
            r"The top layer has the outputs $f_o = \sum_{km} V_{okm} f_{km}$, filter $m$ of place $k$ "
            r"$f_{km} = h(w_{km} \cdot x_k)$"
            + ", divided by their length." * model.normalise_outputs
            + "." * (not model.normalise_outputs)
        )
        if model.batch_norm.active:
            table.known("epsilon_b", "model.batch_norm.epsilon", model.batch_norm.epsilon)
            norm = model.batch_norm
            held = [r"$\mu_{km}$"] * (not norm.differentiate_mean)
            held += [r"$\sigma_{km}$"] * (not norm.differentiate_variance)
            through = r", and $\nabla$ does not pass through " + " and ".join(held)
            yield NORMALISED_BATCH + through * bool(held) + "."
    yield from activation_lines(model, table, (H, SLOPE))
    yield f"{BATCH} {PAIRS[importance.diagonal]}"
    counts, s, alpha = entry("c", i, j), entry("s", i, j), entry("alpha", i, j)
    third = ""
    if _augments(problem.data) and importance.argument == "source":
        images = isinstance(problem.data, Images)
        third = "the image before it is cropped" if images else "a third sample of the same generator"
    if importance.kind in LOSSES:
        for functions, formula in zip(((PHI, PHI_SLOPE), (PSI, PSI_SLOPE)), LOSSES[importance.kind], strict=True):
            value = function_of(formula, numbers, x)
            yield Equation(functions[0](x), value)
            yield Equation(functions[1](x), sp.diff(value, x))
        yield Equation(entry("xi", i), total(counts * PSI(s), j, N))
        yield Equation(
            alpha, (N if importance.kind in DIVIDED else 1) * counts * PHI_SLOPE(entry("xi", i)) * PSI_SLOPE(s)
        )
        if third and importance.kind != "quadratic":
            yield (
                rf"In $\xi$ and $\alpha$ outputs are those of {third}, in place of both views: there "
                r"$s_{ij} = -d_{ij}^2$."
            )
    else:
        if importance.kind == "gaussian":
            yield Equation(KERNEL(x), sp.exp(-x / numbers["tau"]))
        else:
            table.named(r"\mathcal K", "importance.kind", importance.kind)
        yield rf"$D_{{ij}} = d_{{ij}}^2$ of {third or 'the first view'}."
        yield Equation(alpha, counts * KERNEL(entry("D", i, j)))
    yield Equation(real("E"), -sp.Sum(alpha * s, (i, 1, N), (j, 1, N)) / (2 * N**2))


def _training(problem: Problem, eta: Any, decay: Any, table: Table) -> Iterator[Equation | str]:
    """Step of all weights."""
    model, training = problem.model, problem.training
    (theta, v), slope = real("theta v"), sp.Symbol(r"\nabla E")
    change = slope - decay * theta
    if training.momentum_rate is not None:
        b = table.known("b", "training.momentum_rate", training.momentum_rate)
        velocity = (1 - b * eta) * v + b * eta * change
    else:
        velocity = table.known("mu", "training.momentum", training.momentum) * v + change
    yield (
        r"Of all weights $\theta$, where $\nabla$ leaves $\alpha$ as it is"
        + r" and is taken $K$ times:" * (model.layers == 1)
        + ":" * (model.layers == 2)
    )
    yield Equation(v, velocity, r"\leftarrow")
    yield Equation(theta, theta + eta * v, r"\leftarrow")
    top = model.unit_top and model.layers == 2
    kept = ["those of filters"] * model.unit_filters + ["the Frobenius norm of the top layer"] * top
    if kept:
        yield f"Gradients are made tangential, and lengths go back to 1 behind each step: {' and '.join(kept)}."
    if training.average_rate is not None:
        a = table.known("a", "training.average_rate", training.average_rate)
        yield average_line(theta, sp.Symbol("thetaprime"), a * eta)


def _flow(problem: Problem, share: Any, numbers: dict[str, Any]) -> Iterator[Equation | str]:
    """Field of filters on the sphere, and their density; alpha_contrastive.md, sections 2 to 4."""
    importance, (i, j, m), n = problem.importance, index("i j l"), sp.Symbol("n", integer=True, positive=True)
    kind, (z, other), x = importance.kind, real("z z'"), real("x")
    w, F = real("w F")
    if kind == "quadratic":
        yield r"Averages are over samples; $z = w \cdot x$, and $z'$ that of another view, or $z$ without augmentation."
        yield Equation(F, share * (mean(H(other) * SLOPE(z) * x) - mean(H(z)) * mean(SLOPE(z) * x)))
    else:
        yield LARGE
        views = _augments(problem.data)
        p, D, M = entry("p", i), entry("D", i, j), entry("M", i, j)
        yield "Distances are averages over all filters, or of one filter that moves its importance by itself:"
        yield Equation(D, mean((H(entry("z", i)) - H(entry("z", j))) ** 2) / 2)
        V = entry("V", i, j) if views else 0
        if views:
            yield r"$V_{ij}$ is the probability that two views of a sample are at $i$ and $j$."
        if kind in NORMALISED:
            tau = sp.S.One if kind == "tuplet" else numbers["tau"]
            if importance.diagonal == "exclude":
                yield "In the density and at critical points $l = i$ is left out, and $p_l$ are divided by $1 - p_i$."
            A = entry("A", i, j)
            yield Equation(
                A, p * entry("p", j) * sp.exp(-D / tau) / total(entry("p", m) * sp.exp(-entry("D", i, m) / tau), m, n)
            )
            yield Equation(M, (A + entry("A", j, i)) / 2 - V)
        else:
            if kind in LOSSES:
                yield Equation(KERNEL(x), sp.diff(function_of(LOSSES[kind][1], numbers, x), x).subs(x, -x))
            yield Equation(M, p * entry("p", j) * KERNEL(D) - V)
        pull = M * (H(entry("z", i)) - H(entry("z", j))) * SLOPE(entry("z", i)) * entry("x", i)
        yield Equation(F, share * sp.Sum(pull, (i, 1, n), (j, 1, n)))
    yield Equation(real("lambda"), dot(w, F))
    yield Equation(rate_of("w"), F - real("lambda") * w)
    if problem.training.momentum_rate is not None:  # $P$ alone does not close
        return
    yield r"Of infinitely many filters the law $P$ on the sphere obeys"
    yield Equation(r"\frac{\partial P}{\partial t}", r"-\nabla \cdot \left[ P\,(F - \lambda w) \right]")


def _places(problem: Problem, share: Any, N: Any, decay: Any) -> Iterator[Equation | str]:
    """Flow of two layers whose places are independent given a latent variable; alpha_contrastive.md, section 6."""
    model, importance = problem.model, problem.importance
    unit = model.unit_filters or model.unit_top
    if not _is_of_places(problem):
        yield NO_PLACES + TANGENTIAL * unit
        return
    places, filters, _ = problem.shape
    k, m, o, other = index("k m o l")
    F, V, X, y = entry("F", k, m), entry("V", o, k, m), entry("X", k, m), entry("y", o)
    through = r", less $F_{km} \langle f_{km} g_{km} \rangle$" * model.batch_norm.differentiate_variance
    yield PLACES + (f"{GATED_NORMALISED}{through}." if model.batch_norm.active else GATED)
    yield Equation(y, sp.Sum(V * F, (k, 1, places), (m, 1, filters)))
    of_V = share * (mean(y * F) - mean(y) * mean(F))
    of_w = share * sp.Sum(V * mean((y - mean(y)) * X), (o, 1, model.outputs))
    own = problem.population.finite_batch and importance.diagonal == "include"
    within = share if not _augments(problem.data) else -1 / sp.sympify(N) if own else 0
    if within != 0:
        through = r", less $O_{kml} \langle f_{km} g_{km} \rangle$" * bool(through and model.batch_norm.active)
        yield f"{WITHIN}{through}."
        of_V += within * total(entry("V", o, k, other) * entry("O", k, m, other), other, filters)
        both = sp.Sum(V * entry("V", o, k, other) * entry("Y", k, m, other), (o, 1, model.outputs), (other, 1, filters))
        of_w += within * both
    if problem.population.fast_top:
        yield "The top layer is always at its optimum: one output, along the top eigenvector of the covariance of $F$."
    else:
        yield Equation(r"\dot V_{okm}", of_V - decay * V)
    yield Equation(r"\dot w_{km}", of_w - decay * entry("w", k, m))
    if unit:
        yield TANGENTIAL
