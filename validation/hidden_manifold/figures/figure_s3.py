"""Figure S3 of the paper: discrepancy against KL for mixtures that are not standardised, with erf units.

The paper says that results are similar to those of figure 3. Here outputs are bounded, so that Q has less to explain.
Crosses are SGD with one Gaussian of the mixture's mean and variance.
"""

from functools import partial

from validation.hidden_manifold.figures.measured import discrepancies
from validation.hidden_manifold.figures.sweep import draw_sweep, unstandardised_statements
from validation.study import Study

STUDY = Study(
    partial(discrepancies, "scaled_erf"),
    partial(unstandardised_statements, place="figure S3"),
    partial(draw_sweep, standardised=False),
)
