"""Figure 14 of the paper: norms of the covariance operators of latents farther down over training.

As figure 13, for s010, three levels below the root, and s1100, four levels below it, which needs depth 5.
"""

from functools import partial

from validation.latent_tree.figures import growing_norms
from validation.study import Study

LATENTS = ("s010", "s1100")

STUDY = Study(
    growing_norms.theory,
    partial(growing_norms.judge, source="paper, figure 14"),
    partial(growing_norms.draw, latents=LATENTS),
    partial(growing_norms.simulate, LATENTS),
)
