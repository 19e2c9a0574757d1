"""Problem files: TOML in and out, with messages that name the key, the value, what is allowed and the remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from meanfield.arguments import as_path, as_text
from meanfield.errors import InputError
from meanfield.ingredients.nearest import meant_number
from meanfield.ingredients.objects import REBUILT, by_text, is_of_object, lent, texts_in
from meanfield.ingredients.part import Part
from meanfield.problems.base import Problem
from meanfield.problems.known_families import DEFAULT, class_named, written_name
from meanfield.process.text_files import read_utf8

P = TypeVar("P", bound=Problem)


def load_problem(path: str | Path, objects: Sequence[Any] = ()) -> Problem:
    """Read and validate a problem file.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    objects : sequence
        Functions, arrays and other objects of Python for which texts such as 'object:bent-1f0e...' stand there.

    Returns
    -------
    Problem
        Of the class of the family that the file names, or `meanfield.contrastive.Problem` if it names none. To a type
        checker `isinstance` says which keys there are.

    Raises
    ------
    InputError
        If the file is missing, is not TOML or does not describe a problem. The message names every
        offending key with its value, what is allowed and what to change.
    """
    if "\n" in str(path):
        raise InputError("load_problem takes the path of a file; call meanfield.parse_problem(text) for a text")
    path = as_path(path, "path", "give the path of a problem file, such as 'data/problems/no_prior.toml'")
    text = read_text(path, "problem file", "data/problems/")
    try:
        return parse_problem(text, path.parent, objects=objects)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def read_text(path: Path, kind: str, examples: str) -> str:
    """Text of a file that a person wrote; `kind` and the place of `examples` go into messages.

    Raises
    ------
    InputError
        If it is missing or no text.
    """
    try:
        return read_utf8(path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such {kind}; check the path (examples are in {examples})") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as text ({error}); give a TOML {kind}") from error


def parse_problem(text: str, folder: Path | None = None, trusted: bool = True, objects: Sequence[Any] = ()) -> Problem:
    """Validate the text of a problem file; see `load_problem`.

    Parameters
    ----------
    text : str
        TOML.
    folder : Path, optional
        Where files and modules that the text names are looked for, which are opened and imported at once: by default
        the working directory, and the Python path for modules.
    trusted : bool
        False for the text in a result: what it names is neither opened nor imported, now or later.
    objects : sequence
        See `load_problem`.

    Returns
    -------
    Problem
        Of the class of the family that the text names, or `meanfield.contrastive.Problem` if it names none.

    Raises
    ------
    InputError
        If the text is not TOML or does not describe a problem; see `load_problem`.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.parse_problem('''
    ... model = { activation = "quadratic", learning_rate = 0.05, batch_size = 10 }
    ... features = [{ hidden = { law = "laplace", second_moment = 1.5 }, initial_overlap = 0.3 }]
    ... time = { stop = 10.0 }
    ... ''')
    >>> problem.model.learning_rate
    0.05
    """
    text = as_text(text, "text", "give the text of a problem file; meanfield.load_problem(path) reads a file")
    folder = None if folder is None else as_path(folder, "folder", "give the path of a folder, or nothing")
    if text.endswith(".toml"):
        raise InputError(f"parse_problem takes the text of a file; call meanfield.load_problem('{text}') for its path")
    if not isinstance(objects, list | tuple):
        raise InputError(f"objects: is {type(objects).__name__}; give a list, such as [my_function, my_array]")
    with lent(by_text(objects)):
        return problem_from(parse_toml(text), folder, trusted)


def parse_toml(text: str) -> dict[str, Any]:
    """Data of a TOML file.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:  # tomllib's own, or a whole number of thousands of digits
        raise InputError(f"not a TOML file: {described(error, text)}") from error
    except RecursionError as error:
        raise InputError("not a problem file: lists or tables are nested hundreds of levels deep") from error


def problem_from(data: dict[str, Any], folder: Path | None = None, trusted: bool = True) -> Problem:
    """Validate the data of a problem; see `parse_problem`."""
    chosen: type[Problem] = class_named(data, folder, trusted)
    return validated(chosen, {key: data[key] for key in data if key != "family"}, folder, trusted)


def validated(
    model: type[P],
    data: dict[str, Any],
    folder: Path | None = None,
    trusted: bool = True,
    kept: Sequence[Part] = (),
) -> P:
    """Problem of a class from its data; see `parse_problem`.

    What `kept` parts of another problem have found outside of its text is taken from there.
    """
    return model.model_validate(data, context={"trusted": trusted, "folder": folder, "kept": kept})


