"""Declaration of the family: contrastive learning with pairwise importance (alpha_contrastive.md, section 1)."""

from __future__ import annotations

from meanfield.families.alpha_contrastive.results import DISTANCES, KINDS, VARIABLES
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.alpha_contrastive"

FOLLOWED = (
    *(f"training.{key}" for key in ("learning_rate", "batch_size", "momentum", "weight_decay")),
    "importance.temperature",
    "importance.epsilon",
    "data.covariance",
)
"""Keys of numbers that may change in time."""

FAMILY = Family(
    name="alpha_contrastive",
    title="contrastive learning in which pairs of samples have an importance alpha",
    problem=f"{HERE}.problem:Problem",
    example=f"{HERE}:example.toml",
    variables=VARIABLES,
    kinds=KINDS,
    methods={
        "critical_points": Method(
            "critical points",
            f"{HERE}.critical_points:find_critical_points",
            ("critical_points",),
            check=f"{HERE}.critical_points.solver:check_critical_points",
            cost=f"{HERE}.costs:critical_points",
            keep=("critical_points",),
            purpose="all filters at rest: stable or not, on walls or not, with basins",
        ),
        "density": Method(
            "density",
            f"{HERE}.density:solve_density",
            ("density", "sphere_density"),
            check=f"{HERE}.density.solver:check_density",
            cost=f"{HERE}.costs:density",
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
        "optimal_filters": Method(
            "optimal filters",
            f"{HERE}.optimal_filters:find_optimal_filters",
            ("optimal_filters",),
            check=f"{HERE}.optimal_filters:check_optimal_filters",
            cost=f"{HERE}.costs:optimal_filters",
        ),
        "population": Method(
            "population",
            f"{HERE}.population:solve_population",
            ("population",),
            check=f"{HERE}.population.solver:check_population",
            cost=f"{HERE}.costs:population",
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
        "particles": Method(
            "particles",
            f"{HERE}.particles.simulation:simulate_sgd",
            ("particles", "ensemble"),
            check=f"{HERE}.particles.simulation:simulation_of",
            cost=f"{HERE}.costs:particles",
            resumes=True,
            threads=True,
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
    },
    distances=tuple(DISTANCES),
    measure_distances=f"{HERE}.distances:distances",
    measure_deviations=f"{HERE}.distances:deviations",
    measure=f"{HERE}.particles.simulation:measure_of",
    leaves_out=f"{HERE}.distances:left_out",
    start=f"{HERE}.initial:start_of",
    reductions={"critical_points": f"{HERE}.numbers:critical_points"},
    wording=f"{HERE}.wording:in_words",
    warnings=f"{HERE}.wording:warnings_of",
    equations=f"{HERE}.equations:equations_of",
    key_words={
        r"importance\.temperature": r"temperature $\tau$",
        r"training\.learning_rate": r"learning rate $\eta$",
        r"training\.batch_size": r"batch size $N$",
        r"filters\.count": r"number of filters $K$",
    },
    counted={
        "atom": "filter of the best network",
        "filter": "filter of a place",
        "other_coordinate": "place in a vector of weights, once more",
        "output": "output of the top layer",
        "place": "place of the input that filters see",
    },
    toward_limit=f"{HERE}.wording:toward_limit",
    first_look={"particles.replicas": 64, "filters.count": 50, "time": {"stop": 4.0, "outputs": 21}},
    trials=(
        {"particles.replicas": 64, "filters.count": 50, "time.stop": 2.0},
        {
            "particles.replicas": 16,
            "particles.common_start": True,
            "population.finite_batch": True,
            "training.learning_rate": 0.02,
            "time.stop": 2.0,
        },
    ),
    untold={("density", "population"): "filters start with their law, or with one draw of it"},
    cites={"": ("tian_2022",)},
)
