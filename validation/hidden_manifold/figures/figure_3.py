"""Figure 3 of the paper: discrepancy against KL for mixtures that are not standardised, with ReLU units.

The paper says that Q, R and v leave the ODE the farther the larger KL is, and that Q and v tend to a limit. It does not
say whether each latent draws its own component or a whole sample has one; both are run. In the first reading the
theory says why: latents with a mean and a variance are, by the central limit theorem, one Gaussian with that mean and
variance, for which the ODE of N(0, 1) was never meant. Crosses are SGD with that Gaussian, and lie on the lines: the
mixture plays no part. Teacher and student with ReLU are homogeneous, and Q grows with the variance that it has to
explain. In the second reading a mean of length sqrt(D) moves the student within single steps, and there is no ODE.

20 starts, each with mixtures of its own whose means for different alpha are proportional; N = 1000, D = 500, t up to
100, ten times in each decade of steps. Bands are standard errors. No start is left out.
"""

from functools import partial

from validation.hidden_manifold.figures.measured import discrepancies
from validation.hidden_manifold.figures.sweep import draw_sweep, unstandardised_statements
from validation.study import Study

STUDY = Study(
    partial(discrepancies, "relu"),
    partial(unstandardised_statements, place="figure 3"),
    partial(draw_sweep, standardised=False),
)
