"""Different outputs at the start, which are counted without the table of the root."""

import pytest

from meanfield.families.latent_tree import sizes
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.distinct import merged, reach_of
from tests.families.latent_tree.problems import drawn


@pytest.mark.parametrize(
    "problem",
    [
        drawn((2, 2, 2), nodes=1, kind="infonce"),  # of nodes that are not active for many configurations
        drawn((1, 3), nodes=2, kind="triplet", normalised=True, bias=True),
        drawn((7,), nodes=2, kind="exact", bias=True),
        drawn((3, 2), nodes=3, kind="nt_xent"),
    ],
)
def test_they_are_those_of_the_table(problem, monkeypatch):
    monkeypatch.setattr(sizes, "BLOCK", 20)
    outputs = problem.normalisation.value(Tables(problem).forward(problem.initial_weights).before[-1][0])
    sizes.different_outputs.cache_clear()
    assert sizes.different_outputs(problem) == (len(merged(outputs)[0]), reach_of(lambda: [outputs]))
