"""Declaration of the family: contrastive learning of deep networks on latent trees (latent_tree.md, section 1)."""

from __future__ import annotations

from meanfield.families.latent_tree.images import results as images
from meanfield.families.latent_tree.results import COUNTED, DISTANCES, KINDS, VARIABLES
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.latent_tree"

FOLLOWED = (
    *(f"training.{key}" for key in ("learning_rate", "batch_size", "momentum")),
    *(f"loss.{key}" for key in ("temperature", "margin", "beta")),
)
"""Keys of numbers that may change in time."""

FAMILY = Family(
    name="latent_tree",
    title="a deep ReLU network that is trained by a contrastive loss to see through a tree of latents",
    problem=f"{HERE}.problem:Problem",
    example=f"{HERE}:example.toml",
    variables=VARIABLES | images.VARIABLES,
    kinds=KINDS | images.KINDS,
    methods={
        "operator": Method(
            "operator",
            f"{HERE}.initial:find_operators",
            ("operator",),
            check=f"{HERE}.operators:check_operators",
            cost=f"{HERE}.costs:operator",
            purpose="covariance operators, gradient, growth rates and selectivities at the initial weights",
        ),
        "population": Method(
            "population",
            f"{HERE}.flow:solve_population",
            ("population",),
            check=f"{HERE}.flow:check_population",
            cost=f"{HERE}.costs:population",
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
        "stationary": Method(
            "networks at rest",
            f"{HERE}.rest.solver:find_stationary",
            ("network_states",),
            check=f"{HERE}.rest.solver:check_stationary",
            cost=f"{HERE}.costs:stationary",
            purpose="networks at rest, their stability, and the share of random networks that come to each",
        ),
        "density": Method(
            "density",
            f"{HERE}.many_nodes.solver:solve_density",
            ("density", "sphere_density", "node_particles"),
            check=f"{HERE}.many_nodes.solver:check_density",
            cost=f"{HERE}.costs:density",
            follows=tuple(key for key in FOLLOWED if key != "training.momentum"),
            phases=True,
        ),
        "particles": Method(
            "particles",
            f"{HERE}.particles:simulate_sgd",
            ("particles", "ensemble"),
            check=f"{HERE}.particles:simulation_of",
            cost=f"{HERE}.costs:particles",
            resumes=True,
            threads=True,
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
    },
    wording=f"{HERE}.wording:in_words",
    warnings=f"{HERE}.wording:warnings_of",
    equations=f"{HERE}.equations:equations_of",
    key_words={
        r"training\.learning_rate": r"learning rate $\eta$",
        r"loss\.temperature": r"temperature $\tau$",
        r"loss\.beta": r"$\beta$",
    },
    distances=tuple(DISTANCES),
    measure_distances=f"{HERE}.many_nodes.distances:distances",
    measure_deviations=f"{HERE}.many_nodes.distances:deviations",
    measure=f"{HERE}.particles:measure_of",
    leaves_out=f"{HERE}.many_nodes.distances:left_out",
    start=f"{HERE}.initial:start_of",
    laws={"ring_objects": "", "arrays": f"{HERE}.images:FAMILY"},
    counted=COUNTED,
    toward_limit="a smaller training.learning_rate, beside a density also a larger network.nodes_per_latent (a mean "
    "over starts is off by its inverse)",
    first_look={
        "network.initial": {"law": "uniform", "seed": 1},  # of single networks, whose exact flow is drawn
        "particles.replicas": 8,
        "time": {"stop": 10.0, "outputs": 21},
    },
    trials=(
        {"particles.replicas": 16, "particles.common_start": False, "network.nodes_per_latent": 100},
        {"particles.replicas": 8},
    ),
    untold={("population", "density"): "nodes start with one draw of their law, or with the law"},
    cites={"": ("tian_2020",)},
)
