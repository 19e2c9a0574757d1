"""Equations of a hidden-manifold problem: the step, the fields, the expectations over them, and the order parameters.

Source: hidden_manifold.md, sections 1 to 4 and 6. Matrices are those of students, teachers and columns; expectations
are entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import sympy as sp

from meanfield.explanation.equations import Equation, Section
from meanfield.explanation.formulas import Table, latex_of, rate_of, real
from meanfield.families.hidden_manifold.field_equations import FAST, average_lines, chain_lines, step_lines
from meanfield.families.hidden_manifold.order_parameters.system import columns_of
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import check_averages, check_remembers_nothing, has_fast_means
from meanfield.families.hidden_manifold.wording import latents_in_words

ROUNDING = 1e-13
"""Largest share of the square of f that is 0 to rounding."""

SPECTRUM = (
    r"Along eigenvectors of $F F^{\mathsf T}/N$ with the eigenvalue $\rho$ weights are $S = w F^{\mathsf T}/\sqrt N$; "
    r"$r$, $\sigma$ and $t$ are products of students and columns, of students, and of columns there. "
    r"$\Omega = w w^{\mathsf T}/N$, and $\langle \cdot \rangle_\rho$ is an average over the spectrum. "
)
VELOCITIES = (
    r" Velocities are $p = N \dot w/b_p$, at rest at $t = 0$: $r_p$, $\sigma_p = \langle w p^{\mathsf T} \rangle$ and "
    r"$\sigma_{pp} = \langle p p^{\mathsf T} \rangle$ are their products, so are those of $\Omega$, and fields of "
    r"velocities have $Q^{(p)}$ with those of students, $R^{(p)}$, and $m^{(p)}$ where there are means. Of second "
    r"layers $v_p = N \dot v/b_p$."
)
COLUMNS = {
    False: "Columns are the vectors of the teacher.",
    True: "Columns are the vectors of the teacher (index $T$), and the means of components (index $q$).",
}


class Component(NamedTuple):
    """Numbers of a component of the latents, or their symbols; `label` is its number in LaTeX."""

    label: str
    p: Any
    s: Any
    b: Any
    rest: Any
    square: Any
    constant: Any
    column: bool

    @property
    def number(self) -> str:
        """Its number among columns."""
        return self.label or "1"

    def matrix(self, name: str, rows: int, columns: int, view: str = "") -> Any:
        """A matrix of it."""
        above = ",".join(part for part in (view, self.label) if part)
        return sp.MatrixSymbol(rf"{name}^{{({above})}}" if above else name, rows, columns)


class Sizes(NamedTuple):
    """Numbers of students, teachers and columns."""

    K: int
    M: int
    L: int

    def r(self, of: str = "", whose: str = "") -> Any:
        """Products r, of all columns, the teacher's (T), or the mean of a component; also of velocities (p)."""
        below = "" if of == "T" and self.L == self.M else of
        return sp.MatrixSymbol(f"r{_below(whose + below)}", self.K, self.count(of))

    def t(self, of: str = "", other: str = "") -> Any:
        """Products t of columns."""
        alone = self.L == self.M
        return sp.MatrixSymbol("t" if alone else f"t{_below(of + other)}", self.count(of), self.count(other))

    def count(self, of: str) -> int:
        """Number of the columns."""
        return {"": self.L, "T": self.M}.get(of, 1)


def _below(of: str) -> str:
    return f"_{of}" if of else ""


def _average(matrix: Any) -> Any:
    return sp.MatrixSymbol(rf"\langle {latex_of(matrix)} \rangle_{{\rho}}", *matrix.shape)


