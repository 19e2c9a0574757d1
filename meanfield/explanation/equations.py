"""Equations of a problem: its step, its limit and its order parameters, as LaTeX, with a table of symbols.

A family writes them, as data; see `Family.equations`. What is printed is what SymPy evaluates in tests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from meanfield.errors import InputError
from meanfield.explanation.explanation import phases_in_words
from meanfield.explanation.formulas import Table, latex_of
from meanfield.problems.base import Problem, check_problem
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.phases import pieces_of

CELL = '<td style="padding: 0 1rem 0 0; text-align: left">'
"""Beginning of a cell of the table of symbols."""


@dataclass(frozen=True)
class Equation:
    """Equation of a problem.

    Parameters
    ----------
    left, right : sympy.Expr or str
        Both sides, as expressions or in LaTeX.
    relation : str
        What is between them.
    closed : bool
        Whether it says in closed form what an average before it says, and is left out where it is long.
    """

    left: Any
    right: Any
    relation: str = "="
    closed: bool = False

    @property
    def shown(self) -> bool:
        """Whether it is not too long."""
        # Number of operations of the longest closed form that is shown; averages say the same in a line.
        return not self.closed or self.right.count_ops() <= 400


@dataclass(frozen=True)
class Section:
    """Equations under a heading, in their order, with words between them in which formulas stand between dollars."""

    title: str
    lines: Sequence[Equation | str]


@dataclass(frozen=True)
class Equations:
    """Equations of a problem.

    Parameters
    ----------
    title : str
    sections : sequence of Section
    symbols : sequence of (str, str, str)
        Symbols in LaTeX with their keys and values.
    """

    title: str
    sections: Sequence[Section]
    symbols: Sequence[tuple[str, str, str]]

    @property
    def latex(self) -> str:
        """LaTeX for a document that loads amsmath."""
        lines = [f"% {' '.join(self.title.split())}"] if self.title else []
        for section in self.sections:
            lines += [rf"\paragraph{{{section.title}}}"]
            for line in section.lines:
                lines += [line] if isinstance(line, str) else [rf"\[ {display(line)} \]"] * line.shown
        rows = [rf"${symbol}$ & \verb|{key}| & {_escaped(value)} \\" for symbol, key, value in self.symbols]
        return "\n".join([*lines, r"\begin{tabular}{lll}", *rows, r"\end{tabular}"])

    def _repr_html_(self) -> str:
        parts = []
        for section in self.sections:
            parts.append(f"<h4>{in_html(section.title)}</h4>")
            for line in section.lines:
                if isinstance(line, str):
                    parts.append(f"<p>{in_html(line)}</p>")
                elif line.shown:
                    style = "overflow: auto hidden; padding: .3rem 0"  # a formula may be wider than the page
                    parts.append(f'<div style="{style}">{mathml(display(line), True)}</div>')
        rows = [(mathml(symbol), f"<code>{escape(key)}</code>", escape(value)) for symbol, key, value in self.symbols]
        cells = "".join(f"<tr>{CELL}{f'</td>{CELL}'.join(row)}</td></tr>" for row in rows)
        return "\n".join([*parts, f"<h4>Symbols</h4><table>{cells}</table>"])


def mathml(latex: str, displayed: bool = False) -> str:
    """Formula as MathML, which browsers draw by themselves."""
    from math_core import LatexToMathML  # which only those who look at equations need

    return str(LatexToMathML().convert_with_local_state(latex, displaystyle=displayed))


def in_html(text: str) -> str:
    """Words with formulas between dollars."""
    parts = enumerate(text.split("$"))
    return "".join(mathml(part) if i % 2 else escape(re.sub(r"\\([&%#_{}])", r"\1", part)) for i, part in parts)


def display(equation: Equation) -> str:
    """Equation in LaTeX."""
    return f"{latex_of(equation.left)} {equation.relation} {latex_of(equation.right)}"


def equations_of(problem: Problem, symbols: bool = False) -> Equations:
    """Equations of a problem.

    Parameters
    ----------
    problem : Problem
        With phases, equations are those of the first, and words say what changes.
    symbols : bool
        Whether symbols stand for the numbers of the problem.

    Raises
    ------
    InputError
        If the family declares no equations, or a function that they name is not at hand.
    """
    check_problem(problem)
    family = family_of(problem)
    if not family.equations:
        raise InputError(f"family = '{family.name}' declares no equations; read its page of theory")
    table = Table(symbols)
    sections = list(resolve(family.equations)(pieces_of(problem)[0].problem, table))
    if phases := [f"{label}: {text}." for label, text in phases_in_words(problem)]:
        sections.append(Section("Phases", [_escaped(text) for text in phases]))
    return Equations(problem.title, sections, [(symbol, *row) for symbol, row in table.rows.items()])


def _escaped(text: str) -> str:
    """Words in LaTeX."""
    for sign in ("&", "%", "#", "_", "{", "}"):
        text = text.replace(sign, rf"\{sign}")
    return text
