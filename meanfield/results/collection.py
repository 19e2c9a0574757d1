"""Collections: several results side by side in an xarray DataTree, which one file holds, with a group for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from meanfield.arguments import as_text, wrong
from meanfield.errors import InputError
from meanfield.results.result import Result

NAME = re.compile(r"\w[^/\0]*(?<! )")
"""Pattern of a name that a group of a netCDF file and a node of a DataTree can have."""

LABELS = "give a list of texts, one for each result, such as ['density', 'sgd']"


def collect(*datasets: xr.Dataset | xr.DataTree, labels: Sequence[str] | None = None) -> xr.DataTree:
    """Several results in one xarray DataTree, each in a node of its own, for one file and one argument.

    Parameters
    ----------
    *datasets : xarray.Dataset or DataTree
        Results of any methods, comparisons included, or collections of them.
    labels : sequence of str, optional
        Names of their nodes; by default their methods.

    Returns
    -------
    xarray.DataTree
        `tree["density"]["q"]` is a variable of one of them. `meanfield.save` writes it, `meanfield.load_collection`
        reads it, and `meanfield.compare`, `meanfield.plotting.plot_comparison` and reports take it as it is.

    Raises
    ------
    InputError
        If there is no result, something else is among them, or two have one name.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> tree = meanfield.collect(meanfield.solve_order_parameters(problem))
    >>> tree["order_parameters"]["q"].shape
    (41, 1)
    """
    names, found = named(datasets, labels)
    if not found:
        raise InputError("0 results given, but a collection has one or more; add a result of a solver")
    if len(names) != len(found):
        raise InputError(f"{len(names)} labels for {len(found)} results; give one label each")
    for i, name in enumerate(names):
        Result.of(found[i])  # refuses what is none
        if not NAME.fullmatch(name):
            raise wrong("label", name, "give the node a name that begins with a letter or digit and has no slash")
        if name in names[:i]:
            raise InputError(f"labels: '{name}' comes twice; give every result a label of its own")
    return xr.DataTree.from_dict(dict(zip(names, found, strict=True)))


def named(given: Iterable[Any], labels: Sequence[str] | None = None) -> tuple[list[str], list[xr.Dataset]]:
    """Names and results of what is given: Datasets, nodes, and collections in place of all results that they hold.

    Parameters
    ----------
    given : iterable of Dataset or DataTree
    labels : sequence of str, optional
        Names; by default those of nodes, and the methods of Datasets, with numbers where one comes twice.
    """
    held = [pair for each in given for pair in _held_by(each)]
    names = [name for name, _ in held] if labels is None else _listed(labels)
    if labels is None:
        names = [f"{name} {i + 1}" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return names, [dataset for _, dataset in held]


def by_label(results: Mapping[str, Any]) -> dict[str, xr.Dataset]:
    """Results by label, from such a mapping or from a collection."""
    if isinstance(results, xr.DataTree):
        return dict(_held_by(results))
    if not isinstance(results, Mapping):
        raise wrong("results", results, "give a dict of labels and results, such as {'density': density}")
    return {label: each.to_dataset() if isinstance(each, xr.DataTree) else each for label, each in results.items()}


def _held_by(given: Any) -> Iterator[tuple[str, xr.Dataset]]:
    """Results that an argument is, or holds; what is neither is passed on, to be refused."""
    if not isinstance(given, xr.DataTree):
        yield str(getattr(given, "attrs", {}).get("method")), given
    elif given.children:
        for name, node in given.children.items():
            if node.children or given.has_data:
                raise InputError("a DataTree of results has each in a node below its root; give meanfield.collect's")
            yield name, node.to_dataset()
    else:
        yield given.name or str(given.attrs.get("method")), given.to_dataset()


def _listed(labels: Sequence[str]) -> list[str]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise wrong("labels", labels, LABELS)
    return [as_text(label, f"labels[{i}]", LABELS) for i, label in enumerate(labels)]
