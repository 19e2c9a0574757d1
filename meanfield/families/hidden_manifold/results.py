"""Variables and kinds of results of hidden-manifold problems."""

from __future__ import annotations

from dataclasses import replace

from meanfield.families.hidden_manifold.variables import (
    ASSUMPTIONS,
    AVERAGE_ERRORS,
    AVERAGE_ROWS,
    AVERAGE_STATISTICS,
    AVERAGED,
    AVERAGES,
    DENSITY,
    DISCREPANCIES,
    DISTANCES,
    ESCAPE,
    FLUCTUATION_ERRORS,
    FLUCTUATIONS,
    OF_FRESH_SAMPLES,
    ORDER_PARAMETERS,
    REDUCED,
    ROWS,
    SPECTRUM,
    STATES,
    STATISTICS,
    WEIGHTS,
)
from meanfield.mckean_vlasov.declarations import POSITIVE, TIMES
from meanfield.problems.kind import Kind
from meanfield.problems.variable import Variable

LABELS = {
    "N": Variable((), "dimension N", range=(1.0, float("inf")), gaps="never", coordinate=True, label="dimension"),
    "eta": Variable((), "learning rate eta", range=POSITIVE, gaps="never", coordinate=True, label="learning_rate"),
}

VARIABLES = (
    LABELS
    | {"time": TIMES["time"]}
    | ORDER_PARAMETERS
    | SPECTRUM
    | AVERAGED
    | DENSITY
    | WEIGHTS
    | DISTANCES
    | DISCREPANCIES
    | REDUCED
    | STATES
    | ASSUMPTIONS
    | ESCAPE
    | STATISTICS
    | OF_FRESH_SAMPLES
    | FLUCTUATION_ERRORS
    | AVERAGES
    | AVERAGE_ERRORS
    | AVERAGE_STATISTICS
)

NUMBERS = "meanfield.families.hidden_manifold.numbers"
FIGURE = "meanfield.families.hidden_manifold.figures:plot_order_parameters"
CHARTS = "meanfield.families.hidden_manifold.figures:charts"
ERRORS = ("Q_error", "R_error", "v_error", "generalisation_error_error")

_PATH = ("time", "Q", "R", "generalisation_error", "v", "Omega", "Sigma")
_COMPONENTS = ("Q_component", "R_component", "component_weight", "component_scale")

_KINDS = {
    "order_parameters": Kind(
        "order parameters, from the ODEs in the eigenvalues of the features",
        (*_PATH, "T", "field_mean"),
        (
            *("eta", *_COMPONENTS, *ERRORS, *SPECTRUM, *AVERAGED, "field_mean_quantile", "quantile"),
            *(*FLUCTUATIONS, *FLUCTUATION_ERRORS, *AVERAGES, *AVERAGE_ERRORS),
        ),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_order_parameters",
    ),
    "density": Kind(
        "density of the student's weights along eigenvectors of the features",
        (*_PATH, "rho", "rho_weight", *DENSITY),
        ("eta", *ERRORS),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_order_parameters",
    ),
    "fixed_points": Kind(
        "fixed points of the order parameters",
        ("Q", "R", "generalisation_error", "v", "Omega", "Sigma", "T", *ERRORS, *STATES),
        ("eta",),
        leading="state",
        numbers=f"{NUMBERS}:of_fixed_points",
    ),
    "assumptions": Kind(
        "assumptions of the conventional theory, and what follows where they fail",
        (
            "time",
            *("component_weight", "component_scale"),
            *(name for name in ASSUMPTIONS if name != "kurtosis" and not name.endswith("_matched")),
        ),
        (
            *("eta", "Q", "R", "generalisation_error", *ERRORS, "field_mean", "kurtosis"),
            *(name for name in ASSUMPTIONS if name.endswith("_matched")),
        ),
        made_by="hidden_manifold.examine_assumptions",
        figure="meanfield.families.hidden_manifold.figures:plot_assumptions",
        numbers="meanfield.families.hidden_manifold.assumptions.wording:key_numbers",
        summary="meanfield.families.hidden_manifold.assumptions.wording:describe",
    ),
    "escape": Kind(
        "escape of students that start alike from the symmetric plateau",
        (*_PATH, *ESCAPE, "quantile"),
        ("N", "eta"),
        made_by="hidden_manifold.predict_escape",
        figure="meanfield.families.hidden_manifold.figures:plot_escape",
        numbers="meanfield.families.hidden_manifold.figures:key_numbers",
        summary="meanfield.families.hidden_manifold.figures:describe",
        stands_alone="its students stay alike for ever, as those of no run do",
    ),
    "particles": Kind(
        "stochastic gradient descent at finite N",
        ("time", *ROWS),
        ("N", "eta", "generalisation_error_error", *WEIGHTS, *AVERAGE_ROWS),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_particles",
    ),
    "ensemble": Kind(
        "stochastic gradient descent at finite N, statistics of an ensemble",
        ("time", *STATISTICS),
        ("N", "eta", *OF_FRESH_SAMPLES, *AVERAGE_STATISTICS),
        figure=FIGURE,
        charts=CHARTS,
        numbers=f"{NUMBERS}:of_an_ensemble",
    ),
}

KINDS = {name: replace(kind, check=f"{NUMBERS}:faults") for name, kind in _KINDS.items()}
