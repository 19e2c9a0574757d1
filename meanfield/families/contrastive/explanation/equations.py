"""Equations of a contrastive problem: the step, and of one channel g and Lambda, the density, and the overlaps.

Source: theory.md, section 2; docs/theory/model.md, density.md and order_parameters.md, several_channels.md, section 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, dot, entry, index, latex_of, mean, real, tidy, total
from meanfield.explanation.weight_equations import (
    FORCE,
    SIGMA,
    SLOPE,
    activation_lines,
    average_line,
    density_section,
    force_line,
    overlap_section,
)
from meanfield.families.contrastive.explanation import channel_equations
from meanfield.families.contrastive.explanation.closed_forms import closed_diffusion, closed_forms, diffusion, kept_by
from meanfield.families.contrastive.problem import Problem

DATA = (
    r"A sample $x = U c/\sqrt N + a$ has hidden variables $c$, and noise $a$ of variance 1 orthogonal to the features."
)
VIEWS = (
    r" Its views $x_\ell = x + \gamma_\ell$, $\ell = 1, 2$, have noise of the covariance $v_{\ell\ell'}$ in each "
    r"coordinate."
)
NO_VIEWS = " Both views are the sample itself."
OUTPUTS = r" Weights have $z = w \cdot x/\sqrt N$ and $y = \sigma(z)$ in each view."
CHANNELS = (
    r" Channel $k$ has the weights $w_k$, and of sample $b$ of a batch $z_{kb} = w_k \cdot x_b/\sqrt N$ in each view."
)
NOISE = (
    r", and over $\zeta \sim \mathcal N(0, V)$, with $V_{\ell\ell'} = v_{\ell\ell'}$ "
    r"and $v_{12} = \rho\sqrt{v_{11} v_{22}}$."
)
MEANS = {"population": "the mean over all samples", "batch": "the mean over the batch"}


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    model, features = problem.model, len(problem.features)
    tau = table.known("tau", "model.learning_rate", model.learning_rate)
    m = table.known("m", "model.batch_size", model.batch_size)
    noise = noise_of(problem, table)
    laws_of(problem, table)
    yield Section("Step", [*_data_lines(problem, table), *_step_lines(problem, tau, m, table)])
    if model.momentum:
        tau = tau / (1 - table.known("mu", "model.momentum", model.momentum))
    if model.channels > 1:
        yield from channel_equations.sections(problem, tau, m, noise, table)
        return
    yield Section(
        r"Drift gain and diffusion of the limit $N \to \infty$", list(_closure(problem, tau, m, noise, table))
    )
    if model.momentum_rate is None:
        yield density_section(problem.prior, tau, features)
        yield overlap_section(problem.prior, tau, features)
    else:
        yield Section("Weights and velocities", list(_with_velocity(problem, tau, m, table)))


def noise_of(problem: Problem, table: Table) -> tuple[Any, Any, Any]:
    """v11, v22 and v12 of the noise of both views, 0 where there is none."""
    given = problem.augmentation
    if given is None:
        return (sp.S.Zero,) * 3
    v11, v22 = (
        table.known(f"v_{k + 1}{k + 1}", f"augmentation.variance[{k}]", each) for k, each in enumerate(given.variance)
    )
    return (
        v11,
        v22,
        table.known("rho", "augmentation.correlation", given.correlation, positive=False) * sp.sqrt(v11 * v22),
    )


def laws_of(problem: Problem, table: Table) -> None:
    """Say what is random in data, and where training starts."""
    model = problem.model
    given = {"d_2": ("channels", model.channels), "M(0)": ("initial_channel_overlap", model.initial_channel_overlap)}
    for symbol, (key, value) in given.items() if model.channels > 1 else ():
        if value is not None:
            table.named(symbol, f"model.{key}", str(value))
    for k, feature in enumerate(problem.features):
        below = f"_{k + 1}" * (len(problem.features) > 1)
        if feature.hidden is not None:
            table.part(f"c{below}", f"features[{k}].hidden", feature.hidden)
        table.part(f"u{below}", f"features[{k}].coordinate", feature.coordinate)
        if feature.initial_overlap is not None:
            table.named(f"q{below}(0)", f"features[{k}].initial_overlap", str(feature.initial_overlap))
    if problem.hidden is not None:
        table.part("c", "hidden", problem.hidden)


def gains(views: Sequence[Any], means: Sequence[Any]) -> tuple[Any, Any]:
    """Gains alpha and beta of a sample, from the pre-activations of its views and the means of its outputs."""
    first, second = views
    return (SIGMA(second) - means[1]) * SLOPE(first), (SIGMA(first) - means[0]) * SLOPE(second)


def _data_lines(problem: Problem, table: Table) -> Iterator[Equation | str]:
    views = NO_VIEWS if problem.augmentation is None else VIEWS
    yield DATA + views + (CHANNELS if problem.model.channels > 1 else OUTPUTS)
    yield from activation_lines(problem.model, table)
    yield force_line(problem.prior, table)


def _means(problem: Problem) -> tuple[Any, Any]:
    """Symbols of what is subtracted from outputs."""
    if problem.model.centering == "none":
        return sp.S.Zero, sp.S.Zero
    return (real("ybar"),) * 2 if problem.augmentation is None else real("ybar_1 ybar_2")


def _step_lines(problem: Problem, tau: Any, m: Any, table: Table) -> Iterator[Equation | str]:
    """The step, theory.md, section 1, and several_channels.md, section 1."""
    model, noisy = problem.model, problem.augmentation is not None
    several, b, N = model.channels > 1, index("b"), real("N")
    channel, below = (index("k"),) * several, "_k" * several
    w, velocity, move = (entry(name, *channel) for name in ("w", "v", "Delta"))
    if model.centering != "none":
        yield rf"Of the outputs $\bar y$ is subtracted, {MEANS[model.centering]}."
    if several:
        yield from channel_equations.gain_lines(problem, m, table)
    else:
        alpha, beta = gains(real("z_1 z_2") if noisy else [real("z")] * 2, _means(problem))
        yield Equation(real("alpha"), alpha)
        if noisy:
            yield Equation(real("beta"), beta)
    moved = entry("alpha", *channel, b) * entry("x_1" if noisy else "x", b)
    moved += entry("beta", *channel, b) * entry("x_2", b) if noisy else 0
    step = (1 if noisy else 2) * tau / (m * sp.sqrt(N)) * total(moved, b, m)
    step -= 0 if problem.prior.name == "none" else tau / N * FORCE(w)
    if model.momentum_rate is not None:
        rate = table.known("b", "model.momentum_rate", model.momentum_rate)
        yield Equation(velocity, (1 - rate / N) * velocity + rate / N * move, r"\leftarrow")
        yield Equation(move, step)
    elif model.momentum:
        share = table.known("mu", "model.momentum", model.momentum)
        yield Equation(velocity, share * velocity + step, r"\leftarrow")
    else:
        yield Equation(rf"\tilde w{below}", w + step)
    if model.momentum or model.momentum_rate is not None:
        yield Equation(rf"\tilde w{below}", w + velocity)
    yield Equation(w, rf"\sqrt N\,\tilde w{below}/|\tilde w{below}|", r"\leftarrow")
    if model.average_rate is not None:
        rate = table.known("a", "model.average_rate", model.average_rate)
        yield average_line(w, entry("w'", *channel), rate / N)


def _closure(problem: Problem, tau: Any, m: Any, noise: Sequence[Any], table: Table) -> Iterator[Equation | str]:
    """Gain g and diffusion Lambda as averages, and in closed form where there is one; theory.md, section 2."""
    noisy, one = problem.augmentation is not None, len(problem.features) == 1
    c, q, e, alpha, beta = real("c q e alpha beta")
    square = q**2 if one else dot(q, q)
    residual = sp.sqrt(1 - square)
    shared = (c * q if one else dot(c, q)) + residual * e
    theta = real("Theta_1 Theta_2") if noisy else [real("Theta")] * 2
    yield rf"Averages are over $c$ and $e \sim \mathcal N(0, 1)${NOISE if noisy else '.'}"
    for view, zeta in zip(theta, real("zeta_1 zeta_2") if noisy else [0], strict=False):
        yield Equation(view, shared + zeta)
    means = _means(problem)
    centred = problem.model.centering != "none"
    for view, average in zip(theta[: 1 + noisy], means, strict=False):
        if centred:
            yield Equation(average, mean(SIGMA(view)))
    gain = gains(theta, means)
    yield Equation(real("alpha"), gain[0])
    if noisy:
        yield Equation(real("beta"), gain[1])
    else:
        beta = alpha
    keep = kept_by(problem, m)
    yield Equation(real("g"), keep * tau * (q / residual * mean(e * (alpha + beta)) - mean(c * (alpha + beta))))
    outputs = [SIGMA(each) - average for each, average in zip(theta, means, strict=True)]
    slopes = [SLOPE(each) for each in theta]
    own = {(i, j): mean((alpha, beta)[i] * (alpha, beta)[j]) for i in (0, 1) for j in (0, 1)}
    Lambda = diffusion(tau**2 / m, keep, noise, mean, own, [outputs] * 2, [slopes] * 2)
    yield Equation(real("Lambda"), Lambda)
    if closed := closed_forms(problem, noise, table):
        for k, each in enumerate(closed.gains):
            yield Equation(real("g" if one else f"g_{k + 1}"), tidy(-keep * tau * each, closed.overlaps), closed=True)
        Lambda = closed_diffusion(closed, tau**2 / m, keep, noise)
        yield Equation(real("Lambda"), tidy(Lambda, closed.overlaps), closed=True)


def _with_velocity(problem: Problem, tau: Any, m: Any, table: Table) -> Iterator[Equation | str]:
    """Weights with a velocity that lasts; docs/theory/model.md."""
    one, noisy = len(problem.features) == 1, problem.augmentation is not None
    q, u, g, w, p, growth, e, alpha, beta = real("q u g w p gamma_w e alpha beta")
    rate = table.known("b", "model.momentum_rate", problem.model.momentum_rate)
    pull = 0 if problem.prior.name == "none" else tau * FORCE(w)
    drift = growth * w - (u * g if one else dot(u, g)) - pull - rate * p
    yield Equation(r"\mathrm dp", rf"\left({latex_of(drift)}\right) \mathrm dt + \sqrt\Lambda\,\mathrm dB")
    yield Equation(r"\mathrm dw", rf"{latex_of(rate)} \left(p - E[w p]\,w\right) \mathrm dt")
    along = mean(e * (alpha + beta)) if noisy else 2 * mean(e * alpha)
    own = mean(alpha * real("zeta_1") + beta * real("zeta_2")) if noisy else 0
    scale = kept_by(problem, m) * tau
    yield Equation(growth, scale * along / sp.sqrt(1 - (q**2 if one else dot(q, q))) + scale * own)
