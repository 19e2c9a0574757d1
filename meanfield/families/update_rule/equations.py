"""Equations of an update rule: its step, the averages of the limit, and the order parameters.

Source: update_rules.md, eq-rule-step to eq-rule-ode, and section 11. Indices k, l and i count students, j features, b
samples that functions see at once; superscripts count kinds of samples and their views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, entry, expectation, index, latex_of, mean, rate_of, total
from meanfield.explanation.weight_equations import FORCE, force_line
from meanfield.families.update_rule.kinds import Kind
from meanfield.families.update_rule.places import FEATURES, names_of_mean, places_of
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.symbols import Names, Numbers, called, data_rows, noises, under, values

LONGEST = 12
"""Largest number of values of a function that are printed one by one."""

FIELDS = (
    r"A sample shows the fields $y_j = u_j \cdot x/\sqrt N$ of features and $s_k = w_k \cdot x/\sqrt N$ of students; "
    r"averages are over samples at the present $R = W^{\mathsf T} U/N$ and $Q = W^{\mathsf T} W/N$."
)
RESTORED = {
    "sphere": r"$S_{kk} = \Psi_{kk}/(2 Q_{kk})$, 0 beside the diagonal: each goes back to its length.",
    "gram_schmidt": r"$S_{kl} = \Psi_{kl}$ above the diagonal, $\Psi_{kk}/2$ on it, 0 below: they are made orthonormal "
    "one after the other.",
    "polar": r"$S = \Psi/2$: they are made orthonormal, all alike.",
}


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    names = Names(problem, table)
    numbers = data_rows(names)
    yield Section("Step", [*_step(names, numbers), force_line(problem.prior, table)])
    yield Section("Fields", list(_fields(names, numbers)))
    yield Section("Order parameters", list(_rates(names, numbers)))
    yield Section("Coordinates of the students, given those of the features", list(_coordinates(names)))


def _step(names: Names, numbers: Sequence[Numbers]) -> Iterator[Equation | str]:
    """Step of all kinds of samples, and the functions of each."""
    problem, N, b = names.problem, entry("N"), index("b")
    yield FIELDS
    groups = [(name, each) for name, each in problem.vectors.items() if name != FEATURES]
    if problem.groups is not None:
        told = (f"those from {each.start - names.M + 1} to {each.stop - names.M} are {name}" for name, each in groups)
        yield f"Students and their fields have the names of groups: {', '.join(told)}."
    if any(kind.views > 1 for kind in names.kinds) or len(names.kinds) > 1:
        yield "Superscripts count kinds of samples and their views; steps that are not said are 0."
    for number, kind in enumerate(names.kinds):
        yield from _functions(names, number, kind)
    w, move = entry("w", *names.k), sp.S.Zero
    for number, _, (tag, samples) in names.inputs():
        m, x = numbers[number].m, entry(under("x", tag), b)
        F = entry(under("F", tag), *names.k, b)
        if samples > 1:
            F = entry(under("F", tag), b, *names.k)
            if m != 1:
                terms = latex_of(x * F)
                yield rf"The sum of ${terms}$ is over a group of {samples} samples, and ${latex_of(m)}$ such groups."
        move += total(x * F, b, samples if samples > 1 else m) / (m * sp.sqrt(N))
    pull = 0 if problem.prior.name == "none" else FORCE(w) / N
    yield Equation(rf"\tilde w{'_k' if names.k else ''}", w + move - pull)
    if any(kind.moves for kind in names.kinds):
        yield r"Besides means of $Z B/N$ over samples are added, with $Z = (U, W)$."
    if any(kind.side for kind in names.kinds):
        yield r"Side variables $v$ move by means over samples, $v \leftarrow v + H/N$."


def _functions(names: Names, number: int, kind: Kind) -> Iterator[Equation | str]:
    """Functions of a kind of sample, where they are arithmetic, and else their names."""
    problem, tag = names.problem, names.tag(number)
    for name, each in zip(kind.mean_names, kind.means, strict=True):
        letters = names.letters(number, names_of_mean(problem, kind, each.view), each.view)
        found = values(names, each.what, each.function, letters)
        if found is None or found.size > LONGEST:
            names.table.named(latex_of(entry(under(name, tag))), each.what, called(problem, each.what))
            continue
        for place in np.ndindex(found.shape):
            yield Equation(entry(under(name, tag), *(i + 1 for i in place)), mean(found[place]))
    letters = names.letters(number, places_of(problem, kind).names)
    uses = [(under("F", names.tag(number, view)), use) for view, gains in enumerate(kind.gains) for use in gains]
    for symbol, use in [*uses, *((under("B", tag), use) for use in kind.moves)]:
        found = values(names, use.what, use.function, letters)
        students = [k - names.M + 1 for k in use.students]
        rows = [i + 1 for i in use.vectors] if len(use.vectors) else [b + 1 for b in range(kind.samples)]
        several, moves = len(use.vectors) > 0 or kind.samples > 1, symbol[0] == "B"
        if found is None or found.size > LONGEST:
            spans = [rows] * several + [students] * (names.K > 1 or moves)
            below = ", ".join(str(each[0]) + rf" \dots {each[-1]}" * (len(each) > 1) for each in spans)
            label = latex_of(entry(symbol)) + (f"_{{{below}}}" if below else "")
            names.table.named(label, use.what.partition(",")[0], called(problem, use.what))
            continue
        for row, value in zip(rows, found.reshape(len(rows), len(students)), strict=True):
            for k, each in zip(students, value, strict=True):
                at = ((row,) if several else ()) + ((k,) if names.K > 1 or moves else ())
                yield Equation(entry(symbol, *at), each)


def _side_rates(names: Names, number: int, kind: Kind) -> Iterator[Equation]:
    """Rates of the side variables that move with a kind of sample."""
    letters = names.letters(number, places_of(names.problem, kind).names) if kind.side else {}
    for name in kind.side:
        side = names.problem.side[name]
        found = values(names, f"side.{name}.step", side.function, letters) if side.at_hand else None
        if found is None:
            names.table.named(rf"H_{{{latex_of(entry(name))}}}", f"side.{name}.step", side.step)
        value = mean(entry(f"H_{name}")) if found is None else mean(found[()])
        yield Equation(rate_of(entry(name)), value)


def _fields(names: Names, numbers: Sequence[Numbers]) -> Iterator[Equation | str]:
    """Law of the fields given hidden variables; update_rules.md, eq-rule-fields and section 11."""
    spectrum = names.problem.data.spectrum is not None
    yield r"Given hidden variables the fields $\psi = (y, s)$ are Gaussian; $G = (I, R^{\mathsf T}; R, Q)$."
    if any(kind.scales_noise for kind in names.kinds):
        yield r"Of a sample $\varsigma$ multiplies the noise: its scale, or the deviation of its class."
    if spectrum:
        yield (
            r"$G^{(\rho)}$ is $G$ of coordinates with the eigenvalue $\rho$ and $\psi_\rho$ are their fields, per "
            r"share of them; over the spectrum $G = \langle G^{(\rho)} \rangle$ and "
            r"$\hat G = \langle \rho\,G^{(\rho)} \rangle$."
        )
    G, beside = (entry("Ghat"), sp.Symbol(r"\hat G_\perp")) if spectrum else (entry("G"), sp.Symbol(r"G_\perp"))
    for number, kind in enumerate(names.kinds):
        psi = [
            rf"\psi^{{({names.tag(number, view)})}}" if names.tag(number, view) else r"\psi"
            for view in range(kind.views)
        ]
        signal = r"G\,(c, 0)^{\mathsf T}" if kind.along.start < names.M else r"G\,(0, c)^{\mathsf T}"
        for first, p in enumerate(numbers[number].p):
            along = (
                p * (entry("varsigma") if kind.scales_signal else 1) * sp.Symbol(signal) if kind.along else sp.S.Zero
            )
            yield Equation(rf"E[{psi[first]} | c]", along)
            for second in range(first, kind.views):
                _, white, apart = noises(kind, numbers[number], first, second)
                same = "" if first == second else f", {psi[second]}"
                yield Equation(rf"\mathrm{{Cov}}[{psi[first]}{same} | c]", white * G + apart * beside)
                if spectrum:
                    rest = sp.Symbol(r"\left(\rho\,G^{(\rho)} - G^{(\rho)}_{\cdot U} \hat G_{U \cdot}\right) \Pi")
                    of_node = white * entry("rho") * entry("G__rho") + apart * rest
                    left = rf"\mathrm{{Cov}}[{{{psi[first]}}}_\rho, {psi[second]} | c]"
                    yield Equation(left, of_node)
    if any(kind.projected for kind in names.kinds):
        hat = (
            r"$\hat G_\perp = \Pi^{\mathsf T} \hat G\,\Pi$, where $\Pi$ takes what is along features from all vectors."
        )
        yield hat if spectrum else r"$G_\perp$ is $Q - R R^{\mathsf T}$ for students, and 0 for features."


def _diffusion(names: Names, numbers: Sequence[Numbers]) -> Any:
    """Lambda; update_rules.md, eq-rule-averages."""
    found = sp.S.Zero
    for number, first, one in names.inputs():
        kind = names.kinds[number]
        for other, second, two in names.inputs():
            if other == number:
                C = noises(kind, numbers[number], first, second)[0]
                b, scale = (index("b"),) * (kind.samples > 1), entry("varsigma") ** 2 if kind.scales_noise else 1
                F = [entry(under("F", each.tag), *b, *at) for each, at in ((one, names.k), (two, names.other))]
                average = mean(scale * F[0] * F[1])
                found += C / scale / numbers[number].m * (total(average, b[0], kind.samples) if b else average)
    return found


def _rates(names: Names, numbers: Sequence[Numbers]) -> Iterator[Equation | str]:
    """Equations of R and Q, entry by entry; update_rules.md, eq-rule-ode and eq-rule-spectrum-ode."""
    problem, k, m, j, i = names.problem, names.k, names.other, names.j, index("i")
    prior, at = problem.prior, "__rho" if problem.data.spectrum is not None else ""
    Lambda, R, Q = entry("Lambda", *k, *m), entry(f"R{at}", *k, *j), entry(f"Q{at}", *k, *m)
    yield Equation(Lambda, _diffusion(names, numbers))
    inputs = [each for _, _, each in names.inputs()]
    of_R = sum(each.times((f"y{at}", *j), ("F", *k)) for each in inputs)
    of_Q = sum(each.times((f"s{at}", *k), ("F", *m)) + each.times((f"s{at}", *m), ("F", *k)) for each in inputs)
    of_Q += (entry("rho") if at else 1) * Lambda
    if prior.name in ("none", "l2"):
        strength = 0 if prior.name == "none" else names.table.known("lambda", "prior.strength", prior.strength)
        of_R, of_Q = of_R - strength * R, of_Q - 2 * strength * Q
    else:
        wk, wl, u = entry("w", *k), entry("w", *m), entry("u", *j)
        of_R -= expectation(u * FORCE(wk))
        of_Q -= expectation(wk * FORCE(wl)) + expectation(wl * FORCE(wk))
    if any(kind.moves for kind in names.kinds):
        yield r"$\bar B = \langle B \rangle$ is summed over kinds of samples; rows, as those of $G$, count all vectors."
        n, first, second = names.M + names.K, names.M + (k or (1,))[0], names.M + (m or (1,))[0]

        def along(row: Any, student: Any) -> Any:
            return total(entry(f"G{at}", row, i) * entry("Bbar", i, student), i, n)

        of_R += along(*(j or (1,)), *(k or (1,)))
        of_Q += along(first, *(m or (1,))) + along(second, *(k or (1,)))
    restored = {name: each for name, each in problem.constraints if name != "none"}
    if restored:
        Psi = entry(f"Psi{at}", *k, *m)
        yield Equation(Psi, of_Q)
        for name, each in restored.items():
            of = f"students {each.start + 1} to {each.stop}: " if len(each) < names.K else ""
            yield f"After a step, {of}{RESTORED[name]}"
        other = (i,) * bool(k)
        of_R -= total(entry("S", *other, *k) * entry(f"R{at}", *other, *j), i, names.K)
        back = entry("S", *other, *m) * entry(f"Q{at}", *k, *other) + entry("S", *other, *k) * entry(
            f"Q{at}", *other, *m
        )
        of_Q = Psi - total(back, i, names.K)
        if at:
            yield r"$\Psi$ and $Q$ are averages of $\Psi^{(\rho)}$ and $Q^{(\rho)}$ over the spectrum."
    if names.M:
        yield Equation(rate_of(R), of_R)
    yield Equation(rate_of(Q), of_Q)
    for number, kind in enumerate(names.kinds):
        yield from _side_rates(names, number, kind)
    if prior.name not in ("none", "l2"):
        yield "Averages of the prior ask for the density of the weights."


def _coordinates(names: Names) -> Iterator[Equation | str]:
    """Weights at a coordinate; update_rules.md, eq-rule-sde and eq-rule-spectrum-sde."""
    n, spectrum = names.M + names.K, names.problem.data.spectrum is not None
    moves = [sp.MatrixSymbol(r"\bar B", n, names.K)] * any(kind.moves for kind in names.kinds)
    beside = spectrum and any(kind.projected for kind in names.kinds)
    G = sp.MatrixSymbol(r"\hat G" if spectrum else "G", n, n)

    def times_F(of: str) -> Any:
        return sp.MatrixSymbol(rf"\langle {of} F^{{\mathsf T}} \rangle", n, names.K)

    if not spectrum:
        yield r"With $z = (u, w)$, $\psi = (y, s)$ and $G = \langle z z^{\mathsf T} \rangle$, summed over inputs:"
        yield Equation(r"\gamma", sp.MatAdd(G.I * times_F(r"\psi"), *moves))
        drift = r"z \cdot \gamma_k"
    else:
        yield r"With $z = (u, w)$, $E[\psi | c] = G\,d$ and $\xi = \psi - E[\psi | c]$, summed over inputs:"
        if not beside:
            yield Equation(r"\hat\gamma", G.I * times_F(r"\xi"))
        yield Equation(r"\gamma", sp.MatAdd(times_F("d"), *moves))
        drift = (
            r"\langle C_z C^{+} \xi F_k \rangle" if beside else r"\rho\,z \cdot \hat\gamma_k"
        ) + r" + z \cdot \gamma_k"
    if beside:
        yield (
            r"$C = \mathrm{Cov}[\psi | c]$ and $\xi$ are of all views of a sample, $C_z$ is the row of "
            r"$\mathrm{Cov}[\psi_\rho, \psi | c]$ of an input with $z$ for $G^{(\rho)}$, $C^{+}$ is the pseudoinverse."
        )
    drift += r" - \varphi(w_k)" + r" - (w S)_k" * any(name != "none" for name, _ in names.problem.constraints)
    noise = r"\sqrt\rho\," * spectrum + r"\mathrm d\beta_k"
    yield Equation(r"\mathrm dw_k", rf"\left[ {drift} \right] \mathrm dt + {noise}")
    yield Equation(r"\mathrm d\beta_k \mathrm d\beta_l/\mathrm dt", r"\Lambda_{kl}")
