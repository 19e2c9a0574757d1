"""Explanation of a problem: sentences about it, the predicted cost of each method, and warnings."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from meanfield.explanation.prediction import START, Prediction, predictions
from meanfield.ingredients.part import Part
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems.base import Problem
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.phases import pieces_of
from meanfield.problems.problem_keys import held_by
from meanfield.process.own_numba.folder import has_compiled_code

Statement = tuple[str, str]
"""Label and text of a sentence about a problem."""

WIDTH = 98
"""Largest number of columns of a line of text."""

LABEL = 19
"""Number of columns of the label at the beginning of a line."""

COMPILES = "The first run of each method in a new installation compiles for 15 s to a minute more."

FORMULA_SIGNS = r"[$\\]"
"""Signs that make formulas of words on axes of figures, such as $\\tau$."""

MOST_LISTED = 8
"""Largest number of entries of a list that a sentence shows."""

UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Explanation:
    """Explanation of a problem, returned by `explain`; `str` of it is text of less than 100 columns.

    Parameters
    ----------
    title : str
        Title of the problem.
    statements : tuple of (str, str)
        Labels and sentences about the problem: network, training, data, time.
    predictions : tuple of Prediction
        Predictions for all methods.
    surprises : tuple of str
        Warnings, each with a remedy.
    compiles : bool
        Whether no code was compiled before, so that the first run of each method compiles, too.
    unpredicted : tuple of str
        Titles of the methods whose cost the family does not declare.
    problem : Problem, optional
        Whose equations stand below the text in a notebook.
    """

    title: str
    statements: tuple[Statement, ...]
    predictions: tuple[Prediction, ...]
    surprises: tuple[str, ...]
    compiles: bool = False
    unpredicted: tuple[str, ...] = ()
    problem: Problem | None = field(default=None, repr=False)

    def __str__(self) -> str:
        lines = [self.title or "A problem without a title", ""]
        for label, text in self.statements:
            lines += _labelled(label, text)
        if self.predictions:
            lines += self._table()
        if self.unpredicted:
            lines += ["", *_labelled("not predicted", ", ".join(self.unpredicted))]
        if self.compiles:
            lines += [COMPILES]
        for text in self.surprises:
            lines += ["", *textwrap.wrap(f"note: {text}", WIDTH)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        equations = self.problem and self.problem._repr_html_()
        return f"<pre>{escape(str(self))}</pre>{equations or ''}"

    def _table(self) -> list[str]:
        lines = ["", f"{'method':<{LABEL}}{'time':>10}{'memory':>10}{'file':>10}   result"]
        reasons = [""] + [prediction.reason for prediction in self.predictions]
        for prediction, before in zip(self.predictions, reasons, strict=False):
            repeats = bool(before) and prediction.reason == before
            lines += [f"{prediction.method:<{LABEL}}no: for the same reason"] if repeats else _row(prediction)
        return [
            *lines,
            "",
            f"Times are those of a command on idle cores, of which starting Python takes {START:g} s; mostly right",
            "within a factor of 2. Memory comes on top of Python's 300 MB.",
        ]


def explain(problem: Problem) -> Explanation:
    """Explain a problem in words, and predict time, memory and result of each method.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Explanation

    Notes
    -----
    It takes a second or two: work is counted, by a coarse pilot where it has to be, and multiplied by the processor
    time of one unit of it, which does not depend on how busy the machine is.

    Examples
    --------
    >>> import meanfield
    >>> print(meanfield.explain(meanfield.load_problem("data/problems/no_prior.toml")))  # doctest: +SKIP
    """
    compiles = not has_compiled_code()
    family, predicted = family_of(problem), predictions(problem)
    warnings = resolve(family.warnings)(problem, predicted) if family.warnings else []
    return Explanation(
        problem.title,
        tuple(in_words(problem)),
        tuple(predicted),
        tuple(warnings),
        compiles,
        tuple(method.title for method in family.methods.values() if not method.cost),
        problem,
    )


def in_words(problem: Problem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, with labels, in the order of its file.

    Parameters
    ----------
    problem : Problem
    look_up : bool
        Whether modules and files that the problem names may be opened: not for a problem that is stored in a result.
    """
    family, phases = family_of(problem), phases_in_words(problem)
    if not family.wording:
        return [("family", family.title), *phases]
    statements: list[Statement] = resolve(family.wording)(pieces_of(problem)[0].problem, look_up)
    return [*statements, *phases]


def steps_in_words(problem: Any) -> str:
    """Time of a run, with the number of steps where N of them are a unit of time."""
    stop, N = problem.time.stop, problem.particles.dimension
    return f"{problem.time.in_words}; t = k/N, so that SGD with N = {N:,} takes {round(stop * N):,} steps"


def phases_in_words(problem: Problem) -> Iterator[Statement]:
    """Time of each phase of a problem, and what changes there."""
    words = family_of(problem).words_of
    for number, (phase, piece) in enumerate(zip(problem.phases or (), pieces_of(problem), strict=False)):
        changes = [
            f"{re.sub(FORMULA_SIGNS, '', words(key))} = {_value(held_by(piece.problem, key), given)}"
            for key, given in phase.set.items()
        ]
        what = "; ".join(changes) or "nothing changes"
        yield f"phase {number + 1}", f"t = {piece.start:g} to {piece.stop:g}: {what if number else 'as above'}"


def _value(held: Any, given: Any) -> str:
    """What a phase sets, as its file has it, or a schedule in words."""
    if isinstance(held, Schedule):
        return held.in_words
    if isinstance(given, Part):
        given = given.model_dump(mode="json", exclude_none=True)
    if isinstance(given, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(None, value)}' for key, value in given.items())} }}"
    if isinstance(given, list | tuple):
        listed = ", ".join(_value(None, value) for value in given[:MOST_LISTED])
        return f"[{listed}{', ...' * (len(given) > MOST_LISTED)}]"
    return f"{given:g}" if isinstance(given, float) else json.dumps(given, default=str)


def _labelled(label: str, text: str) -> list[str]:
    first, *others = textwrap.wrap(text, WIDTH - LABEL, break_on_hyphens=False)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + other for other in others)]


def _row(prediction: Prediction) -> list[str]:
    if not prediction.applies:
        return _labelled(prediction.method, f"no: {prediction.reason}")
    # One digit of the time: more is not known, and it is the same at every call.
    numbers = (duration(float(f"{prediction.seconds:.1g}")), size(prediction.memory), size(prediction.file))
    row = f"{prediction.method:<{LABEL}}" + "".join(f"{number:>10}" for number in numbers) + "   "
    first, *others = textwrap.wrap(prediction.contents, WIDTH - len(row))
    return [row + first, *(" " * len(row) + other for other in others)]


def duration(seconds: float) -> str:
    """Time in two digits at most, because no more are known."""
    if seconds < 0.1:
        return "< 0.1 s"
    for unit, length, limit in (("s", 1.0, 100.0), ("min", 60.0, 100.0), ("h", 3600.0, 48.0)):
        if seconds < limit * length:
            return f"{_two_digits(seconds / length)} {unit}"
    return f"{_two_digits(seconds / 86400)} days"


def size(bytes_: float) -> str:
    """Number of bytes in two digits at most."""
    power = min(int(math.log10(max(bytes_, 1.0)) // 3), len(UNITS) - 1)
    return f"{_two_digits(bytes_ / 1000**power)} {UNITS[power]}"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):.12g}"