def equations_of(problem: Problem, table: Table) -> Iterator[Section]:
    """Equations of a problem; see `Family.equations`."""
    check_averages(problem)
    fast, training = has_fast_means(problem), problem.training
    if fast:
        check_remembers_nothing(training)
    eta = table.known("eta", "training.learning_rate", training.learning_rate)
    eta_v = eta
    if training.output_learning_rate is not None:
        eta_v = table.known("eta_v", "training.output_learning_rate", training.output_learning_rate)
    tau = table.known("tau", "training.batch_size", training.batch_size)
    noise = table.known("sigma_y^2", "training.label_noise", training.label_noise)
    kappa = table.known("kappa", "training.weight_decay", training.weight_decay)
    share, kept, pace = sp.S.One, table.known("mu", "training.momentum", training.momentum), None
    if training.momentum_rate is not None:
        pace = table.known("b_p", "training.momentum_rate", training.momentum_rate)
        share, kept = pace / real("N"), 1 - pace / real("N")
    delta = table.known("delta", "inputs.aspect_ratio", problem.inputs.aspect_ratio)
    components = list(_components(problem, table))
    sizes = Sizes(problem.students, problem.teachers, len(columns_of(problem)[0]))
    yield Section("Step", [*step_lines(problem, (eta, eta_v, tau, noise, kappa, share, kept), table)])
    yield Section("Fields", [*_fields(problem, components, sizes, pace is not None, table)])
    yield Section("Averages over the fields", [*average_lines(problem, noise, sizes.L > sizes.M, fast)])
    if fast:
        yield Section("Means of inputs", [FAST, *chain_lines([each.constant for each in components], eta, tau, noise)])
    longer = 1 / (1 - kept) if pace is None else 1
    rates = eta * longer, eta_v * longer, tau, kappa, delta
    yield Section("Order parameters", [*_order_parameters(components, sizes, rates, pace)])
    yield Section(r"Start, $t = 0$", [*_start(problem, sizes, delta, table)])
    if not fast:
        yield Section("Density of the components S of the weights", [*_density(sizes)])


def _components(problem: Problem, table: Table) -> Iterator[Component]:
    """Components, with rows of the table for their numbers."""
    inputs = problem.inputs
    several = len(inputs.gaussians) > 1
    for key in ("components", "random_means", "latents"):
        if not several and getattr(inputs, key):
            table.named("C", f"inputs.{key}", latents_in_words(inputs))
    table.named(r"\rho", "inputs.spectrum", inputs.eigenvalues.in_words("F F'/N", False))
    column = columns_of(problem)[2]
    for q, ((weight, scale), moments) in enumerate(zip(inputs.gaussians, inputs.moments, strict=True)):
        label = str(q + 1) if several else ""

        def known(name: str, key: str, value: float, label: str = label, signed: bool = False) -> Any:
            return table.known(f"{name}^({label})" if label else name, key, value, positive=not signed)

        p = s = sp.S.One
        key, of = f"inputs.components[{q}]", "inputs.nonlinearity" + f", component {q + 1}" * several
        if several:
            p = known("p", f"{key}.weight", weight)
        if several or scale != 1.0:
            s = known("s", f"{key}.scale" if several else "standard deviation of latents", scale)
        size, square = moments.square, moments.square - moments.mean**2
        rest = max(square - moments.slope**2, 0.0)
        yield Component(
            label,
            p,
            s,
            known("b", f"E[u f(s u)] of {of}", moments.slope, signed=True),
            known("c_*", f"E[f^2] - E[f]^2 - b^2 of {of}", rest if rest > ROUNDING * size else 0.0),
            known("c", f"E[f^2] - E[f]^2 of {of}", square),
            table.known(f"a_{q + 1}", f"E[f(s u)] of {of}", moments.mean, False) if has_fast_means(problem) else 0,
            bool(column[q] >= 0),
        )


