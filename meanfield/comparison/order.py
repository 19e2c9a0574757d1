"""Order of students, channels and the like in own runs, which is that of their code and not of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import xarray as xr

from meanfield.results.result import Result


def in_order(results: Sequence[Result], names: Sequence[str]) -> tuple[list[Result], str]:
    """Results with own runs in the order in which they start as a prediction does, and a sentence where that changes.

    Parameters
    ----------
    results : sequence of Result
        At common times.
    names : sequence of str
        Their names.
    """
    found, words = list(results), ""
    prediction = next((result for result in results if result.is_prediction), None)
    if prediction is None or not prediction.family.unordered or results[0].dataset["time"].values[0] != 0.0:
        return found, words
    for place, (result, name) in enumerate(zip(results, names, strict=True)):
        if not result.has_runs or result.provenance.get("steps") != "own code":
            continue
        orders = _orders(result)
        away = [_distance(_taken(result, order).dataset, prediction) for order in orders]
        best = orders[int(np.argmin(away))]
        # Share of the distance of two starts that is left in another order, if it is taken: chance leaves so little in
        # at most 3 of 1,000 cases.
        if min(away) < 0.1 * away[0]:
            found[place] = _taken(result, best)
            listed = " and ".join(
                f"{dim}s in the order {', '.join(str(i + 1) for i in order)}"
                for dim, order in best.items()
                if list(order) != sorted(order)
            )
            words += f"{name} is taken with its {listed}, in which it starts as the prediction does. "
    return found, words


def _orders(result: Result) -> list[dict[str, tuple[int, ...]]]:
    """Orders of all dims that have one of their own, the present one first."""
    sizes = {dim: result.dataset.sizes.get(dim, 1) for dim in result.family.unordered}
    # Largest number of students of which all orders are tried.
    dims = [dim for dim, size in sizes.items() if 1 < size <= 5]
    each = [list(permutations(range(sizes[dim]))) for dim in dims]
    return [dict(zip(dims, order, strict=True)) for order in product(*each)]


def _taken(result: Result, order: dict[str, tuple[int, ...]]) -> Result:
    """Result with some dims in another order, which count as before."""
    dataset = result.dataset
    places = {name: list(own) for dim, own in order.items() for name in (dim, f"{dim}_") if name in dataset.dims}
    counted = {name: dataset[name] for name in places if name in dataset.coords}
    return result.part(dataset.isel(places).assign_coords(counted))


def _distance(runs: xr.Dataset, prediction: Result) -> float:
    """Largest distance at the start between means over runs and a prediction."""
    shared = [name for name in prediction.family.compared if name in runs and name in prediction.dataset]
    each = [abs(runs[name].mean("replica") - prediction.dataset[name]).isel(time=0).max().item() for name in shared]
    return float(np.nanmax(each, initial=0.0))
