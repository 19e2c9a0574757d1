"""Declaration of the family: contrastive learning of one neuron (theory.md), or one for each of several channels."""

from __future__ import annotations

from meanfield.families.contrastive.results import KINDS, VARIABLES
from meanfield.mckean_vlasov.declarations import DISTANCES, REDUCTIONS
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.contrastive"
COSTS = f"{HERE}.explanation.predictions"
IN_TIME = tuple(REDUCTIONS)
FOLLOWED = (
    "model.learning_rate", "prior.strength", "decorrelation.strength", "model.batch_size", "augmentation.variance[]",
    "augmentation.correlation", "features[].hidden.second_moment", "features[].hidden.fourth_moment",
)  # fmt: skip

FAMILY = Family(
    name="contrastive",
    title="contrastive learning of one neuron, whose weights learn features of the data",
    problem=f"{HERE}.problem:Problem",
    example=f"{HERE}:example.toml",
    variables=VARIABLES,
    kinds=KINDS,
    methods={
        "density": Method(
            "density",
            f"{HERE}.density:solve_density",
            ("density", "limit_particles"),
            check=f"{HERE}.density:check_density",
            cost=f"{COSTS}:density",
            keep=IN_TIME,
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
        "order_parameters": Method(
            "order parameters",
            f"{HERE}.order_parameters:solve_order_parameters",
            ("order_parameters",),
            check=f"{HERE}.order_parameters.trajectory:check_trajectory",
            cost=f"{COSTS}:order_parameters",
            keep=(*IN_TIME, "arrangement"),
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
        "dynamics": Method(
            "dynamics",
            f"{HERE}.dynamics:analyse_dynamics",
            ("dynamics",),
            check=f"{HERE}.order_parameters.field:check_linear",
            cost=f"{COSTS}:dynamics",
            keep=("similarity", "states", "growth"),
            purpose="fixed points of the order parameters, what attracts from where, thresholds, random starts",
        ),
        "fixed_points": Method(
            "fixed points",
            f"{HERE}.dynamics:solve_fixed_points",
            ("dynamics",),
            check=f"{HERE}.order_parameters.field:check_linear",
            keep=("similarity", "states", "growth"),
            purpose="the fixed points alone, in a fiftieth of the time, for sweeps",
        ),
        "stationary": Method(
            "stationary states",
            f"{HERE}.stationary:find_stationary_states",
            ("stationary",),
            check=f"{HERE}.stationary.states:check_stationary",
            cost=f"{COSTS}:stationary",
            keep=("similarity", "states"),
        ),
        "particles": Method(
            "particles",
            f"{HERE}.sgd.simulation:simulate_sgd",
            ("particles", "ensemble"),
            check=f"{HERE}.sgd.simulation:simulation_of",
            cost=f"{COSTS}:particles",
            resumes=True,
            threads=True,
            keep=(*IN_TIME, "arrangement"),
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
    },
    distances=(*DISTANCES, *(name for name in VARIABLES if name.endswith("_diagonal"))),
    measure_distances="meanfield.comparison.weights:distances",
    measure_deviations="meanfield.comparison.weights:deviations",
    measure=f"{HERE}.sgd.measurement:measure_of",
    unordered=("channel",),
    samples=f"{HERE}.samples:assumed_of",
    noise_in_time=f"{HERE}.order_parameters.trajectory:overlaps_in_time",
    reductions=REDUCTIONS
    | {name: f"{HERE}.reductions:{name}" for name in ("similarity", "states", "growth", "arrangement")},
    wording=f"{HERE}.explanation.wording:in_words",
    warnings=f"{HERE}.explanation.warnings:warnings_of",
    equations=f"{HERE}.explanation.equations:equations_of",
    key_words={
        r"model\.learning_rate": r"learning rate $\tau$",
        r"model\.batch_size": "batch size $m$",
        r"model\.average_rate": "rate $a$ of the averages of weights",
        r"model\.momentum_rate": "rate $b$ at which velocities are forgotten",
        r"decorrelation\.strength": r"strength $\lambda$ of the penalty",
        r"prior\.strength": "strength of the prior",
        r"features\[\d+\]\.hidden\.second_moment": "second moment $m_2$ of the hidden variable",
        r"features\[\d+\]\.hidden\.fourth_moment": "fourth moment $m_4$ of the hidden variable",
        r"features\[\d+\]\.initial_overlap": "initial overlap $q(0)$",
        r"augmentation\.correlation": "correlation of the two noises",
        r"augmentation\.variance\[\d\]": "noise variance",
        r"particles\.dimension": "dimension $N$",
    },
    counted={
        "bound": "bound of a range, lower then upper",
        "contour": "point of curves",
        "diagonal": "combination of weights, (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2)",
        "group": "group of weights by their feature coordinate",
        "overlap": "overlap, q feature by feature, then M pair by pair",
        "particle": "particle of the limit",
        "trace": "point of curves",
    },
    first_look={
        "title": "A sparse feature under a sparse prior",
        "prior": {"name": "l1", "strength": 6.0},
        "time": {"stop": 10.0, "outputs": 21},
        "particles": {"dimension": 1000, "replicas": 8, "snapshots": [0.0, 10.0]},
    },
    trials=({"particles.replicas": 16, "time.stop": 6.0, "particles.snapshots": [0.0, 6.0]},),
    cites={"": ("meng_wang_2024",), "backend=fipy": ("fipy",)},
)
