"""Verdict on two results: they agree, they differ, or they cannot tell.

Runs one by one are rotated: their own scatter is the measure of chance. Where only moments over runs are kept, or few
runs have a predicted covariance, there are standard errors. Two predictions agree within the errors that they state.
"""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from meanfield.comparison.judgement import FEWEST, Judgement
from meanfield.comparison.moments import judge_moments
from meanfield.comparison.predictions import judge_predictions
from meanfield.comparison.runs import judge_runs
from meanfield.comparison.sides import has_runs, is_prediction, predicted_variance
from meanfield.results.schema import family_of_result


def judge(first: xr.Dataset, second: xr.Dataset, comparison: xr.Dataset, results: Sequence[xr.Dataset]) -> Judgement:
    """Judge two results of one problem.

    Parameters
    ----------
    first, second : xarray.Dataset
    comparison : xarray.Dataset
        The pair of them in what `meanfield.compare` returns, without a verdict.
    results : sequence of xarray.Dataset
        All results that are compared, one of which may predict the variance of runs.
    """
    family = family_of_result(first)
    if is_prediction(first) and is_prediction(second):
        return judge_predictions(first, second, comparison, family)
    if any(not has_runs(dataset) and not is_prediction(dataset) for dataset in (first, second)):
        return judge_moments(first, second, family, results)
    few = any(has_runs(dataset) and dataset.sizes["replica"] < FEWEST for dataset in (first, second))
    if few and any(predicted_variance(result, name) is not None for result in results for name in family.compared):
        return judge_moments(first, second, family, results)
    return judge_runs(first, second, comparison, family)