def _fields(
    problem: Problem, components: list[Component], sizes: Sizes, lasts: bool, table: Table
) -> Iterator[Equation | str]:
    """Law of the fields, hidden_manifold.md, sections 2 and 4."""
    K, M, _ = sizes
    table.named("T_0", "teacher.overlap", str([[*row] for row in problem.teacher.overlap]))
    has_means = sizes.L > M
    yield SPECTRUM + COLUMNS[has_means] + VELOCITIES * lasts
    for each in components:
        if each.label and has_means:
            yield f"Component {each.label}, with the probability ${latex_of(each.p)}$:"
        yield Equation(each.matrix("T", M, M), each.s**2 * _average(sizes.t("T", "T")))
        for p in ("", "p")[: 1 + lasts]:
            Omega, sigma = (sp.MatrixSymbol(name + _below(p), K, K) for name in ("Omega", "sigma"))
            yield Equation(each.matrix("Q", K, K, p), each.rest * Omega + each.b**2 * _average(sigma))
            yield Equation(each.matrix("R", K, M, p), each.b * each.s * _average(sizes.r("T", p)))
            if each.column:
                mean = each.b / each.s * _average(sizes.r(each.number, p))
                yield Equation(each.matrix("m", K, 1, p or r"\lambda"), mean)
        if each.column:
            yield Equation(each.matrix("m", M, 1, r"\nu"), _average(sizes.t("T", each.number)))


def _order_parameters(
    components: list[Component], sizes: Sizes, rates: tuple[Any, ...], pace: Any
) -> Iterator[Equation | str]:
    """Equations of r, sigma, Omega and v, hidden_manifold.md, sections 1, 2 and 4."""
    eta, eta_v, tau, kappa, delta = rates
    K, M, L = sizes
    rho = real("rho")
    D, B, N = (sp.MatrixSymbol(name, K, L if name == "B" else K) for name in "DBN")
    pull = _sum(each.p * each.b * each.s * each.matrix("A", K, M, "T") for each in components)
    linear = (each.p * (each.rest * delta + each.b**2 * rho) * each.matrix("A", K, K, "S") for each in components)
    yield Equation("D", _sum(linear))
    yield Equation("B" if L == M else "B_T", pull)
    for each in components:
        if each.column:
            yield Equation(f"B_{each.number}", each.p * each.b / each.s * each.matrix("G", K, 1))
    spread = (each.p * (each.rest * rho + each.b**2 * rho**2 / delta) * each.matrix("H", K, K) for each in components)
    yield Equation("N", _sum(spread))
    along = -eta / delta
    yield from _moved(sizes.r(), along * (D * sizes.r() + rho * B * sizes.t()) - eta * kappa * sizes.r(), pace)

    def of_sigma(sigma: Any, p: str) -> Any:
        return along * (D * sigma + rho * B * sizes.r("", p).T) - eta * kappa * sigma

    def of_Omega(Omega: Any, p: str) -> Any:
        moved = []
        for each in components:
            own = each.matrix("A", K, K, "S") * each.matrix("Q", K, K, p)
            own += each.matrix("A", K, M, "T") * each.matrix("R", K, M, p).T
            if each.column:
                own += each.matrix("G", K, 1) * each.matrix("m", K, 1, p or r"\lambda").T
            moved.append(-eta * each.p * own)
        return _sum(moved) - eta * kappa * Omega

    yield from _products(sp.MatrixSymbol("sigma", K, K), "Z", of_sigma, eta**2 / tau * N, pace)
    squares = _sum(each.p * each.square * each.matrix("H", K, K) for each in components)
    yield from _products(sp.MatrixSymbol("Omega", K, K), "Y", of_Omega, eta**2 / tau * squares, pace)
    outputs, v = _sum(each.p * each.matrix("F", K, 1) for each in components), sp.MatrixSymbol("v", K, 1)
    yield from (
        _moved(v, -eta_v * outputs - eta_v * kappa * v, pace) if eta_v != 0 else [Equation(rate_of("v"), sp.S.Zero)]
    )


def _moved(of: Any, drift: Any, pace: Any) -> Iterator[Equation]:
    """What has a drift, at once or by its velocity, which lasts."""
    if pace is None:
        yield Equation(rate_of(of), drift)
        return
    velocity = sp.MatrixSymbol(of.name + _below("p"), *of.shape)
    yield Equation(rate_of(of), pace * velocity)
    yield Equation(rate_of(velocity), drift - pace * velocity)


