"""Variables and kinds of results of contrastive problems with pairwise importance."""

from __future__ import annotations

from meanfield.families.alpha_contrastive.variables.critical_points import CRITICAL_POINTS
from meanfield.families.alpha_contrastive.variables.filters import FILTERS
from meanfield.problems.family import Kind

VARIABLES = FILTERS | CRITICAL_POINTS

CHECKS = "meanfield.families.alpha_contrastive.checks:faults"
NUMBERS = "meanfield.families.alpha_contrastive.key_numbers"
FIGURES = "meanfield.families.alpha_contrastive.figures"

KINDS = {
    "critical_points": Kind(
        "critical points of a filter on the sphere",
        ("w", *CRITICAL_POINTS),
        leading="point",
        made_by="find_critical_points",
        check=CHECKS,
        figure=f"{FIGURES}:plot_critical_points",
        numbers=f"{NUMBERS}:of_critical_points",
    ),
}
