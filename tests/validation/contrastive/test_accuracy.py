"""Waste of the density: time beyond that of the loosest tolerance that is accurate enough."""

import pytest
import xarray as xr

from validation.contrastive.accuracy import waste


@pytest.mark.parametrize(("k", "expected"), [(0, 1.0), (1, 2.0), (2, 1.0)])
def test_waste_counts_what_looser_tolerances_would_have_saved(k, expected):
    """At number 1 the looser tolerance does in half of the time; at number 2 no other one does."""
    error, seconds = [[5e-5, 5e-7, 2e-9]], [[1.0, 2.0, 8.0]]
    both = {"error": (("problem", "tolerance"), error), "seconds": (("problem", "tolerance"), seconds)}
    data = xr.Dataset(both, {"problem": ["one"], "tolerance": [1e-3, 1e-4, 1e-8]})
    assert waste(data, k) == expected
