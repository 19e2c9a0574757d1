"""Figure 5 of the paper: discrepancy against KL for standardised mixtures, with ReLU units.

The paper says that SGD with any standardised mixture is as near to the ODE as SGD with one Gaussian. This holds if each
latent draws its own component, by the central limit theorem alone, and whatever the mixture or the activation is; it
fails if a sample has one component, because each component still has a mean of length sqrt(D), which standardisation
does not remove. So the paper's latents must have drawn their own components. KL is that of the mixture before
standardisation, as in the paper.

20 starts with mixtures of their own, as in figure 3; no start is left out.
"""

from functools import partial

from validation.hidden_manifold.figures.measured import discrepancies
from validation.hidden_manifold.figures.sweep import draw_sweep, standardised_statements
from validation.study import Study

STUDY = Study(
    partial(discrepancies, "relu"),
    partial(standardised_statements, place="figure 5"),
    partial(draw_sweep, standardised=True),
)
