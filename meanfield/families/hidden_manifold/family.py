"""Declaration of the family: teacher and student on a hidden manifold (hidden_manifold.md, section 1)."""

from __future__ import annotations

from meanfield.families.hidden_manifold.results import KINDS, VARIABLES
from meanfield.families.hidden_manifold.variables import DISCREPANCIES, DISTANCES
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.hidden_manifold"

TRAINING = (
    "training.learning_rate",
    "training.output_learning_rate",
    "training.batch_size",
    "training.label_noise",
    "training.weight_decay",
)
"""Keys of numbers that may change in time."""

FAMILY = Family(
    name="hidden_manifold",
    title="a student that sees nonlinear features of latents, and learns from a teacher that sees the latents",
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
            follows=TRAINING,
            phases=True,
            goes_on=True,
        ),
        "particles": Method(
            "particles",
            f"{HERE}.particles.simulation:simulate_sgd",
            ("particles", "ensemble"),
            check=f"{HERE}.particles.simulation:simulation_of",
            cost=f"{HERE}.costs:cost",
            resumes=True,
            threads=True,
            keep=("discrepancy",),
            follows=TRAINING,
            phases=True,
            goes_on=True,
        ),
        "density": Method(
            "density",
            f"{HERE}.density:solve_density",
            ("density",),
            check=f"{HERE}.density:check_density",
            cost=f"{HERE}.costs:density",
            follows=TRAINING,
            phases=True,
        ),
        "fixed_points": Method(
            "fixed points",
            f"{HERE}.fixed_points:find_fixed_points",
            ("fixed_points",),
            check=f"{HERE}.fixed_points:check_fixed_points",
            cost=f"{HERE}.costs:fixed_points",
        ),
        "assumptions": Method(
            "assumptions",
            f"{HERE}.assumptions:examine_assumptions",
            ("assumptions",),
            check=f"{HERE}.assumptions.report:check_assumptions",
            purpose="which assumption of the conventional theory fails, and what follows",
        ),
        "escape": Method(
            "escape",
            f"{HERE}.escape:predict_escape",
            ("escape",),
            check=f"{HERE}.escape:check_escape",
            follows=TRAINING,
            phases=True,
            purpose="when students that start alike leave the symmetric plateau",
        ),
    },
    distances=(*DISTANCES, *DISCREPANCIES),
    measure_distances=f"{HERE}.density:distances",
    measure_deviations=f"{HERE}.density:deviations",
    measure=f"{HERE}.particles.measurement:measure_of",
    unordered=("student",),
    leaves_out=f"{HERE}.density:left_out",
    reductions={"discrepancy": f"{HERE}.discrepancy:discrepancy"},
    sweep_figures={"discrepancy": f"{HERE}.figures:plot_discrepancy"},
    wording=f"{HERE}.wording:in_words",
    warnings=f"{HERE}.wording:warnings_of",
    equations=f"{HERE}.equations:equations_of",
    key_words={
        r"inputs\.aspect_ratio": r"latents per input $\delta = D/N$",
        r"training\.learning_rate": r"learning rate $\eta$",
        r"training\.output_learning_rate": r"learning rate $\eta_v$ of the second layer",
        r"training\.momentum": r"momentum $\mu$",
        r"training\.momentum_rate": "rate $b$ at which velocities are forgotten",
        r"training\.average_rate": "rate $a$ of the averages of weights",
        r"training\.batch_size": r"samples $\tau$ per step",
        r"training\.label_noise": r"variance $\sigma_y^2$ of the noise of labels",
        r"training\.weight_decay": r"weight decay $\kappa$",
        r"inputs\.components\[\d+\]\.scale": "scale $s$ of a component",
        r"inputs\.random_means\.half_width": r"range $\alpha$ of the components' means",
        r"inputs\.random_means\.components": "number $m$ of components",
        r"particles\.dimension": "dimension $N$",
    },
    counted={
        "component": "component of the mixture of latents",
        "student": "unit of the student",
        "teacher": "unit of the teacher",
    },
    first_look={"particles.dimension": 300, "particles.replicas": 16, "time": {"stop": 20.0, "outputs": 21}},
    trials=({"particles.replicas": 16},),
    cites={
        "": ("goldt_2020",),
        "inputs.nonlinearity=linear": ("saad_solla_1995",),
        "inputs.components": ("bae_jeong_2024",),
        "inputs.random_means": ("bae_jeong_2024",),
    },
)
