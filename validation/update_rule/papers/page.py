"""Writes docs/update_rule_papers.md: published results as update rules, from the files of their numbers.

Sections of studies whose numbers are not there stay as they are.
"""

from __future__ import annotations

from pathlib import Path

from meanfield.cli import run
from validation import ROOT
from validation.pages import update_page
from validation.update_rule.papers import FOLDER

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "update_rule_papers.md"

HEAD = """# Published results from a rule

Results of papers on one-pass algorithms, each from nothing but the rule of its step, as a problem of the
family `update_rule`: the rule is a few lines of Python at the top of a file in validation/update_rule/papers, and
everything else, the equations of order parameters, their averages and SGD, is the library's.

No figure of the papers is copied, and none was at hand: parameters are ours, in units in which |w|^2 = N and time is
t = k/N. What curves are held against is derived *by hand* for the case that is drawn: closed forms, or equations
in closed form whose solution shares no code with the library. A statement *of the paper* is one that its title,
abstract or main text is known for, and is confirmed or contradicted for that case alone; statements by hand and *ours*
hold or fail. Lines are limits, and marks with two standard errors are means of 16 runs of SGD, at N = 500 where a
section names no other; a mean may be 5.5 standard errors away, by chance once in 160 looks at a hundred numbers.

**What is not here**: sparse priors, under which the weights have a density ([sparse learning](sparse_learning.md));
contrastive learning with noisy views (two inputs; see the [first family](figures.md)); the directions sign(x) of sign
descent in each coordinate; batches in proportion to N and samples that are seen twice.

`make figures` makes this page, the figures, and a netCDF file of the numbers behind each in
data/runs/update_rule/papers; `python -m validation update_rule.papers.soft_committee` makes one of the figures.
"""


if __name__ == "__main__":
    run(lambda: update_page(PAGE, HEAD, FOLDER, FIGURES))
