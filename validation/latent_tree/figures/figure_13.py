"""Figure 13 of the paper: norms of the covariance operators of the root's children over training.

Medians over the 30 networks with the seeds 1 to 30 of the public code, in both readings, while one of depth, least
polarity and number of nodes varies about depth 4, 0.8 and 4 nodes. Print has no scales and does not say which values it
varies over. Operators are exact, of the last layer before its normalisation, as in the public code. They grow with the
squares of the weights of all other levels: divided by these, what is left is what features and gates add.
"""

from functools import partial

from validation.latent_tree.figures import growing_norms
from validation.study import Study

LATENTS = ("s0", "s1")

STUDY = Study(
    growing_norms.theory,
    partial(growing_norms.judge, source="paper, figure 13"),
    partial(growing_norms.draw, latents=LATENTS),
    partial(growing_norms.simulate, LATENTS),
)