def format_problem(problem: Problem) -> str:
    """TOML text of a problem, with all defaults written out; `parse_problem` returns an equal problem.

    Comments above say which objects of Python it names, and how to give them.
    """
    data = plain_data(problem)
    objects = dict.fromkeys(filter(is_of_object, texts_in(data)))
    note = f"# This text alone does not reproduce the run, which had objects of Python; {REBUILT}.\n" if objects else ""
    return note + "".join(f"# {each}\n" for each in objects) + tomli_w.dumps(data)


def plain_data(problem: Problem) -> dict[str, Any]:
    """Data of a problem for `problem_from`, with all defaults; its family is left out where it is the default."""
    name = written_name(problem)
    family = {} if name == DEFAULT else {"family": name}
    return family | problem.model_dump(exclude_none=True, mode="json")


WIDTH = 80
"""Largest number of characters of a line that are shown, around the place."""

_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_NUMBER = re.compile(r"= *([-+]?[\d.][^#\[\]{}\"']*?) *(?:[}#]|, *[A-Za-z_]|$)")
_FRACTION = re.compile(r"= *([-+]?[\d.]+) *(?:/ *([\d.]+)|(%))")
_COLON = re.compile(r" *([A-Za-z_]\w*) *: *(\S.*)")
_CHARACTERS = {
    "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb": 'write straight quotes, "...", in place of {}',
    "\u2212\u2013\u2014": "write the minus sign of the keyboard, -, in place of {}",
    "\u00a0\u202f\u2009": "write a plain space in place of the special one",
}
"""Characters that word processors put in place of others, and the remedy."""

_WORD = re.compile(r"= *(?!(?:true|false|inf|nan)\b)([A-Za-z_][\w.:-]*) *(?:[},#]|$)")


def described(error: ValueError, text: str) -> str:
    """Message of `tomllib` about a text, with the line of the fault and a remedy."""
    reason, lines = str(error), text.splitlines()
    place = _PLACE.search(reason)
    if place is not None:
        number, column = int(place[1]), int(place[2])
    elif reason.endswith("(at end of document)") and lines:
        number, column = len(lines), len(lines[-1]) + 1
    else:  # a whole number of thousands of digits
        return f"{reason}; correct the line"
    line = lines[number - 1] if number <= len(lines) else ""
    return f"{reason}; {_remedy(reason, line, line[column - 1 : column])}\n{_marked(line, number, column)}"


def _marked(line: str, number: int, column: int) -> str:
    """Line with its number, and a caret below a column."""
    first = max(0, min(column - 1 - WIDTH // 2, len(line) - WIDTH))
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + WIDTH])
    label = f"  {number} | "
    return f"{label}{shown}\n{' ' * (len(label) - 2)}| {' ' * (column - 1 - first)}^"


def _remedy(reason: str, line: str, character: str) -> str:
    """Remedy: what was probably meant, or the cause of most faults."""
    if "Cannot overwrite" in reason or "twice" in reason:
        return "remove one of the two, or write [[...]] where each is a table of its own, such as [[features]]"
    meant = _meant_character(character) or _meant_fraction(line)
    if meant is not None:
        return meant
    number, word = _NUMBER.search(line), _WORD.search(line)
    meant = meant_number(number[1]) if number else None
    if meant is not None and meant != f"write {number and number[1]}":
        return meant
    if word is not None:
        boolean = word[1].lower() in ("true", "false")
        return f"write {word[1].lower()}" if boolean else f'write "{word[1]}", texts go in double quotes'
    return "correct the line, texts go in double quotes"


def _meant_character(character: str) -> str | None:
    """Remedy for a character that a word processor has put in place of another one."""
    remedies = (remedy for known, remedy in _CHARACTERS.items() if character and character in known)
    return next((remedy.format(character) for remedy in remedies), None)


def _meant_fraction(line: str) -> str | None:
    """Remedy for a fraction, a percentage, or a colon in place of the sign of equality."""
    colon, fraction = _COLON.fullmatch(line), _FRACTION.search(line)
    if colon is not None:
        return f"write {colon[1]} = {colon[2]}, TOML has no colons"
    if fraction is None:
        return None
    try:
        value = float(fraction[1]) / (100.0 if fraction[3] else float(fraction[2]))
    except (ValueError, ZeroDivisionError):
        return None
    return f"write {value:.15g}, TOML does not calculate"
