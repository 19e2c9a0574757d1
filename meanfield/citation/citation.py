"""What to cite for a result: entries of `references.bib` whose conditions its problem, kind and provenance meet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.problems.problem_keys import held_by
from meanfield.results.result import Result, check_dataset

if TYPE_CHECKING:
    import xarray as xr

SOFTWARE = ("numpy", "scipy", "numba", "xarray")
"""Entries of the software that every result is computed with."""

OWN_ENTRY = """@software{{meanfield,
  author = {{{{The meanfield developers}}}},
  title = {{meanfield: Training Dynamics in the High-Dimensional Limit}},
  version = {{{version}}},
  year = {{{year}}},
  note = {{commit {commit}}},
}}
"""


def cite(*results: xr.Dataset) -> str:
    """Literature behind results, as BibTeX.

    Parameters
    ----------
    *results : xarray.Dataset
        Results of any methods, comparisons and sweeps included.

    Returns
    -------
    str
        Entries of the papers whose model, data or method each result rests on, as its family declares them, of the
        software that it was computed with, and of the versions of this package that made it; each once.

    Raises
    ------
    InputError
        If there is no result, or one of them is none of this package.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> print(meanfield.cite(meanfield.solve_order_parameters(problem)))  # doctest: +ELLIPSIS
    @article{meng_wang_2024,
    ...
    """
    if not results:
        raise InputError("there is no result to cite; give one or more, such as those of meanfield.load")
    entries: dict[str, None] = {}
    for dataset in results:
        check_dataset(dataset)
        entries |= dict.fromkeys(_entries_of(Result.of(dataset)))
    return "\n".join(entries)


def references() -> dict[str, str]:
    """Entries of `references.bib` by their keys."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    return {re.split(r"[{,]", entry)[1]: entry.strip() + "\n" for entry in text.split("\n\n")}


def _entries_of(result: Result) -> Iterator[str]:
    known, provenance = references(), result.provenance
    for condition, keys in result.family.cites.items():
        if _holds(condition, result, provenance):
            yield from (known.get(key, key) for key in keys)
    yield from (known[key] for key in SOFTWARE)
    version = provenance.get("versions", {}).get("meanfield", "unknown")
    year, commit = provenance.get("created", "unknown").partition("-")[0], provenance.get("commit", "unknown")
    yield OWN_ENTRY.format(version=version, year=year, commit=commit)


def _holds(condition: str, result: Result, provenance: Mapping[str, Any]) -> bool:
    """Whether a result meets a condition: none, or a key of its provenance or problem that has a value, or any."""
    key, is_value, value = condition.partition("=")
    if not key:
        return True
    try:
        held = provenance.get(key) or held_by(result.problem, key)
    except InputError:  # of another part of the family, or of a method that says no such thing
        return False
    return str(held) == value if is_value else bool(held)
