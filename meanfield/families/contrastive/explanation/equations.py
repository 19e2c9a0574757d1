"""Equations of a contrastive problem of one channel: the step, g and Lambda, the density, and the overlaps.

Source: theory.md, section 2; docs/theory/model.md, density.md and order_parameters.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, dot, latex_of, mean, real, rounded, tidy
from meanfield.explanation.weight_equations import (
    FORCE,
    SIGMA,
    SLOPE,
    activation_lines,
    density_section,
    force_line,
    overlap_section,
)
from meanfield.families.contrastive.explanation.closed_forms import closed_forms
from meanfield.families.contrastive.problem import Problem, check_one_channel

DATA = (
    r"A sample $x = U c/\sqrt N + a$ has hidden variables $c$, and noise $a$ of variance 1 orthogonal to the features."
)
VIEWS = (
    r"Its views $x_\ell = x + \gamma_\ell$, $\ell = 1, 2$, have noise of the covariance $v_{\ell\ell'}$ in each "
    r"coordinate; $z_\ell = w \cdot x_\ell/\sqrt N$ and $y_\ell = \sigma(z_\ell)$."
)
NO_VIEWS = r"Both views are the sample itself; $z = w \cdot x/\sqrt N$ and $y = \sigma(z)$."
NOISE = (
    r", and over $\zeta \sim \mathcal N(0, V)$, with $V_{\ell\ell'} = v_{\ell\ell'}$ "
    r"and $v_{12} = \rho\sqrt{v_{11} v_{22}}$."
)
MEANS = {"population": "the mean over all samples", "batch": "the mean over the batch"}


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    check_one_channel(problem, "equations to print")
    model, features = problem.model, len(problem.features)
    tau = table.known("tau", "model.learning_rate", model.learning_rate)
    m = table.known("m", "model.batch_size", model.batch_size)
    noise = noise_of(problem, table)
    laws_of(problem, table)
    yield Section("Step", [*_data_lines(problem, table), *_step_lines(problem, tau, m, table)])
    if model.momentum:
        tau = tau / (1 - table.known("mu", "model.momentum", model.momentum))
    yield Section(
        r"Drift gain and diffusion of the limit $N \to \infty$", list(_closure(problem, tau, m, noise, table))
    )
    if model.momentum_rate is None:
        yield density_section(problem.prior, tau, features)
        yield overlap_section(problem.prior, tau, features)
    else:
        yield Section("Weights and velocities", list(_with_velocity(problem, tau, table)))


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
    """Say what is random in data."""
    for k, feature in enumerate(problem.features):
        index = f"_{k + 1}" * (len(problem.features) > 1)
        if feature.hidden is not None:
            table.part(f"c{index}", f"features[{k}].hidden", feature.hidden)
        table.part(f"u{index}", f"features[{k}].coordinate", feature.coordinate)
    if problem.hidden is not None:
        table.part("c", "hidden", problem.hidden)


def gains(views: Sequence[Any], means: Sequence[Any]) -> tuple[Any, Any]:
    """Gains alpha and beta of a sample, from the pre-activations of its views and the means of its outputs."""
    first, second = views
    return (SIGMA(second) - means[1]) * SLOPE(first), (SIGMA(first) - means[0]) * SLOPE(second)


def _data_lines(problem: Problem, table: Table) -> Iterator[Equation | str]:
    yield f"{DATA} {NO_VIEWS if problem.augmentation is None else VIEWS}"
    yield from activation_lines(problem.model, table)
    yield force_line(problem.prior, table)


def _means(problem: Problem) -> tuple[Any, Any]:
    """Symbols of what is subtracted from outputs."""
    if problem.model.centering == "none":
        return sp.S.Zero, sp.S.Zero
    return (real("ybar"),) * 2 if problem.augmentation is None else real("ybar_1 ybar_2")


def _step_lines(problem: Problem, tau: Any, m: Any, table: Table) -> Iterator[Equation | str]:
    """The step, theory.md, section 1."""
    model, noisy = problem.model, problem.augmentation is not None
    N, w, velocity = real("N w v")
    b = sp.Symbol("b", integer=True)
    if model.centering != "none":
        yield rf"Of the outputs $\bar y$ is subtracted, {MEANS[model.centering]}."
    alpha, beta = gains(real("z_1 z_2") if noisy else [real("z")] * 2, _means(problem))
    along = [sp.IndexedBase(name, real=True)[b] for name in ("alpha", "x_1" if noisy else "x", "beta", "x_2")]
    yield Equation(real("alpha"), alpha)
    if noisy:
        yield Equation(real("beta"), beta)
    samples = along[0] * along[1] + (along[2] * along[3] if noisy else 0)
    move = (1 if noisy else 2) * tau / (m * sp.sqrt(N)) * sp.Sum(samples, (b, 1, m))
    move -= 0 if problem.prior.name == "none" else tau / N * FORCE(w)
    if model.momentum_rate is not None:
        rate = table.known("b", "model.momentum_rate", model.momentum_rate)
        yield Equation("v", (1 - rate / N) * velocity + rate / N * sp.Symbol("Delta"), r"\leftarrow")
        yield Equation(r"\Delta", move)
    elif model.momentum:
        share = table.known("mu", "model.momentum", model.momentum)
        yield Equation("v", share * velocity + move, r"\leftarrow")
    else:
        yield Equation(r"\tilde w", w + move)
    if model.momentum or model.momentum_rate is not None:
        yield Equation(r"\tilde w", w + velocity)
    yield Equation("w", r"\sqrt N\,\tilde w/|\tilde w|", r"\leftarrow")
    if model.average_rate is not None:
        rate, average = table.known("a", "model.average_rate", model.average_rate), sp.Symbol("w'")
        yield Equation("w'", average + rate / N * (w - average), r"\leftarrow")


def _closure(problem: Problem, tau: Any, m: Any, noise: Sequence[Any], table: Table) -> Iterator[Equation | str]:
    """Gain g and diffusion Lambda as averages, and in closed form where there is one; theory.md, section 2."""
    noisy, one = problem.augmentation is not None, len(problem.features) == 1
    c, q, e, alpha, beta = real("c q e alpha beta")
    v11, v22, v12 = noise
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
    batch = problem.model.centering == "batch"
    keep = 1 - 1 / sp.sympify(m) if batch else sp.S.One
    yield Equation(real("g"), keep * tau * (q / residual * mean(e * (alpha + beta)) - mean(c * (alpha + beta))))
    outputs = [SIGMA(each) - average for each, average in zip(theta, means, strict=True)]
    slopes = [SLOPE(each) for each in theta]
    shown = [alpha**2, beta**2, alpha * beta]

    def squares(average: Any, products: Sequence[Any], outputs: Sequence[Any], slopes: Sequence[Any]) -> Any:
        apart = [average(outputs[i] ** 2) * average(slopes[1 - i] ** 2) for i in (1, 0)]
        apart.append(average(outputs[0] * outputs[1]) * average(slopes[0] * slopes[1]))
        factors = 1 + v11, 1 + v22, 2 * (1 + v12)
        own = sum(factor * average(each) for factor, each in zip(factors, products, strict=True))
        others = sum(factor * each for factor, each in zip(factors, apart, strict=True)) if batch else 0
        return tau**2 / m * (keep**2 * own + keep / m * others)

    yield Equation(real("Lambda"), squares(mean, shown, outputs, slopes))
    closed = closed_forms(problem, noise, table)
    if closed is None:
        return
    polynomial, average, overlaps = closed
    views = real("Theta_1 Theta_2") if noisy else [real("Theta_1")] * 2
    sigma = [sum(rounded(a) * view**k for k, a in enumerate(polynomial)) for view in views]
    slope = [sp.diff(each, view) for each, view in zip(sigma, views, strict=True)]
    averages = [average(each) if centred else 0 for each in sigma]
    fixed = real("f_1 f_2")
    agreement = average((sigma[0] - fixed[0]) * (sigma[1] - fixed[1]))
    for k, overlap in enumerate(overlaps):
        g = -keep * tau * sp.diff(agreement, overlap).subs(dict(zip(fixed, averages, strict=True)))
        yield Equation(real("g" if one else f"g_{k + 1}"), tidy(g, overlaps), closed=True)
    centred_outputs = [each - average for each, average in zip(sigma, averages, strict=True)]
    products = [(centred_outputs[1] * slope[0]) ** 2, (centred_outputs[0] * slope[1]) ** 2]
    products.append(centred_outputs[0] * centred_outputs[1] * slope[0] * slope[1])
    yield Equation(real("Lambda"), tidy(squares(average, products, centred_outputs, slope), overlaps), closed=True)


def _with_velocity(problem: Problem, tau: Any, table: Table) -> Iterator[Equation | str]:
    """Weights with a velocity that lasts; docs/theory/model.md."""
    one = len(problem.features) == 1
    q, u, g, w, p, growth, e, alpha = real("q u g w p gamma_w e alpha")
    rate = table.known("b", "model.momentum_rate", problem.model.momentum_rate)
    pull = 0 if problem.prior.name == "none" else tau * FORCE(w)
    drift = growth * w - (u * g if one else dot(u, g)) - pull - rate * p
    yield Equation(r"\mathrm dp", rf"\left({latex_of(drift)}\right) \mathrm dt + \sqrt\Lambda\,\mathrm dB")
    yield Equation(r"\mathrm dw", rf"{latex_of(rate)} \left(p - E[w p]\,w\right) \mathrm dt")
    if problem.augmentation is None:
        yield Equation(growth, 2 * tau * mean(e * alpha) / sp.sqrt(1 - (q**2 if one else dot(q, q))))
    else:
        yield r"Steps move a weight by $\gamma_w$ along itself on average."