def _products(of: Any, moved: str, drift: Callable[[Any, str], Any], noise: Any, pace: Any) -> Iterator[Equation]:
    """Products of students with each other, and of those with velocities; `moved` are those of drifts."""
    (Z, Z_p), (of_p, of_pp) = (
        [sp.MatrixSymbol(name + _below(p), *of.shape) for p in whose]
        for name, whose in ((moved, ("", "p")), (of.name, ("p", "pp")))
    )
    yield Equation(moved, drift(of, ""))
    if pace is None:
        yield Equation(rate_of(of), Z + Z.T + noise)
        return
    yield Equation(Z_p.name, drift(of_p, "p"))
    yield Equation(rate_of(of), pace * (of_p + of_p.T))
    yield Equation(rate_of(of_p), pace * (of_pp - of_p) + Z.T)
    yield Equation(rate_of(of_pp), Z_p + Z_p.T - 2 * pace * of_pp + noise)


def _start(problem: Problem, sizes: Sizes, delta: Any, table: Table) -> Iterator[Equation | str]:
    """State at t = 0, hidden_manifold.md, section 2."""
    K, M, L = sizes
    student, inputs = problem.student, problem.inputs
    table.named("v", "student.output_weights", str([*student.output_weights]))
    rho, T = real("rho"), sp.MatrixSymbol("T_0", M, M)
    if L > M:
        coefficients, elsewhere = sp.MatrixSymbol("P", L, M), sp.MatrixSymbol("E", L, L)
        for q, component in enumerate(inputs.mixture):
            mean = [*component.mean] if isinstance(component.mean, tuple) else component.mean
            table.named(rf"\mu_{{{q + 1}}}", f"inputs.components[{q}].mean", str(mean))
            table.named(rf"e_{{{q + 1}}}", f"inputs.components[{q}].mean_elsewhere", f"{component.mean_elsewhere:g}")
        yield (
            r"Rows of $P$ are those of 1 for the teacher, and the coefficients $\mu_q$ of means on it; $E$ has the "
            r"squared norms $e_q^2$ of means elsewhere on its diagonal."
        )
        yield Equation("t", coefficients * T * coefficients.T + elsewhere)
    else:
        yield Equation("t", T)
    if problem.initial is not None:
        yield f"Students start {problem.initial.in_words}."
        return
    X, rest = sp.MatrixSymbol("X", K, M), sp.MatrixSymbol("G_0", K, K)
    if student.initial == "random":
        variance = table.known("w_0^2", "student.variance", problem.student.rest[0, 0])
        yield Equation("G_0", variance * sp.Identity(K))
    else:
        table.named("G_0", "student.elsewhere", str(problem.student.rest.tolist()))
        table.named("X", "student.on_teacher", str(problem.initial_on_teacher.tolist()))
    both = sizes.t("T", "T")
    informed = student.initial != "random"
    yield Equation("r", rho * X * sizes.t("T") if informed else sp.ZeroMatrix(K, L))
    yield Equation(r"\sigma", rho**2 * X * both * X.T + rho * rest if informed else rho * rest)
    reached = delta * X * sp.MatrixSymbol(rf"\langle \rho {latex_of(both)} \rangle_{{\rho}}", M, M) * X.T
    yield Equation(r"\Omega", reached + rest if informed else rest)


def _density(sizes: Sizes) -> Iterator[Equation | str]:
    """Law of components given those of the teacher, hidden_manifold.md, section 6."""
    r, sigma = sizes.r("T"), sp.MatrixSymbol("sigma", sizes.K, sizes.K)
    beta = sp.MatrixSymbol("beta", sizes.K, sizes.M)
    yield (
        r"Given $\rho$ and those of the teacher, $\tilde S$, they are Gaussian with the mean $\beta \tilde S$ and the "
        r"covariance $\Xi$:"
    )
    yield Equation(r"\beta", r * sizes.t("T", "T").I)
    yield Equation(r"\Xi", sigma - beta * r.T)


def _sum(terms: Iterable[Any]) -> Any:
    """Sum of matrices."""
    return reduce(add, terms)
