"""Equations of a hidden-manifold problem that are entry by entry: the step, and averages over the fields.

Source: hidden_manifold.md, sections 1, 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from meanfield.explanation.equations import Equation
from meanfield.explanation.formulas import Table, entry, function_of, index, latex_of, mean, named, real, total
from meanfield.explanation.weight_equations import DEFAULTS, activation_lines, average_line
from meanfield.families.hidden_manifold.expectations.choice import ERF, LINEAR, kind_of_expectations
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.formulas import ACTIVATIONS

G, SLOPE, BEND = (named(f"g{i}", f"g{prime}") for i, prime in enumerate(("", "'", "''")))
TEACHER, TEACHER_SLOPE = named("gt", r"\tilde g"), named("gt1", r"\tilde g'")
F = named("f", "f")

NONLINEARITIES = ACTIVATIONS | {"sign": "sign(x)", "step": "Heaviside(x)"}
"""Formulas of nonlinearities of inputs."""

ROUNDING = 1e-13
"""Largest mean of inputs that is 0 to rounding."""

DATA = (
    r"Latents $C \in \mathbb R^D$ have the inputs $x_i$ with $U = F^{\mathsf T} C/\sqrt D$ and $D = \delta N$. "
    r"Students $k$ and teachers $m$ have the fields $\lambda_k = w_k \cdot x/\sqrt N$ and "
    r"$\nu_m = \tilde w_m \cdot C/\sqrt D$."
)
LAW = r"Fields $(\lambda, \nu)$ are Gaussian with the covariance $C = (Q, R; R^{\mathsf T}, T)$"
FAST = (
    r"Inputs have a mean, along which students have the overlaps $\omega_k = w_k \cdot (1, \dots, 1)/\sqrt N$. These "
    r"move within single steps, and averages are also over the law with which they come to rest; $a\,\omega$ is added "
    r"to the means of $\lambda$."
)


def step_lines(problem: Problem, numbers: tuple[Any, ...], table: Table) -> Iterator[Equation | str]:
    """The step, hidden_manifold.md, section 1."""
    eta, eta_v, tau, noise, kappa, share, kept = numbers
    inputs, training, x = problem.inputs, problem.training, real("x")
    yield DATA
    table.named("f", "inputs.nonlinearity", inputs.nonlinearity)
    if inputs.nonlinearity in NONLINEARITIES:
        yield Equation(F(x), function_of(NONLINEARITIES[inputs.nonlinearity], DEFAULTS, x))
    shift = (
        table.known("a_f", "mean of inputs.nonlinearity", inputs.shift, False) if abs(inputs.shift) > ROUNDING else 0
    )
    factor = table.known("a_x", "inverse standard deviation of inputs", inputs.factor) if inputs.factor != 1.0 else 1
    yield Equation(real("x_i"), factor * (F(real("U_i")) - shift))
    student = [*activation_lines(problem.student, table, (G, SLOPE), "student")]
    yield from student
    if student:
        yield Equation(BEND(x), sp.diff(student[1].right, x))
    yield from activation_lines(problem.teacher, table, (TEACHER, TEACHER_SLOPE), "teacher", "_T")
    table.named(r"\tilde v", "teacher.output_weights", str([*problem.teacher.output_weights]))
    (k, m, s), N = index("k m s"), real("N")
    own = entry("v", k) * G(entry("lambda", k))
    taught = entry(r"\tilde v", m) * TEACHER(entry("nu", m))
    yield Equation(real("Delta"), sp.Sum(own, (k, 1, problem.students)) - sp.Sum(taught, (m, 1, problem.teachers)))
    w, v = real("w_k v_k")
    sample = () if tau == 1 else (s,)  # one is not counted
    force, field = _force(noise, sample), entry("lambda", k, *sample)
    moves = [
        -eta * kappa / N * w - eta * v / (tau * sp.sqrt(N)) * total(force * SLOPE(field) * entry("x", *sample), s, tau),
        -eta_v * kappa / N * v - eta_v / (tau * N) * total(force * G(field), s, tau),
    ]
    for of, move in zip((w, v), moves, strict=True):
        if move == 0:
            continue
        if kept == 0:
            yield Equation(of, of + move, r"\leftarrow")
            continue
        velocity = sp.Symbol(rf"\dot{{{of}}}")
        yield Equation(velocity, kept * velocity + share * move, r"\leftarrow")
        yield Equation(of, of + velocity, r"\leftarrow")
    if sample or noise != 0:
        yield r"Sums are over the samples of a step, and $\xi$ is standard normal."
    if training.average_rate is not None:
        rate = table.known("a", "training.average_rate", training.average_rate)
        for of in (w, v):
            yield average_line(of, sp.Symbol(f"{{{str(of)[0]}'_k}}"), rate / N)
        yield "The averages $w'$ and $v'$ change nothing else: they are students with this drift alone."


def _force(noise: Any, sample: Any) -> Any:
    """Error of a sample, with the noise of its label."""
    return entry("Delta", *sample) - (sp.sqrt(noise) * entry("xi", *sample) if noise != 0 else 0)


def average_lines(problem: Problem, noise: Any, has_means: bool, fast: bool) -> Iterator[Equation | str]:
    """Averages that drive the order parameters, in closed form where these are short; hidden_manifold.md, section 3."""
    k, j, m = index("k j m")
    own, other, taught = entry("lambda", k), entry("lambda", j), entry("nu", m)
    v, Delta = entry("v", k), real("Delta")
    yield LAW + (", and the means $m$." if has_means else ".")
    shared = mean(SLOPE(own) * SLOPE(other))
    bend = sp.KroneckerDelta(k, j) * v * mean(Delta * BEND(own))
    yield Equation(entry("A_S", k, j), v * entry("v", j) * shared + bend)
    yield Equation(entry("A_T", k, m), -v * entry(r"\tilde v", m) * mean(SLOPE(own) * TEACHER_SLOPE(taught)))
    yield Equation(entry("H", k, j), v * entry("v", j) * mean((Delta**2 + noise) * SLOPE(own) * SLOPE(other)))
    if has_means:
        yield Equation(entry("G", k), v * mean(Delta * SLOPE(own)))
    yield Equation(entry("F", k), mean(Delta * G(own)))
    yield Equation(r"\epsilon_g", mean(Delta**2) / 2)
    kind = kind_of_expectations(problem.student.activation_functions, problem.teacher.activation_functions)
    if kind in (ERF, LINEAR) and not (has_means or fast):
        yield r"In closed form, with $u = (v, -\tilde v)$, $h = (\lambda, \nu)$ and $A = (A^{(S)} | A^{(T)})$:"
        yield from (_erf if kind == ERF else _linear)(problem.students + problem.teachers, noise)


def _linear(n: int, noise: Any) -> Iterator[Equation]:
    k, j, a, b = index("k j a b")
    u = [entry("u", each) for each in (k, j, a, b)]
    error = sp.Sum(u[2] * u[3] * entry("C", a, b), (a, 1, n), (b, 1, n)) / 2
    yield Equation(entry("A", k, a), u[0] * u[2], closed=True)
    yield Equation(entry("H", k, j), u[0] * u[1] * (2 * error + noise), closed=True)
    yield Equation(entry("F", k), sp.Sum(u[2] * entry("C", k, a), (a, 1, n)), closed=True)
    yield Equation(r"\epsilon_g", error, closed=True)


def _erf(n: int, noise: Any) -> Iterator[Equation]:
    """Sums of I_2, I_3 and I_4 of fields without means; hidden_manifold.md, section 3."""
    k, j, a, b = index("k j a b")
    u = [entry("u", each) for each in (k, j, a, b)]

    def C(one: Any, other: Any) -> Any:
        return entry("C", one, other)

    def angle(of: Any, one: Any, other: Any) -> Any:
        return sp.asin(of(one, other) / sp.sqrt((1 + of(one, one)) * (1 + of(other, other))))

    two = 2 / sp.pi
    width = (1 + C(k, k)) * (1 + C(a, a)) - C(k, a) ** 2
    yield Equation(entry("D", k, a), width, closed=True)
    bend = sp.Sum(u[3] * C(k, b) / sp.sqrt(entry("D", k, b)), (b, 1, n)) / (1 + C(k, k))
    slopes = u[2] / sp.sqrt(entry("D", k, a))
    yield Equation(entry("A", k, a), two * u[0] * (slopes - sp.KroneckerDelta(k, a) * bend), closed=True)
    taken = (1 + C(j, j)) * C(a, k) * C(b, k) + (1 + C(k, k)) * C(a, j) * C(b, j)
    taken -= C(k, j) * (C(a, k) * C(b, j) + C(a, j) * C(b, k))
    yield Equation(entry("C'", k, j, a, b), C(a, b) - taken / entry("D", k, j), closed=True)
    squares = two * sp.Sum(u[2] * u[3] * angle(lambda *of: entry("C'", k, j, *of), a, b), (a, 1, n), (b, 1, n))
    both = two * u[0] * u[1] / sp.sqrt(entry("D", k, j))
    yield Equation(entry("H", k, j), both * (squares + noise), closed=True)
    yield Equation(entry("F", k), two * sp.Sum(u[2] * angle(C, k, a), (a, 1, n)), closed=True)
    yield Equation(r"\epsilon_g", sp.Sum(u[2] * u[3] * angle(C, a, b), (a, 1, n), (b, 1, n)) / sp.pi, closed=True)


def chain_lines(constants: list[Any], eta: Any, tau: Any, noise: Any) -> Iterator[Equation | str]:
    """A step of the students' overlaps with the mean of inputs; hidden_manifold.md, section 4."""
    s = index("s")
    sample = () if tau == 1 else (s,)
    constant = constants[0] if len(constants) == 1 else entry("a", *sample)
    moved = total(constant * _force(noise, sample) * SLOPE(entry("lambda_k", *sample)), s, tau)
    if len(constants) > 1:
        yield rf"${latex_of(constant)}$ is that of the component of the sample."
    yield Equation(real("omega_k"), real("omega_k") - eta * real("v_k") / tau * moved, r"\leftarrow")
