"""Figure S4 of the paper: discrepancy against KL for standardised mixtures, with erf units.

What figure 5 shows for ReLU, and for the same reason: a component for each latent gives one Gaussian in the limit, a
component for each sample does not.
"""

from functools import partial

from validation.hidden_manifold.figures.measured import discrepancies
from validation.hidden_manifold.figures.sweep import draw_sweep, standardised_statements
from validation.study import Study

STUDY = Study(
    partial(discrepancies, "scaled_erf"),
    partial(standardised_statements, place="figure S4"),
    partial(draw_sweep, standardised=True),
)
