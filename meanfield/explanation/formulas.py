"""Formulas that SymPy prints and evaluates: numbers as decimals, averages, scalar products, and known symbols.

Only those who write equations import this module, because SymPy takes half a second to import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

from meanfield.ingredients.part import Part
from meanfield.ingredients.schedules.shapes import Schedule

DIGITS = 15
"""Number of digits of a double that survive rounding: numbers of formulas are decimals with so many."""

LONGEST = 1000
"""Largest numerator and denominator of a fraction that has no end as a decimal."""


def _function(name: str, latex: Callable[..., str]) -> Any:
    """A function of SymPy that is printed in a way of its own."""

    def printed(self: Any, printer: Any, exp: str | None = None) -> str:
        text = latex(printer, *self.args)
        return text if exp is None else rf"{text}^{{{exp}}}"

    return type(name, (sp.Function,), {"_latex": printed})


def _scalar_product(printer: Any, left: Any, right: Any) -> str:
    if left == right:
        return rf"|{printer._print(left)}|^{{2}}"
    return rf"{printer.parenthesize(left, 50)} \cdot {printer.parenthesize(right, 50)}"


dot = _function("dot", _scalar_product)
"""Scalar product of two vectors."""

average_of = _function("average_of", lambda printer, of: rf"\left\langle {printer._print(of)} \right\rangle")
"""Average over what is random in a sample; see `mean`."""

expectation = _function("expectation", lambda printer, of: rf"E\left[{printer._print(of)}\right]")
"""Average over the density of weights and feature coordinates."""


def mean(expression: Any) -> Any:
    """Average over what is random in a sample, with numbers in front of it."""
    factor, rest = sp.sympify(expression).as_coeff_Mul()
    return factor * (1 if rest == 1 else average_of(rest))


def named(name: str, latex: str) -> Any:
    """A function of SymPy with a name, and another in LaTeX."""
    return _function(name, lambda printer, of: rf"{latex}({printer._print(of)})")


class Printer(LatexPrinter):  # type: ignore[misc]
    """SymPy's printer of LaTeX, with numbers as decimals and what is subtracted behind what it is subtracted from."""

    def _print_Rational(self, number: Any) -> str:
        if _is_short(number) or (max(number.p, -number.p, number.q) <= LONGEST and number != rounded(number)):
            return str(super()._print_Rational(number))
        digits, _, power = f"{float(number):.{DIGITS}g}".partition("e")
        return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits

    def _print_Mul(self, product: Any) -> str:
        factor, rest = product.as_coeff_Mul()
        if not factor.is_Rational or _is_short(factor) or "frac" in self._print_Rational(factor):
            return str(super()._print_Mul(product))
        above, below = sp.fraction(rest)
        text = self.parenthesize(above, PRECEDENCE["Mul"]) if above.is_Add else self._print(above)
        text = self._print_Rational(factor) + f" {text}" * (above != 1)
        return text if below == 1 else rf"\frac{{{text}}}{{{self._print(below)}}}"

    def _print_Symbol(self, symbol: Any, style: str = "plain") -> str:
        if "__" in symbol.name:
            return self._with_view(symbol.name)
        text = str(super()._print_Symbol(symbol, style))
        return rf"\mathrm{{{text}}}" if text.isalpha() and len(text) > 1 else text

    def _print_Indexed(self, entry: Any) -> str:
        short = all(each.is_Symbol or each.is_Integer for each in entry.indices)
        below = ("" if short else ", ").join(map(self._print, entry.indices))
        text = self._with_view(str(entry.base.label), "_")
        return rf"{{{text}}}_{{{below}}}" if "^" in text else rf"{text}_{{{below}}}"

    def _with_view(self, name: str, sign: str = "__") -> str:
        """A name with what is behind a sign, such as the number of a view, above it."""
        name, _, view = name.replace("__", sign).partition(sign)
        text = str(super()._print_Symbol(sp.Symbol(name)))
        text = rf"\mathrm{{{name}}}" if name.isalpha() and text == name and len(name) > 1 else text
        return rf"{text}^{{({super()._print_Symbol(sp.Symbol(view))})}}" if view else text

    def _print_Heaviside(self, step: Any, exp: str | None = None) -> str:
        return rf"\mathbf{{1}}\left[{self._print(step.args[0])} > 0\right]"

    def _print_MatMul(self, product: Any) -> str:
        factor, matrices = product.as_coeff_matrices()
        text = " ".join(self.parenthesize(each, PRECEDENCE["Mul"], strict=True) for each in matrices)
        if factor.could_extract_minus_sign():
            return f"- {self._print_MatMul(-product)}" if factor != -1 else f"- {text}"
        before = rf"\left({self._print(factor)}\right)" if factor.is_Add else self._print(factor)
        return text if factor == 1 else f"{before} {text}"

    def _print_Transpose(self, transposed: Any) -> str:
        return rf"{{{self.parenthesize(transposed.arg, PRECEDENCE['Pow'])}}}^{{\mathsf T}}"

    def _print_Sum(self, sums: Any) -> str:
        signs = "".join(
            rf"\sum_{{{self._print(i)}={self._print(low)}}}^{{{self._print(high)}}} " for i, low, high in sums.limits
        )
        return signs + str(self.parenthesize(sums.function, PRECEDENCE["Mul"], strict=True))

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> Any:
        terms = super()._as_ordered_terms(expr, order=order)
        return sorted(terms, key=lambda term: bool(term.could_extract_minus_sign()))


