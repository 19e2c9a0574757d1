"""The default scheme of the density on a problem that two other discretisations have settled to nine digits."""

from meanfield.families.contrastive.density import solve_density
from meanfield.problems.file import parse_problem

SETTLED = """
title = "sigmoid under a quartic prior"
[model]
activation = "sigmoid"
centering = "population"
learning_rate = 0.01789
batch_size = 500
[[features]]
hidden = { law = "laplace", second_moment = 0.7540 }
coordinate = { law = "gaussian" }
initial_overlap = 0.007
[augmentation]
variance = [0.256, 0.135]
correlation = -0.533
[prior]
name = "quartic"
strength = 0.1999
[time]
stop = 11.591
outputs = 21
"""


def test_a_density_with_hardly_any_noise_is_the_settled_one():
    run = solve_density(parse_problem(SETTLED))
    assert run.status == "complete"
    assert run.Lambda.max() < 1e-8  # cells in w would be crossed by advection alone
    assert abs(float(run.q[-1, 0]) - 0.006956803) <= float(run.q_error[-1].max()) + 1e-9  # of the reference
    assert abs(float(run.r[-1]) - 0.479519882) <= float(run.r_error[-1]) + 1e-9  # the same
