"""Symbols of an update rule: those that its functions read, and numbers of each kind of sample, with their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from meanfield.explanation.formulas import Table, entry, function_of, index, latex_of, mean, rounded, total
from meanfield.families.update_rule.kinds import Kind
from meanfield.families.update_rule.places import fields_of
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rule import Function, arguments_of
from meanfield.ingredients.part import Part

RULES = {
    "hebb": "rate*sign(y)",
    "perceptron": "rate*sign(y)*Heaviside(-s*y)",
    "adatron": "-rate*s*Heaviside(-s*y)",
}
"""Steps of the named rules that are no arithmetic of numbers alone, for one feature and one student."""

TAKEN = re.compile("(eta|m|p|v|rho|lambda|varsigma|u|c|class|psi|N|w|x|z|F|B|G|H|S|gamma|beta|Lambda|Psi)(_|$)")
"""Names of other symbols, by which parameters of a rule go with a mark."""

CONSTANTS = "t", "R", "Q"
"""What all kinds of samples share, besides parameters and side variables."""


class Input(NamedTuple):
    """View of a kind of sample that moves students.

    Parameters
    ----------
    tag : str
        What is behind the names of its fields and steps.
    samples : int
        Number of samples that functions see at once.
    """

    tag: str
    samples: int

    def times(self, *names: Any) -> Any:
        """Average of a product, summed over the samples that functions see at once; names have their indices."""
        b = (index("b"),) * (self.samples > 1)
        own = (name + self.tag if "__" in name else under(name, self.tag) for name, *_ in names)
        factors = [entry(name, *b, *at) for name, (_, *at) in zip(own, names, strict=True)]
        return total(mean(sp.prod(factors)), b[0], self.samples) if b else mean(sp.prod(factors))


def under(name: str, tag: str) -> str:
    """Name of a symbol of a kind of sample, which is printed above it; of the only one it is the name alone."""
    return f"{name}__{tag}" if tag else name


class Names:
    """Symbols of a problem, by which its functions read numbers, and those of its inputs."""

    def __init__(self, problem: Problem, table: Table) -> None:
        self.problem, self.table, self.kinds = problem, table, problem.kinds
        self.M, self.K = len(problem.features), len(problem.students)
        self.k, self.other, self.j = (
            (index(name),) * (count > 1) for name, count in zip("klj", (self.K, self.K, self.M), strict=True)
        )
        given, path = problem.model.rule_parameters, "model.rule_parameters"
        marks = {name: "_F" * bool(TAKEN.match(name)) for name in given}
        self.known = {
            name: table.known(name + marks[name], f"{path}.{name}", value, False) for name, value in given.items()
        }

    def tag(self, number: int, view: int | None = None) -> str:
        """What is behind symbols of a kind of sample, or of one of its views."""
        kind = str(number + 1) * (len(self.kinds) > 1)
        return kind + (str(view + 1) if view is not None and self.kinds[number].views > 1 else "")

    def inputs(self) -> Iterator[tuple[int, int, Input]]:
        """Inputs that move students, with the numbers of their kinds and views."""
        for number, kind in enumerate(self.kinds):
            for view, gains in enumerate(kind.gains):
                if gains:
                    yield number, view, Input(self.tag(number, view), kind.samples)

    def letters(self, number: int, names: Mapping[str, Any], own: int | None = None) -> dict[str, Any]:
        """Symbols of what functions of a kind of sample read, in arrays where there are several."""
        found, fields = {}, fields_of(self.problem)
        for name, place in names.items():
            base = name.rstrip("0123456789") if name.rstrip("0123456789") in fields else name
            view = int(name[len(base) :] or (own or 0) + 1) - 1 if base in fields else None
            shared = name in (*CONSTANTS, *self.problem.side)
            tag = "" if shared else self.tag(number, view)
            found[name] = self.known.get(name, _array(f"{base}__{tag}" if tag else base, place.shape))
        return found


class Numbers(NamedTuple):
    """Numbers of a kind of sample: noise, shares that masks keep, batch size, and noise of views."""

    eta: Any
    p: list[Any]
    m: Any
    v: Any


def data_rows(names: Names) -> list[Numbers]:
    """Rows of the table of data and start, and the numbers of each kind of sample."""
    problem, table = names.problem, names.table
    data = problem.data
    for j, feature in enumerate(problem.features):
        table.part(f"u_{j + 1}", f"features[{j}].coordinate", feature.coordinate)
    parts: dict[str, tuple[str, Part | None]] = {
        "rho": ("data.spectrum", data.spectrum),
        "varsigma": ("data.scale", data.scale),
    }
    parts |= {f"c_{j + 1}": (f"features[{j}].hidden", feature.hidden) for j, feature in enumerate(problem.features)}
    parts |= {f"c^s_{k + 1}": (f"students[{k}].hidden", student.hidden) for k, student in enumerate(problem.students)}
    parts |= {"c": ("hidden", problem.hidden)}
    parts |= {f"class_{a + 1}": (f"data.classes[{a}]", each) for a, each in enumerate(data.classes or ())}
    for symbol, (key, part) in parts.items():
        if part is not None:
            table.part(symbol, key, part)
    for name, chance in data.coins.items():
        table.named(rf"P(\mathrm{{{name}}} = 1)".replace("_", r"\_"), f"data.coins.{name}", f"{chance:g}")
    _start_rows(names)
    return [_numbers(names, number, kind) for number, kind in enumerate(names.kinds)]


def _start_rows(names: Names) -> None:
    """Rows of the table of the start."""
    problem, table = names.problem, names.table
    if problem.initial is not None:
        table.named(r"R(0), Q(0)", "initial", problem.initial.in_words)
        return
    for j, feature in enumerate(problem.features):
        below = "k" * (names.K > 1) + str(j + 1)
        table.named(f"R_{{{below}}}(0)", f"features[{j}].initial_overlap", str(feature.initial_overlap))
    for k, student in enumerate(problem.students):
        table.named(f"Q_{{{k + 1}{k + 1}}}(0)", f"students[{k}].initial_norm", f"{student.initial_norm:g}")
        if student.initial_overlap:
            table.named(f"Q_{{{k + 1}l}}(0)", f"students[{k}].initial_overlap", str(student.initial_overlap))
    for name, side in problem.side.items():
        table.named(f"{latex_of(entry(name))}(0)", f"side.{name}.start", str(side.start))


def _numbers(names: Names, number: int, kind: Kind) -> Numbers:
    """Numbers of a kind of sample, with their rows."""
    problem, table, tag = names.problem, names.table, names.tag(number)
    sample = problem.draws[number] if problem.draws is not None else None

    def known(symbol: str, key: str, usual: str, value: Any) -> Any:
        own = sample is not None and getattr(sample, key) is not None
        below = f"_{tag}" * (own and bool(tag))
        return table.known(f"{symbol}{below}", f"draws[{number}].{key}" if own else usual, value, positive=True)

    eta, m = (
        known("eta", "noise", "data.noise", kind.noise),
        known("m", "batch_size", "model.batch_size", kind.batch_size),
    )
    shares = kind.observed[:: kind.samples]
    if sample is not None and isinstance(sample.observed, tuple):
        p = [table.known(f"p_{tag}{n + 1}", f"draws[{number}].observed[{n}]", each) for n, each in enumerate(shares)]
    else:
        p = [known("p", "observed", "data.observed", shares[0])] * kind.views
    v = np.zeros(kind.own.shape, dtype=object)
    for place in np.ndindex(v.shape) if kind.own.any() else ():
        key, at = f"draws[{number}].view_covariance", "".join(str(i + 1) for i in place)
        v[place] = table.known(
            f"v_{{{tag and tag + ','}{at}}}", f"{key}[{place[0]}][{place[1]}]", kind.own[place], False
        )
    for key in ("views", "samples"):
        if sample is not None and getattr(sample, key) is not None:
            table.named(
                rf"\mathrm{{{key}}}{f'_{tag}' if tag else ''}", f"draws[{number}].{key}", str(getattr(sample, key))
            )
    return Numbers(eta, p, m, v)


def called(problem: Problem, what: str) -> str:
    """Name of the function that messages call so."""
    draw, _, key = what.partition(".")
    if problem.draws is None or draw == "model":
        return str(problem.model.rule)
    return problem.draws[int(draw[6:-1])].asked[key]


def values(names: Names, what: str, function: Function, letters: dict[str, Any]) -> Any:
    """Values of a function of symbols, if what it then says is what it says of numbers; else None."""
    name = "" if what.startswith("side") else called(names.problem, what)
    if name in RULES and names.K == names.M == 1 and "along" not in what:
        return np.array(function_of(RULES[name], letters, 0), dtype=object)
    stands: dict[Any, Any] = {}
    given: dict[str, Any] = {}
    for each in arguments_of(function, what):
        given[each] = np.vectorize(lambda of: stands.setdefault(of, sp.Dummy(real=True)), otypes=[object])(
            letters[each]
        )
        given[each] = (
            given[each] if np.ndim(letters[each]) else letters[each] if each in names.known else given[each][()]
        )
    symbols = [
        *stands.values(),
        *(set().union(*(of.free_symbols for of in names.known.values())) if names.known else ()),
    ]
    point = dict(zip(symbols, np.random.default_rng(0).normal(size=len(symbols)), strict=True))
    at = np.vectorize(lambda of: float(sp.sympify(of).xreplace(point)), otypes=[float])
    plain = getattr(function, "py_func", function)
    try:
        found = np.vectorize(sp.sympify, otypes=[object])(plain(**given))
        same = np.allclose(at(found), plain(**{each: at(value)[()] for each, value in given.items()}), rtol=1e-12)
        back = {letter: of for of, letter in stands.items()}
        for place in np.ndindex(found.shape) if same else ():
            number = {each: rounded(each) for each in found[place].atoms(sp.Float)}
            found[place] = found[place].xreplace(number).xreplace(back)
    except Exception:  # whatever a function makes of symbols that are no numbers
        return None
    return found if same else None


def _array(name: str, shape: tuple[int, ...]) -> Any:
    """A symbol, or an array of entries, which count from 1."""
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        found[place] = entry(name, *(i + 1 for i in place))
    return found[()]


def noises(kind: Kind, numbers: Numbers, first: int, second: int) -> tuple[Any, Any, Any]:
    """Covariance of the noise of two views that masks leave: all of it, white, and beside the features."""
    eta, p, _, v = numbers
    shared, own = eta, v[first, second]
    one = kind.masks[:: kind.samples][first] == kind.masks[:: kind.samples][second]
    both, apart = (p[first] if one else p[first] * p[second]), p[first] * p[second]
    scale = entry("varsigma") ** 2 if kind.scales_noise else sp.S.One
    if kind.projected:
        return scale * both * (shared + own), scale * ((both - apart) * shared + both * own), scale * apart * shared
    return scale * both * (shared + own), scale * both * (shared + own), sp.S.Zero
