"""Declaration of the family: update rules of one's own (update_rules.md, section 1)."""

from __future__ import annotations

from meanfield.families.update_rule.results import KINDS
from meanfield.families.update_rule.variables import DISTANCES, VARIABLES
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.update_rule"

FOLLOWS = (
    *("model.rule_parameters", "prior.strength", "model.batch_size", "data.noise"),
    *("features[].hidden.second_moment", "features[].hidden.fourth_moment"),
)
"""Keys of numbers that may change in time."""

FAMILY = Family(
    name="update_rule",
    title="any algorithm that sees its data through finitely many fields, from the rule of its step",
    problem=f"{HERE}.problem:Problem",
    example=f"{HERE}:example.toml",
    variables=VARIABLES,
    kinds=KINDS,
    methods={
        "order_parameters": Method(
            "order parameters",
            f"{HERE}.order_parameters:solve_order_parameters",
            ("order_parameters",),
            check=f"{HERE}.order_parameters.trajectory:check_order_parameters",
            cost=f"{HERE}.costs:order_parameters",
            follows=FOLLOWS,
            phases=True,
            goes_on=True,
        ),
        "density": Method(
            "density",
            f"{HERE}.density:solve_density",
            ("density", "limit_particles"),
            check=f"{HERE}.density.solver:check_density",
            cost=f"{HERE}.costs:density",
            follows=FOLLOWS,
            phases=True,
            goes_on=True,
        ),
        "stationary": Method(
            "stationary states",
            f"{HERE}.density:find_stationary_states",
            ("stationary",),
            check=f"{HERE}.density.stationary:check_stationary",
            cost=f"{HERE}.costs:stationary",
        ),
        "fixed_points": Method(
            "fixed points",
            f"{HERE}.fixed_points.states:find_fixed_points",
            ("fixed_points",),
            check=f"{HERE}.fixed_points.states:check_fixed_points",
        ),
        "particles": Method(
            "particles",
            f"{HERE}.particles.simulation:simulate_sgd",
            ("particles", "ensemble"),
            check=f"{HERE}.particles.simulation:simulation_of",
            cost=f"{HERE}.costs:particles",
            resumes=True,
            threads=True,
            follows=FOLLOWS,
            phases=True,
            goes_on=True,
        ),
    },
    distances=(*DISTANCES, *(name for name in VARIABLES if name.endswith("_diagonal"))),
    measure_distances="meanfield.comparison.weights:distances",
    measure_deviations="meanfield.comparison.weights:deviations",
    measure=f"{HERE}.particles.measurement:measure_of",
    unordered=("student",),
    samples=f"{HERE}.samples_of_data:assumed_of",
    noise_in_time=f"{HERE}.order_parameters.trajectory:state_in_time",
    wording=f"{HERE}.wording:in_words",
    equations=f"{HERE}.equations:equations_of",
    key_words={
        r"model\.rule_parameters\.rate": r"learning rate of the rule",
        r"model\.batch_size": r"samples $m$ per step",
        r"data\.noise": r"variance $\eta$ of the noise",
        r"data\.observed": r"share $p$ of observed coordinates",
        r"prior\.strength": r"strength of the prior",
        r"particles\.dimension": "dimension $N$",
    },
    counted={
        "student": "trained vector",
        "feature": "feature",
        "side": "side variable",
        "observable": "observable",
        "eigenvalue_group": "group of eigenvalues",
        "overlap": "order parameter",
        "diagonal": "combination of weights, (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2)",
        "particle": "particle of the limit",
    },
    first_look={"particles.replicas": 16, "time": {"stop": 10.0, "outputs": 21}},
    trials=({"particles.replicas": 16},),
    cites={
        "": ("wang_mattingly_lu_2017",),
        "model.rule=hebb": ("mace_coolen_1998",),
        "model.rule=perceptron": ("mace_coolen_1998",),
        "model.rule=adatron": ("mace_coolen_1998",),
        "model.rule=ica": ("wang_lu_2017",),
    },
)
