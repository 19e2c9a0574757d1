"""Tables of a result in pandas: one for each set of dims that its variables have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from meanfield.results.result import check_dataset

if TYPE_CHECKING:
    import pandas as pd


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Tables of a result, one for each set of dims, without a number twice.

    `dataset.to_dataframe()` has a row for each combination of all dims. That is what one wants of a few variables, and
    too much of results that hold things of several kinds, such as the overlaps of SGD at all times beside its weights.

    Parameters
    ----------
    dataset : xarray.Dataset
        A result of any method, or a part of one.

    Returns
    -------
    dict of str to pandas.DataFrame
        By the dims, such as `time, feature`. The index holds their coordinates, the columns the variables that have
        just these dims, and other coordinates along them. Variables without dims have no table.

    Raises
    ------
    InputError
        If a Dataset is not what is given.
    """
    check_dataset(dataset)
    names: dict[str, list[str]] = {}
    for name, variable in dataset.data_vars.items():
        if variable.dims:
            names.setdefault(", ".join(map(str, variable.dims)), []).append(str(name))
    return {dims: dataset[held].to_dataframe() for dims, held in names.items()}
