"""Kinds of results of update rules."""

from __future__ import annotations

from dataclasses import replace

from meanfield.families.update_rule.variables import (
    ERRORS,
    ESCAPE,
    FLUCTUATION_ERRORS,
    FLUCTUATIONS,
    NAMES,
    SHARES,
    SPECTRUM,
    STATES,
    STATIONARY,
    STATISTICS,
    WEIGHTS,
)
from meanfield.mckean_vlasov.declarations import BRANCHES
from meanfield.mckean_vlasov.declarations import KINDS as DENSITY_KINDS
from meanfield.problems.kind import Kind

NUMBERS = "meanfield.families.update_rule.numbers"
FIGURE = "meanfield.families.update_rule.figures:plot_order_parameters"
CHARTS = "meanfield.families.update_rule.figures:charts"

CONDENSATE = ("critical_weight", "runaway_weights", "runaway_norm")

_AT_REST = ("R_noise", "Q_noise", "R_noise_error", "Q_noise_error", "growth_rate_error")

OF_A_STATE = (
    *("R", "Q", "R_error", "Q_error", "r", "Lambda", *STATIONARY),
    *("growth_rate", "eigenvalue_real", "eigenvalue_imag", "stability"),
)
"""Variables that every stationary state of the density has."""

_OTHERS = ("R_noise", "Q_noise", "v", "r", "observables", *NAMES)

_KINDS = {
    "order_parameters": Kind(
        "order parameters, from averages of the rule",
        ("time", "Q"),
        ("R", *_OTHERS, *SPECTRUM, *ERRORS, *FLUCTUATIONS, *FLUCTUATION_ERRORS),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_order_parameters",
    ),
    "density": Kind(
        "density of the weights of students, from the Fokker-Planck equation",
        ("time", "R", "Q", "r", "Lambda", "P", "P_w", "u", "u_weight", "w", "w_bnds", "mass"),
        (
            *("observables", "R_noise", "Q_noise", *NAMES, *SPECTRUM, "rho_of_node", *ERRORS, *CONDENSATE),
            *("P_error", "F_error", "P_sum", "P_difference"),
        ),
        figure="meanfield.families.update_rule.figures:plot_density",
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_order_parameters",
    ),
    "limit_particles": Kind(
        "density of the weights of several students, by interacting particles of the limit",
        ("time", "R", "Q", "r", "Lambda", "snapshot_time", "u_sample", "w_sample", "R_error", "Q_error", "r_error"),
        ("observables", "observables_error", *NAMES),
        figure="meanfield.families.update_rule.figures:plot_density",
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_order_parameters",
    ),
    "stationary": Kind(
        "stationary states of the density of the weights of one student",
        (*OF_A_STATE, "P", "P_w", "u", "u_weight", "w", "w_bnds"),
        ("observables", "observables_error", *_AT_REST, *SPECTRUM, "rho_of_node", *NAMES),
        leading="state",
        figure="meanfield.plotting.results:plot_states",
        numbers="meanfield.report.key_numbers:of_states",
        summary="meanfield.results.text:describe",
    ),
    "continuation": Kind(
        "branches of stationary states",
        (*OF_A_STATE, *BRANCHES),
        ("observables", "observables_error", *_AT_REST, *NAMES),
        leading="point",
        made_by="update_rule.continue_stationary_states",
        figure="meanfield.plotting.states:plot_branches",
        numbers="meanfield.report.key_numbers:of_states",
        notes="meanfield.results.text:describe_branches",
        summary="meanfield.results.text:describe",
    ),
    "fixed_points": Kind(
        "fixed points of the order parameters",
        ("Q", "Q_error", *STATES),
        ("R", "R_error", *_OTHERS, "v_error", "observables_error", *SHARES),
        leading="state",
        numbers="meanfield.report.key_numbers:of_states",
        summary="meanfield.results.text:describe",
    ),
    "fixed_point_branches": Kind(
        "branches of fixed points",
        ("Q", "Q_error", *(name for name in STATES if name != "copies"), *BRANCHES),
        ("R", "R_error", *_OTHERS, "v_error", "observables_error"),
        leading="point",
        made_by="update_rule.continue_fixed_points",
        figure="meanfield.plotting.states:plot_branches",
        numbers="meanfield.report.key_numbers:of_states",
        notes="meanfield.results.text:describe_branches",
    ),
    "escape": Kind(
        "escape of runs at finite N from an unstable start",
        ("time", "Q", "R", *ESCAPE, "quantile"),
        ("N", "v", "side_name"),
        made_by="update_rule.predict_escape",
        figure="meanfield.families.update_rule.figures:plot_escape",
        numbers=f"{NUMBERS}:of_an_escape",
        stands_alone="its overlaps stay where they start for ever, as those of no run do",
    ),
    "particles": Kind(
        "stochastic gradient descent at finite N",
        ("time", "Q"),
        ("N", "R", *_OTHERS, *WEIGHTS),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_particles",
    ),
    "ensemble": Kind(
        "stochastic gradient descent at finite N, statistics of an ensemble",
        ("time", "Q_mean"),
        ("N", *NAMES, *(name for name in STATISTICS if name != "Q_mean")),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_an_ensemble",
    ),
}

KINDS = {name: replace(kind, check=f"{NUMBERS}:faults") for name, kind in _KINDS.items()}
KINDS["support_recovery"] = DENSITY_KINDS["support_recovery"]
