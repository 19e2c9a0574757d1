"""Writes docs/sparse_learning.md: studies of weights under sparse priors, from the files of their numbers.

Sections of studies whose numbers are not there stay as they are.
"""

from __future__ import annotations

from meanfield.cli import run
from validation.pages import update_page
from validation.update_rule.sparse import FIGURES, FOLDER, PAGE

HEAD = """# Sparse learning

Which coordinates of a sparse feature weights find in one pass over the samples, by the density of the weights: online
lasso against batch lasso, other penalties, principal components and perceptrons, a strength that changes, and stopping
early. Each is a problem of the family `update_rule` and a call of `meanfield.support_recovery`
([how to](how-to/online_lasso.md)). A coordinate counts as found where |w| is above a threshold; the difference of true
and false positive rate is 1 where all of the support is found and nothing else, and is that of the best of twenty
thresholds. Marks with two standard errors are four runs of SGD of large N, whose weights and rates are compared with
the density as a whole; by chance one comparison in twenty differs. *Random problems* are about densities themselves.

`make figures` makes this page and the figures, and `python -m validation update_rule.sparse.penalties` one of them.
"""


if __name__ == "__main__":
    run(lambda: update_page(PAGE, HEAD, FOLDER, FIGURES))
