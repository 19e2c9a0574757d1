"""Variables and kinds of results of contrastive learning, besides those that all densities have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from meanfield.families.contrastive.variables import (
    AVERAGE_STATISTICS,
    AVERAGES,
    AVERAGES_OF_CHANNELS,
    CHANNEL_STATES,
    CHANNELS,
    ESCAPES,
    FIXED_POINTS,
    KEPT_BY_SWEEPS,
    ONE_FEATURE,
    PORTRAIT,
    RANDOM_STARTS,
    STATES,
)
from meanfield.mckean_vlasov.declarations import BRANCHES
from meanfield.mckean_vlasov.declarations import KINDS as DENSITY_KINDS
from meanfield.mckean_vlasov.declarations import VARIABLES as DENSITY_VARIABLES
from meanfield.problems.kind import Kind
from meanfield.several_vectors.declarations import OF_BOTH_WEIGHTS

VARIABLES = (
    DENSITY_VARIABLES
    | STATES
    | BRANCHES
    | FIXED_POINTS
    | PORTRAIT
    | ONE_FEATURE
    | RANDOM_STARTS
    | ESCAPES
    | AVERAGES
    | AVERAGE_STATISTICS
    | CHANNELS
    | CHANNEL_STATES
    | KEPT_BY_SWEEPS
)

OF_A_STATE = ("q", "r", "g", "Lambda", *(name for name in STATES if name != "potential"))
"""Variables that every stationary state has."""

OF_A_FIXED_POINT = (
    "q",
    "g",
    "Lambda",
    "growth_rate",
    "eigenvalue_real",
    "eigenvalue_imag",
    "stability",
    "kind",
)
"""Variables that every fixed point has."""

CHECKS = "meanfield.families.contrastive.checks:faults"
OF_STATES = "meanfield.report.key_numbers:of_states"
PLANE = "meanfield.report.maps:plane"
DESCRIBED_BRANCHES = "meanfield.results.text:describe_branches"
DESCRIBED_STATES = "meanfield.results.text:describe"


def _extended(kind: Kind, several: tuple[str, ...], averages: Iterable[str]) -> Kind:
    """Kind of results of SGD with the variables that contrastive learning adds, those of several channels included."""
    optional = (*kind.optional, *ESCAPES, *averages)
    return replace(kind, variables=(*kind.variables, *several), optional=optional, check=CHECKS, charts=PLANE)


def _with_channels(kind: Kind, *names: str) -> Kind:
    """Kind of results with the variables that they have with several channels."""
    return replace(kind, variables=(*kind.variables, "M"), optional=(*kind.optional, *names), check=CHECKS)


OF_THE_PLANE = ("M_error", "P_gain", "D", "averages_standard_error", "P_sum", "P_difference")
"""Variables of a density that only two channels have."""

KINDS = DENSITY_KINDS | {
    "density": _with_channels(DENSITY_KINDS["density"], *OF_THE_PLANE, *OF_BOTH_WEIGHTS),
    "joint_density": Kind(
        "density of both weights of two channels together",
        (*OF_BOTH_WEIGHTS, "u", "u_weight"),
        ("tau",),
        leading="density_time",
        made_by="contrastive.solve_joint_density",
        figure="meanfield.plotting.results:plot_plane",
        charts=PLANE,
    ),
    "order_parameters": _with_channels(
        DENSITY_KINDS["order_parameters"],
        "P_gain",
        "D",
        "q_error",
        "M_error",
        "M_variance",
        "overlap_covariance",
        "averages_standard_error",
        *AVERAGES,
        "M_average",
        *(f"{name}_error" for name in AVERAGES_OF_CHANNELS),
    ),
    "limit_particles": Kind(
        "density of weights of several channels, by interacting particles of the limit",
        (
            "time",
            "q",
            "M",
            "r",
            "q_error",
            "M_error",
            "r_error",
            "P_gain",
            "D",
            "Lambda",
            "snapshot_time",
            "u_sample",
            "w_sample",
        ),
        ("tau", "averages_standard_error"),
        check=CHECKS,
        figure="meanfield.plotting.results:plot_limit_particles",
        charts=PLANE,
        numbers="meanfield.report.key_numbers:of_the_limit",
    ),
    "particles": _extended(DENSITY_KINDS["particles"], ("M",), (*AVERAGES, "M_average")),
    "ensemble": _extended(
        DENSITY_KINDS["ensemble"],
        ("M_mean", "M_variance", "M_quantile"),
        (*AVERAGE_STATISTICS, "M_average_mean", "M_average_variance"),
    ),
    "stationary": Kind(
        "stationary states of the density",
        (*OF_A_STATE, "M", "arrangement", "copies", "P", "u", "u_weight", "w", "w_bnds"),
        ("tau", "P_w", "potential", "region_share", "P_sum", "P_difference"),
        leading="state",
        check=CHECKS,
        figure="meanfield.plotting.results:plot_states",
        numbers=OF_STATES,
        summary=DESCRIBED_STATES,
    ),
    "continuation": Kind(
        "branches of stationary states",
        (*OF_A_STATE, "M", "parameter", "branch", "turning"),
        ("tau", "potential", "arrangement", "copies"),
        leading="point",
        made_by="contrastive.continue_stationary_states",
        check=CHECKS,
        figure="meanfield.plotting.states:plot_branches",
        numbers=OF_STATES,
        notes=DESCRIBED_BRANCHES,
        summary=DESCRIBED_STATES,
    ),
    "fixed_point_branches": Kind(
        "branches of fixed points",
        (*OF_A_FIXED_POINT, "M", "parameter", "branch", "turning"),
        ("tau", "arrangement"),
        leading="point",
        made_by="contrastive.continue_fixed_points",
        check=CHECKS,
        figure="meanfield.plotting.states:plot_branches",
        numbers=OF_STATES,
        notes=DESCRIBED_BRANCHES,
    ),
    "portrait": Kind(
        "phase portrait of two features",
        (*OF_A_FIXED_POINT, "orbit", *PORTRAIT),
        ("tau",),
        leading="state",
        made_by="contrastive.phase_portrait",
        check=CHECKS,
        figure="meanfield.plotting.results:plot_portrait_alone",
        numbers=OF_STATES,
    ),
    "dynamics": Kind(
        "dynamics of the order parameters",
        (*OF_A_FIXED_POINT, "M", "orbit"),
        ("tau", *PORTRAIT, *ONE_FEATURE, "q_covariance", *RANDOM_STARTS, "quantile", *CHANNEL_STATES),
        leading="state",
        made_by="contrastive.analyse_dynamics",
        check=CHECKS,
        figure="meanfield.plotting.dynamics:plot_dynamics",
        numbers=OF_STATES,
        notes="meanfield.families.contrastive.dynamics:describe_growth",
        summary="meanfield.families.contrastive.dynamics:describe",
    ),
}
