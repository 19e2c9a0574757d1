"""Writes docs/hidden_manifold_figures.md: the studies of Bae and Jeong's figures and tables, from their files."""

from __future__ import annotations

import textwrap
from pathlib import Path

import xarray as xr

from meanfield.cli import run
from validation import ROOT
from validation.hidden_manifold.figures import FOLDER
from validation.hidden_manifold.figures.runs import ALPHAS, COMPONENTS, GAUSSIAN_RUNS, NUMBERS
from validation.hidden_manifold.figures.tables import table_page
from validation.pages import in_order, write_page

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "hidden_manifold_figures.md"

HEAD = """# Figures on hidden manifolds

Figures 2 to 5 and S1 to S4 and tables 1 and 2 of Bae and Jeong (2024), *From Empirical Observations to Universality:
Dynamics of Deep Learning with Inputs Built on Gaussian mixture*, their property V.4, and their selection of runs: what
is claimed, and what the numbers say. Figure 1 is a sketch. The [theory](theory/hidden_manifold.md) says what is exact,
and the [errata](errata/bae_jeong_2024.md) list what is wrong in print.

**In short.** The paper does not say whether each latent draws its own component of the mixture, or all latents of a
sample have one. What it says of standardised mixtures holds in the first reading, by the central limit theorem and
whatever the functions are, and fails by an order of magnitude in the second. Mixtures that are not standardised leave
the theory in both, as it says, but in the first one Gaussian with the same mean and variance does the same: mixtures
play no part in it. The discrepancies that its tables print are larger than those of SGD, and have about the size that
comes out if the ODE does not start from the overlaps of the run.

**Protocol.** As printed: N = 1000, D = 500, two units, sign inputs, learning rate 0.2 for both layers, 10^5 steps, SGD
held against the ODE from the same weights and features, by the root mean square over log-spaced steps, ten in each
decade from the first step on. Not printed, and chosen here: all entries of weights, second layers and features are
N(0, 1), components have equal weights, and standardisation is by the exact mean and variance of each latent. Three
fifths of the times are before t = 1, where little has happened yet; without them discrepancies would be up to 1.6 times
larger.
{counts}

**Verdicts.** A statement *of the paper* is confirmed or contradicted, one of this documentation (*theory*) or of the
software (*ours*) holds or fails, and either is undecided where three standard errors over starts do not tell. Two
discrepancies are called alike if their ratio is less than 4/3. Numbers in brackets are standard errors in units
of the last digit.

`make figures` makes this page, the figures, and a netCDF file of the numbers behind each in
data/runs/hidden_manifold/figures; `python -m validation.hidden_manifold.figures.runs` makes the runs that most of them
share, and `python -m validation hidden_manifold.figures.figure_3` one of the figures.
"""


def counts() -> str:
    """Numbers of runs, and the time that they take."""
    runs = xr.load_dataset(NUMBERS)
    starts, minutes = runs.sizes["start"], float(runs.seconds.sum()) / 60.0
    students = starts * (runs.sizes["law"] * len(ALPHAS) * len(COMPONENTS) + GAUSSIAN_RUNS) * runs.sizes["activation"]
    listed = ", ".join(map(str, COMPONENTS))
    text = (
        f"There are {starts} starts with mixtures of their own, alpha = 0 to {max(ALPHAS)}, m = {listed}, and "
        f"{GAUSSIAN_RUNS} runs with N(0, 1) from each start: {students} trained students, which take {minutes:.0f} min "
        "of processor time, since mixtures of one start share their random numbers; the studies take 5 min more."
    )
    return textwrap.fill(text, 120)


if __name__ == "__main__":
    run(lambda: write_page(PAGE, HEAD.format(counts=counts()), in_order(FOLDER), FIGURES, table_page))
