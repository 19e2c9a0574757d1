"""Equations of an update rule: its step, the averages of the limit, and the order parameters.

Source: update_rules.md, eq-rule-step to eq-rule-ode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy as sp

from meanfield.errors import InputError
from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, expectation, function_of, latex_of, mean, real, rounded
from meanfield.explanation.weight_equations import FORCE, force_line
from meanfield.families.update_rule.places import squeezed
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import arguments_of

RULES = {
    "hebb": "rate*sign(y)",
    "perceptron": "rate*sign(y)*Heaviside(-s*y)",
    "adatron": "-rate*s*Heaviside(-s*y)",
}
"""Steps of the named rules that are no arithmetic of numbers alone, for one feature and one student."""

FIELDS = (
    r"A sample shows the fields $y_j = u_j \cdot x/\sqrt N$ of features and $s_k = w_k \cdot x/\sqrt N$ of students; "
    r"averages are over samples at the present $R = W^{\mathsf T} U/N$ and $Q = W^{\mathsf T} W/N$."
)
RESTORED = {
    "sphere": r"Each $w_k$ goes back to its length after a step.",
    "gram_schmidt": r"Students are made orthonormal one after the other after a step: $S_{kl} = \Psi_{kl}$ above the "
    r"diagonal, $\Psi_{kk}/2$ on it, 0 below, where $\Psi$ is $\mathrm dQ/\mathrm dt$ without $S$.",
    "polar": r"Students are made orthonormal, all alike, after a step: $S = \Psi/2$, where $\Psi$ is "
    r"$\mathrm dQ/\mathrm dt$ without $S$.",
}


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    data, model = problem.data, problem.model
    given = {
        "draws": problem.draws,
        "side": problem.side or None,
        "data.classes": data.classes,
        "data.scale": data.scale,
        "data.spectrum": data.spectrum,
    }
    for key, value in given.items():
        if value is not None:
            raise InputError(f"{key}: equations are printed without it; remove it, or read docs/theory/update_rules.md")
    m, w = table.known("m", "model.batch_size", model.batch_size), real("w")
    eta, p = table.known("eta", "data.noise", data.noise), table.known("p", "data.observed", data.observed)
    for j, feature in enumerate(problem.features):
        table.part(f"u_{j + 1}", f"features[{j}].coordinate", feature.coordinate)
        if feature.hidden is not None:
            table.part(f"c_{j + 1}", f"features[{j}].hidden", feature.hidden)
    N, b = real("N"), sp.Symbol("b", integer=True)
    shown = sp.Sum(sp.IndexedBase("x", real=True)[b] * sp.IndexedBase("F", real=True)[b], (b, 1, m))
    along = model.at_hand and model.functions.along is not None
    pull = 0 if problem.prior.name == "none" else FORCE(w) / N
    step = [FIELDS, *step_lines(problem, table), force_line(problem.prior, table)]
    step.append(Equation(r"\tilde w", w + shown / (m * sp.sqrt(N)) - pull))
    step += [r"Besides $Z B/N$ is added, with $Z = (U, W)$ and factors $B$ of the rule."] * along
    if model.constraint in RESTORED:
        step.append(RESTORED[model.constraint])
    yield Section("Step", step)
    yield Section("Fields", list(_fields(data.signal, p, eta)))
    yield Section("Order parameters", list(_rates(problem, table, p * eta / m, along)))
    yield Section(
        "Coordinates of the students, given those of the features",
        [
            r"With $z = (u, w)$, $\psi = (y, s)$ and $G = \langle z z^{\mathsf T} \rangle$:",
            Equation(
                r"\mathrm dw_k",
                r"\left[ z \cdot \gamma_k - \varphi(w_k) - (w S)_k \right] \mathrm dt + \mathrm d\beta_k",
            ),
            Equation(r"\gamma", r"G^{-1} \langle \psi F^{\mathsf T} \rangle" + r" + \langle B \rangle" * along),
            Equation(r"\mathrm d\beta_k \mathrm d\beta_l/\mathrm dt", p * eta / m * mean(real("F_k") * real("F_l"))),
        ],
    )


def step_lines(problem: Problem, table: Table) -> Iterator[Equation]:
    """F of the rule, where it is arithmetic, and else its name."""
    model = problem.model
    numbers, path = model.rule_parameters, "model.rule_parameters"
    known = {name: table.known(name, f"{path}.{name}", value, False) for name, value in numbers.items()}
    F = None
    if model.rule in RULES and len(problem.features) == len(problem.students) == 1:
        F = function_of(RULES[model.rule], known | dict(zip("ys", real("y s"), strict=True)), 0)
    elif model.at_hand:
        F = _arithmetic(model.functions.step, known, problem)
    if F is None:
        table.named("F", "model.rule", str(model.rule))
    elif isinstance(F, sp.Expr):
        yield Equation(real("F"), F)
    else:
        yield from (Equation(real(f"F_{k + 1}"), each) for k, each in enumerate(F))


def _arithmetic(step: Callable[..., Any], known: dict[str, Any], problem: Problem) -> Any:
    """F of a function that takes symbols for numbers, if what it then says is what it says of numbers; else None."""
    M, K = len(problem.features), len(problem.students)
    shapes = {"y": (M,), "c": (M,), "s": (K,), "R": (K, M), "Q": (K, K)}
    letters = {name: known.get(name) or _symbols(name, shapes.get(name, ())) for name in arguments_of(step, "step")}
    symbols = sorted(set().union(*(sp.sympify(each).free_symbols for each in letters.values())), key=str)
    point = dict(zip(symbols, np.random.default_rng(0).normal(size=len(symbols)), strict=True))
    at = np.vectorize(lambda each: float(sp.sympify(each).subs(point)), otypes=[float])
    plain = getattr(step, "py_func", step)
    try:
        found = [sp.sympify(each) for each in np.atleast_1d(plain(**letters))]
        found = [each.xreplace({number: rounded(number) for number in each.atoms(sp.Float)}) for each in found]
        same = np.allclose(at(found), plain(**{name: at(each)[()] for name, each in letters.items()}), rtol=1e-12)
    except Exception:  # whatever a function makes of symbols that are no numbers
        return None
    return (found[0] if len(found) == 1 else found) if same else None


def _symbols(name: str, shape: tuple[int, ...]) -> Any:
    """A symbol, or an array of them, which count from 1."""
    shape = squeezed(*shape)
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        found[place] = real(f"{name}_" + "".join(str(i + 1) for i in place) if shape else name)
    return found[()]


def _fields(signal: str, p: Any, eta: Any) -> Iterator[Equation | str]:
    """Law of the fields given hidden variables; update_rules.md, eq-rule-fields."""
    yield r"Given hidden variables the fields $\psi = (y, s)$ are Gaussian; $G = (I, R^{\mathsf T}; R, Q)$."
    G = sp.Symbol("G")
    yield Equation(r"E[\psi | c]", "0" if signal == "none" else rf"{latex_of(p * G)}\,(c, 0)^{{\mathsf T}}")
    if signal == "orthogonal":
        yield Equation(r"\mathrm{Cov}[\psi | c]", p**2 * eta * sp.Symbol("G_perp") + p * (1 - p) * eta * G)
        yield r"$G_\perp$ is $Q - R R^{\mathsf T}$ for students, and 0 for features."
    else:
        yield Equation(r"\mathrm{Cov}[\psi | c]", p * eta * G)


def _rates(problem: Problem, table: Table, noise: Any, along: bool) -> Iterator[Equation | str]:
    """Equations of R and Q, entry by entry; update_rules.md, eq-rule-ode."""
    model, prior, several = problem.model, problem.prior, len(problem.students) > 1
    k, m, j = "k" * several, "l" * several, "j" * (len(problem.features) > 1)

    def entry(name: str, *indices: str) -> Any:
        return real(f"{name}_{{{''.join(indices)}}}" if any(indices) else name)

    Fk, Fl, sk, sl, wk, wl = (entry(name, index) for name in "Fsw" for index in (k, m))
    R, Q, y, u = entry("R", k, j), entry("Q", k, m), entry("y", j), entry("u", j)
    if prior.name in ("none", "l2"):
        strength = 0 if prior.name == "none" else table.known("lambda", "prior.strength", prior.strength)
        lost = [strength * R, 2 * strength * Q]
    else:
        lost = [expectation(u * FORCE(wk)), expectation(wk * FORCE(wl)) + expectation(wl * FORCE(wk))]
    drift = [mean(y * Fk) - lost[0], mean(sk * Fl) + mean(sl * Fk) + noise * mean(Fk * Fl) - lost[1]]
    if along:
        drift[0] += sp.Symbol(rf"(G \langle B \rangle)_{{{j or 'u'}{k}}}")
        drift[1] += sum(sp.Symbol(rf"(G \langle B \rangle)_{{w {a}{b}}}") for a, b in ((k, m), (m, k)))
    back = [sp.S.Zero, sp.S.Zero]
    if model.constraint == "sphere":
        back = [entry("S", k) * R, Q * (entry("S", k) + entry("S", m))]
        length = entry("Q", k, k)
        yield Equation(entry("S", k), drift[1].subs({Fl: Fk, sl: sk, wl: wk, Q: length}) / (2 * length))
    elif model.constraint != "none":
        both = [sp.Symbol(rf"(Q S)_{{{each}}}") for each in (k + m, m + k)]
        back = [sp.Symbol(rf"(S^{{\mathsf T}} R)_{{{k + j}}}"), sum(both)]
    for left, rate, taken in zip((R, Q), drift, back, strict=True):
        if left == Q or problem.features:
            yield Equation(rf"\frac{{\mathrm d{latex_of(left)}}}{{\mathrm dt}}", rate - taken)
    if prior.name not in ("none", "l2"):
        yield "Averages of the prior ask for the density of the weights."
