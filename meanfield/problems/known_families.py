"""Families by name: those of the package, those of installed packages, and those at an address in a problem file.

The table holds names only; a family is imported when a problem or a result asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.family import Family, resolve

if TYPE_CHECKING:
    from meanfield.ingredients.fingerprints import Fingerprint

DEFAULT = "contrastive"
"""Family of problem files and results that name none."""

OWN_FAMILIES = {
    "contrastive": "meanfield.families.contrastive:FAMILY",
    "hidden_manifold": "meanfield.families.hidden_manifold:FAMILY",
    "alpha_contrastive": "meanfield.families.alpha_contrastive:FAMILY",
    "latent_tree": "meanfield.families.latent_tree:FAMILY",
    "update_rule": "meanfield.families.update_rule:FAMILY",
}
"""Addresses of the families of this package by name."""

ENTRY_POINTS = "meanfield.families"
"""Group of entry points under which other packages name theirs: `name = "module:FAMILY"`."""

_found: dict[str, Family] = {}
"""Families that were imported in this process, by every name and address that finds them."""

_fingerprints: dict[str, Fingerprint] = {}
"""Fingerprints of the code of families of others, by the same names and addresses."""

_of_class: dict[type, tuple[str, Family]] = {}
"""Families by the class of their problems, with the name or address of the family in problem files."""


def family_names() -> list[str]:
    """Names of all families that are installed."""
    return [
        *OWN_FAMILIES,
        *(point.name for point in entry_points(group=ENTRY_POINTS) if point.name not in OWN_FAMILIES),
    ]


def families() -> Iterator[Family]:
    """All families that are installed."""
    return (find_family(name) for name in family_names())


def find_family(name: Any, folder: Path | None = None, trusted: bool = True) -> Family:
    """Family with a name, or at the address "module:FAMILY".

    Parameters
    ----------
    name : str
    folder : Path, optional
        Where a module that the name addresses is looked for, besides the Python path and the working directory.
    trusted : bool
        False for the name in a result: it may be that of an installed family, or of one that this process has imported
        before; nothing is imported because a file says so.

    Raises
    ------
    InputError
        If there is none.
    """
    if not isinstance(name, str):
        raise InputError(f"family = {name!r:.40}: it is a text such as '{DEFAULT}'")
    if ":" in name:
        return _addressed(name, folder) if trusted else _addressed_before(name)
    if name not in _found:
        _remember(name, *_installed(name))
    return _found[name]


def class_named(keys: Mapping[str, Any], folder: Path | None = None, trusted: bool = True) -> Any:
    """Class of the problem with some keys, those of a file, of which `family` names its family; see `find_family`."""
    return find_family(keys.get("family", DEFAULT), folder, trusted).part(keys).problem_class


def _remember(name: str, found: Any, address: str) -> Family:
    """Store a family under the name that found it, and under its own, with the fingerprint of the code at its address.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(found, Family):
        raise InputError(f"family = '{name}': it names {type(found).__name__}, not a meanfield.problems.family.Family")
    before = _found.get(name)
    if before is not None and before is not found:  # its module was imported anew
        for known in [known for known, (_, family) in _of_class.items() if family in before.parts]:
            del _of_class[known]
    _found[name] = found
    if address not in OWN_FAMILIES.values():
        from meanfield.ingredients.module_sources import fingerprint_of_module  # imports NumPy, for which help waits

        _fingerprints[name] = fingerprint_of_module(address.partition(":")[0], address)
    if found.name not in OWN_FAMILIES:
        _found[found.name] = found
    return found


def _installed(name: str) -> tuple[Any, str]:
    """Family of this package or of another one that is installed, and its address."""
    if name in OWN_FAMILIES:
        return resolve(OWN_FAMILIES[name]), OWN_FAMILIES[name]
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        known = nearest(name, [*OWN_FAMILIES, *points])
        raise InputError(
            f"unknown family '{name:.60}'; {known} (your own is 'module:FAMILY' in a problem "
            f"file, or the entry point '{ENTRY_POINTS}' of a package)"
        )
    try:
        return points[name].load(), points[name].value
    except Exception as error:  # whatever the module of another package raises
        raise InputError(
            f"family '{name}': its entry point cannot be imported ({type(error).__name__}: {error}); "
            "mend or remove the package that declares it"
        ) from error


def _addressed(address: str, folder: Path | None) -> Family:
    """Family of a user, from a module beside the problem file or on the Python path."""
    from meanfield.ingredients.user_functions import load_object

    try:
        return _remember(address, load_object(address, folder), address)
    except ValueError as error:
        raise InputError(f"family: {error}") from error


def _addressed_before(address: str) -> Family:
    """Family at an address that a result names, if this process has imported it for a problem file."""
    if address not in _found:
        raise InputError(
            f"family = '{address:.60}': no module is imported because a result names it; load the problem file with "
            f"meanfield.load_problem before, or install the family with an entry point '{ENTRY_POINTS}'"
        )
    return _found[address]


def family_of(problem: Any) -> Family:
    """Family of a problem.

    Raises
    ------
    InputError
        If it is of none.
    """
    return _known(problem)[1]


def written_name(problem: Any) -> str:
    """Name or address of the family of a problem, as problem files give it."""
    return _known(problem)[0]


def fingerprint_of_family(problem: Any) -> dict[str, Fingerprint]:
    """Fingerprint of the family of a problem under the key `family`; nothing for those of this package."""
    name, _ = _known(problem)
    return {"family": _fingerprints[name]} if name in _fingerprints else {}


def _known(problem: Any) -> tuple[str, Family]:
    from meanfield.problems.base import check_problem  # listing families needs no classes of problems

    check_problem(problem)
    if type(problem) not in _of_class:
        _import_classes()
    if type(problem) not in _of_class:
        for _ in families():  # imports them all
            pass
        _import_classes()
    if type(problem) not in _of_class:
        raise InputError(f"{type(problem).__name__} is the problem of no family; load it with meanfield.load_problem")
    return _of_class[type(problem)]


def _import_classes() -> None:
    """Import the problem classes of the families found so far; no sooner, so that declarations stay light."""
    for name, family in _found.items():
        for part in family.parts:
            _of_class.setdefault(part.problem_class, (name, part))
