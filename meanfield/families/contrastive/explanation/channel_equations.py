"""Equations of several channels: gains, averages over a batch, weights, and overlaps.

Source: several_channels.md, sections 1, 2 and 5. Indices k, j and l count channels, f features, b samples of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, entry, expectation, index, mean, named, rate_of, tidy, total
from meanfield.explanation.weight_equations import FORCE, SIGMA, SLOPE, is_linear, with_slope
from meanfield.families.contrastive.explanation.closed_forms import closed_diffusion, closed_forms, kept_by
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.formulas import PENALTIES
from meanfield.ingredients.schedules.shapes import Schedule

PENALTY = named("psi", r"\psi"), named("penalty_slope", r"\psi'")

LIMIT = (
    r"Averages are over batches, of which a sample has $\Theta^{(\ell)}_k = c \cdot q_k + e_k + \zeta^{(\ell)}_k$ with "
    r"$e \sim \mathcal N(0, M - q^{\mathsf T} q)$. Its gains are those of the step, with $\Theta$ for $z$."
)
NOISE = (
    r" Noise of views has $\mathrm{Cov}[\zeta^{(\ell)}_k, \zeta^{(\ell')}_l] = v_{\ell\ell'} M_{kl}$, "
    r"$\mathrm{Cov}[\eta^{(\ell)}_f, \eta^{(\ell')}_g] = v_{\ell\ell'} \delta_{fg}$ and "
    r"$\mathrm{Cov}[\eta^{(\ell)}_f, \zeta^{(\ell')}_k] = v_{\ell\ell'} q_{fk}$, $v_{12} = \rho\sqrt{v_{11} v_{22}}$."
)


def couples(problem: Problem) -> bool:
    """Whether a penalty couples the samples of a batch."""
    strength = problem.decorrelation_strength
    return isinstance(strength, Schedule) or strength > 0


def gain_lines(problem: Problem, m: Any, table: Table) -> Iterator[Equation | str]:
    """Gains of a sample in its batch."""
    b, k, j = index("b k j")
    views = ("_1", "_2") if problem.augmentation else ("",)
    centred = problem.model.centering != "none"
    for view in views:
        average = entry(f"ybar{view}", k) if centred else 0
        yield Equation(entry(f"yhat{view}", k, b), SIGMA(entry(f"z{view}", k, b)) - average)
    penalty, coupled = problem.decorrelation, couples(problem)
    if penalty is not None and coupled:
        given = "decorrelation.penalty", penalty.penalty, "decorrelation.parameters", penalty.parameters
        yield from with_slope(PENALTY, *given, table, PENALTIES, "_psi")
        strength = table.known("lambda_psi", "decorrelation.strength", penalty.strength)
        product = entry(f"yhat{views[0]}", k, b) * entry(f"yhat{views[-1]}", j, b)
        yield Equation(entry("C", k, j), total(product, b, m) / m)
        yield r"With $A_{kk} = 1$, and for $k \ne j$"
        yield Equation(entry("A", k, j), -strength * PENALTY[1](entry("C", k, j)))
    for name, view, other, at in zip(("alpha", "beta"), views, views[::-1], ((k, j), (j, k)), strict=False):
        outputs = entry(f"yhat{other}", j, b) * entry("A", *at) if coupled else entry(f"yhat{other}", k, b)
        slope = SLOPE(entry(f"z{view}", k, b))
        yield Equation(entry(name, k, b), slope * total(outputs, j, problem.model.channels))


def sections(problem: Problem, tau: Any, m: Any, noise: Sequence[Any], table: Table) -> Iterator[Section]:
    """Limit of several channels."""
    yield Section(r"Averages of the limit $N \to \infty$", list(_averages(problem, tau, m, noise, table)))
    yield Section("Weights at a coordinate, given its features $u$", list(_weights(problem, tau, table)))
    if problem.model.momentum_rate is None:
        yield Section("Order parameters", list(_overlaps(problem, tau)))


def _feature(problem: Problem) -> tuple[Any, ...]:
    return (index("f"),) * (len(problem.features) > 1)


def _averages(problem: Problem, tau: Any, m: Any, noise: Sequence[Any], table: Table) -> Iterator[Equation | str]:
    """P, D and Lambda over a batch, and in closed form where nothing but centring couples it."""
    noisy, f, (k, j) = problem.augmentation is not None, _feature(problem), index("k l")
    yield LIMIT + NOISE if noisy else LIMIT.replace(r" + \zeta^{(\ell)}_k", "").replace(r"^{(\ell)}", "")
    if problem.model.centering == "population":
        for view in ("_1", "_2") if noisy else ("",):
            yield Equation(entry(f"ybar{view}", k), mean(SIGMA(entry(f"Theta{view}", k))))
    c, alpha, other = entry("c", *f), entry("alpha", k), entry("alpha", j)
    P, D, Lambda = entry("P", *f, k), entry("D", k, j), entry("Lambda", k, j)
    if noisy:
        beta, last = entry("beta", k), entry("beta", j)
        of_features = alpha * (c + entry("eta_1", *f)) + beta * (c + entry("eta_2", *f))
        of_weights = alpha * entry("Theta_1", j) + beta * entry("Theta_2", j)
        products = [alpha * other, beta * last, alpha * last + beta * other]
        squares = sum((1 + v) * mean(each) for v, each in zip(noise, products, strict=True))
    else:
        of_features, of_weights, squares = 2 * alpha * c, 2 * alpha * entry("Theta", j), 4 * mean(alpha * other)
    yield Equation(P, mean(of_features))
    yield Equation(D, mean(of_weights))
    yield Equation(Lambda, tau**2 / m * squares)
    closed = None if couples(problem) else closed_forms(problem, noise, table)
    if closed is None:
        return
    keep, q = kept_by(problem, m), closed.overlaps[: 2 * len(closed.gains) : 2]
    gain = [closed.outputs[0][1 - i] * closed.slopes[0][i] for i in (0, 1)]
    inward, mixed = (closed.average(gain[0] * each[0] + gain[1] * each[1]) for each in closed.theta)
    along = inward - sum(each * of for each, of in zip(closed.gains, q, strict=True))
    yield r"In closed form, with $q_k = q_l$ and $M_{kl} = 1$ where $k = l$:"
    for n, (each, of) in enumerate(zip(closed.gains, q, strict=True)):
        found = tidy(keep * (each + of * along), closed.overlaps)
        yield Equation(entry("P", *((n + 1,) * len(f)), k), found, closed=True)
    yield Equation(D, tidy(keep * mixed, closed.overlaps), closed=True)
    yield Equation(Lambda, tidy(closed_diffusion(closed, tau**2 / m, keep, noise), closed.overlaps), closed=True)


def _weights(problem: Problem, tau: Any, table: Table) -> Iterator[Equation | str]:
    """Drift and noise of the weights, or of their velocities; several_channels.md, section 5."""
    f, (k, j), d2, free = _feature(problem), index("k l"), problem.model.channels, problem.prior.name == "none"
    lasting, d1 = problem.model.momentum_rate, len(problem.features)
    q, other, P, H = entry("q", *f, k), entry("q", *f, j), entry("P", *f, k), entry("H", k, j)

    def of_features(terms: Any) -> Any:
        return total(terms, f[0], d1) if f else terms

    yield Equation(r"(H K)_{kl}", entry("D", k, j) - of_features(P * other))
    yield Equation(entry("K", k, j), entry("M", k, j) - of_features(q * other))
    yield Equation(entry("a", *f, k), tau * P - tau * total(H * other, j, d2))
    drift = of_features(entry("u", *f) * entry("a", *f, k)) + tau * total(H * entry("w", j), j, d2)
    drift -= 0 if free else tau * FORCE(entry("w", k))
    if lasting is None:
        n = tau * entry("D", k, k) + entry("Lambda", k, k) / 2
        yield Equation(entry("n", k), n - (0 if free else tau * entry("r", k)))
        yield Equation(entry("Gamma", k), drift - entry("n", k) * entry("w", k))
        yield Equation(r"\mathrm dw_k", r"\Gamma_k\,\mathrm dt + \mathrm dB_k")
    else:
        b, p, w = table.known("b", "model.momentum_rate", lasting), entry("p", k), entry("w", k)
        yield Equation(entry("Gamma", k), drift - b * p)
        yield Equation(r"\mathrm dp_k", r"\Gamma_k\,\mathrm dt + \mathrm dB_k")
        yield Equation(r"\mathrm dw_k/\mathrm dt", b * p - b * expectation(w * p) * w)
    yield r"The noise has $\mathrm d\langle B_k, B_l \rangle = \Lambda_{kl}\,\mathrm dt$" + (
        "." if free or lasting else r", and $r_k = E[w_k\,\varphi(w_k)]$."
    )


def _overlaps(problem: Problem, tau: Any) -> Iterator[Equation | str]:
    """Equations of q and M, which close if the prior is linear; several_channels.md, section 2."""
    f, (k, j) = _feature(problem), index("k l")
    linear = is_linear(problem.prior)
    q, M, D, Lambda = entry("q", *f, k), entry("M", k, j), entry("D", k, j), entry("Lambda", k, j)
    n = [tau * entry("D", i, i) + entry("Lambda", i, i) / 2 if linear else entry("n", i) for i in (k, j)]
    of_q, of_M = tau * entry("P", *f, k) - q * n[0], tau * (D + entry("D", j, k)) + Lambda - M * (n[0] + n[1])
    if not linear:
        force = [FORCE(entry("w", i)) for i in (k, j)]
        of_q -= tau * expectation(entry("u", *f) * force[0])
        of_M -= tau * expectation(entry("w", k) * force[1] + entry("w", j) * force[0])
    yield Equation(rate_of(q), of_q)
    yield Equation(rate_of(M), of_M)
    if not linear:
        yield "The last averages ask for the density: the overlaps do not close."
