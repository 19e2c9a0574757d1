"""Declaration of the part of the family whose data are images."""

from __future__ import annotations

from meanfield.families.latent_tree.images.results import KINDS, VARIABLES
from meanfield.families.latent_tree.results import COUNTED
from meanfield.families.latent_tree.results import VARIABLES as TREE_VARIABLES
from meanfield.problems.family import Family, Method

HERE = "meanfield.families.latent_tree.images"

SHARED = ("eta", "B", "time", "level", "loss", "gradient_norm", "count", "quantile")
"""Variables of trees that results on images have, too."""

FOLLOWED = (
    *(f"training.{key}" for key in ("learning_rate", "batch_size", "momentum", "weight_decay", "weight_noise")),
    *(f"loss.{key}" for key in ("temperature", "margin", "beta")),
)
"""Keys of numbers that may change in time."""

NO_LAW = "data.law = 'arrays': images are samples of no law whose averages are exact; use the method 'particles'"

FAMILY = Family(
    name="latent_tree",
    title="a dense ReLU network that is trained by a contrastive loss on views of images",
    problem=f"{HERE}.problem:ImageProblem",
    example=f"{HERE}:example.toml",
    variables={name: TREE_VARIABLES[name] for name in SHARED} | VARIABLES,
    kinds=KINDS,
    methods={
        "operator": Method(
            "operator",
            f"{HERE}.operators:find_layer_operators",
            ("layer_operator",),
            check=f"{HERE}.operators:check_layer_operators",
            cost=f"{HERE}.costs:operator",
            purpose="covariance operators of layers and the residue of their gradients at the initial weights",
        ),
        "particles": Method(
            "particles",
            f"{HERE}.simulation:train_on_images",
            ("image_training", "image_statistics"),
            check=f"{HERE}.simulation:simulation_of",
            cost=f"{HERE}.simulation:particles",
            resumes=True,
            threads=True,
            follows=FOLLOWED,
            phases=True,
            goes_on=True,
        ),
    },
    lacking={
        "population": f"{NO_LAW}, or 'operator' for the gradient at the initial weights over some of them",
        "density": f"{NO_LAW}, whose results have the laws of weights",
    },
    wording=f"{HERE}.wording:in_words",
    warnings=f"{HERE}.wording:warnings_of",
    equations=f"{HERE}.equations:equations_of",
    key_words={
        r"training\.learning_rate": r"learning rate $\eta$",
        r"loss\.temperature": r"temperature $\tau$",
        r"loss\.beta": r"$\beta$",
    },
    start="meanfield.families.latent_tree.initial:start_of",
    counted=COUNTED,
    toward_limit="a smaller training.learning_rate",
)