def _is_short(number: Any) -> bool:
    """Whether a number is better read as a fraction than as a decimal."""
    return bool(number.q < 10 and number.q != 5 and abs(number.p) <= LONGEST)


def rounded(exact: Any) -> Any:
    """Rational number in as many digits as a double has, the decimal that a file would have."""
    return sp.Rational(f"{float(exact):.{DIGITS}g}")


PRINTER = Printer({"mul_symbol": None, "fold_short_frac": False, "ln_notation": True})


def latex_of(expression: Any) -> str:
    """LaTeX of an expression of SymPy; a text is LaTeX already."""
    return expression if isinstance(expression, str) else str(PRINTER.doprint(expression))


def rate_of(quantity: Any) -> str:
    """Derivative by time of a quantity, an expression or LaTeX, as it is printed."""
    return rf"\frac{{\mathrm d{latex_of(quantity)}}}{{\mathrm dt}}"


@dataclass
class Table:
    """Symbols of formulas with their keys and values.

    Parameters
    ----------
    symbols : bool
        Whether formulas keep symbols that have a number.
    """

    symbols: bool
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)

    def known(self, symbol: str, key: str, value: Any, positive: bool = True) -> Any:
        """Number of the problem, or its symbol where formulas keep symbols, or where it changes in time.

        Parameters
        ----------
        symbol : str
            Its name in SymPy, such as `tau` or `v_12`.
        key : str
            The key that has it.
        value : float or Schedule
        """
        letter = sp.Symbol(symbol, real=True, positive=positive or None)
        moving = isinstance(value, Schedule)
        exact = None if moving else rounded(value)
        self.named(latex_of(letter), key, value.in_words if moving else f"{value:.{DIGITS}g}")
        return letter if self.symbols or exact is None else exact

    def part(self, symbol: str, key: str, part: Part) -> None:
        """Say what a table of the file says of a symbol that is random or a function."""
        entries = part.model_dump(mode="json", exclude_defaults=True)
        law = {"law": part.law} if hasattr(part, "law") else {}
        words = ", ".join(f"{name} = {value}" for name, value in (law | entries).items())
        self.named(latex_of(sp.Symbol(symbol)), key, words)

    def named(self, symbol: str, key: str, words: str) -> None:
        """Say what a symbol in LaTeX stands for that is no number."""
        assert self.rows.get(symbol, (key,))[0] == key, f"{symbol} stands for {key} and {self.rows[symbol][0]}"
        self.rows[symbol] = key, words


def real(names: str) -> Any:
    """Real symbols, by their names in SymPy."""
    return sp.symbols(names, real=True)


def entry(name: str, *indices: Any) -> Any:
    """Entry of an array, by indices that count from 1; without them a symbol. What is behind `__` is printed above."""
    return sp.IndexedBase(name, real=True)[indices] if indices else real(name)


def index(names: str) -> Any:
    """Indices, by their names."""
    return sp.symbols(names, integer=True)


def total(terms: Any, of: Any, count: int) -> Any:
    """Sum over an index from 1 to a count; the terms themselves where they do not have it."""
    return sp.Sum(terms, (of, 1, count)) if terms.has(of) else terms


def tidy(polynomial: Any, variables: Sequence[Any]) -> Any:
    """Polynomial by powers of its variables, with common factors in front where it has other symbols."""
    expanded = sp.expand(polynomial)
    if expanded.free_symbols <= set(variables):
        return sum(rounded(factor) * term for term, factor in expanded.as_coefficients_dict().items())
    return sp.factor_terms(sp.collect(sp.expand(polynomial), variables, sp.factor))


def function_of(formula: str, parameters: dict[str, Any], argument: Any) -> Any:
    """A function that is declared by a formula in x, such as those of `meanfield.ingredients.formulas`."""
    x = sp.Symbol("x", real=True)
    return sp.parse_expr(formula, local_dict={"x": x, **parameters}).subs(x, argument)
