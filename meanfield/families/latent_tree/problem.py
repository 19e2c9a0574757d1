"""Latent-tree problems: tree, network, loss, training, time. Frozen objects that know no method.

All quantities are dimensionless; time is that of the flow W' = -grad L (latent_tree.md, section 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, cast

from numpy.random import Generator
from pydantic import Field

from meanfield.ensembles.momentum import HasMomentum, MomentumRate
from meanfield.ensembles.settings import AverageRate
from meanfield.families.latent_tree.initial_state import InitialState, initial_weights
from meanfield.families.latent_tree.settings import (
    DensitySettings,
    ExplicitStart,
    NormalisesOutputs,
    OperatorSettings,
    ParticleSettings,
    PopulationSettings,
    RingObjects,
    SphereStart,
    Start,
    StationarySettings,
    UniformStart,
)
from meanfield.families.latent_tree.shape import Shape
from meanfield.families.latent_tree.tree import Tree
from meanfield.families.latent_tree.weights import ManyNodes, Motion, Weights
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of, least_and_largest
from meanfield.networks.contrast import Contrast, Kind
from meanfield.networks.normalisation import Normalisation, Rectified
from meanfield.problems.base import Time
from meanfield.problems.clock import ClockedProblem
from meanfield.results.initial_state import check_start


class Network(NormalisesOutputs):
    """Network with the shape of the tree: some nodes for each latent, fed by all nodes of its children."""

    nodes_per_latent: int = Field(ge=1, le=1000, description="nodes for each latent, the root included")
    bias: bool = Field(default=False, description="whether nodes have biases")
    initial: Start = Field(
        default=UniformStart(law="uniform"), description="weights at the start, { law = 'uniform', seed = 0 }"
    )


class Loss(Part):
    """Contrastive loss."""

    kind: Kind = Field(
        default="simple",
        description="simple, triplet, infonce, exact (weights of the pair of samples), beta, nt_xent, or batch_ratio "
        "(the public code's)",
    )
    temperature: Annotated[float, Field(ge=1e-6, le=1e6), OrSchedule()] = Field(
        default=0.1, description="tau of all kinds but simple and beta"
    )
    margin: Annotated[float, Field(ge=-1e6, le=1e6), OrSchedule()] = Field(
        default=0.0, description="r0 of the soft triplet loss"
    )
    negatives: int = Field(default=1, ge=1, le=1000, description="H, negatives for each anchor of infonce and exact")
    beta: Annotated[float, Field(ge=-1e3, le=1e3), OrSchedule()] = Field(
        default=0.0,
        description="weight of distances between views of one sample, of the kind beta, and above -1 where nt_xent is "
        "trained on images",
    )

    @after_fields
    def _keys_belong_to_the_kind(self) -> None:
        for key, kinds in (("margin", ("triplet",)), ("beta", ("beta", "nt_xent"))):
            if getattr(self, key) != 0.0 and self.kind not in kinds:
                raise FieldError(key, f"belongs to kind = '{kinds[0]}'; set that, or remove {key}")
        if self.kind == "nt_xent" and isinstance(self.beta, Schedule):
            self.beta.narrow(gt=-1.0)
        elif self.kind == "nt_xent" and self.beta <= -1.0:
            raise FieldError("beta", f"= {self.beta:g}: kind = 'nt_xent' is divided by 1 + beta; take more than -1")
        if self.negatives > 1 and self.kind not in ("infonce", "exact"):
            raise FieldError("negatives", f"{self.negatives}: kind = '{self.kind}' has one negative; remove the key")

    @property
    def contrast(self) -> Contrast:
        """The loss as a function."""
        return Contrast(self.kind, self.temperature, self.margin, self.negatives, self.beta)

    @property
    def views(self) -> int:
        """Number of views that a step takes for each anchor, the samples themselves for exact weights included."""
        return self.augmented + (1 + self.negatives) * (self.kind == "exact")

    @property
    def augmented(self) -> int:
        """The same without the samples themselves: anchors, positives and negatives."""
        return 2 if self.kind == "nt_xent" else 2 + self.negatives


class Training(HasMomentum):
    """SGD with fresh samples in each batch."""

    omitted: ClassVar[Mapping[str, Any]] = {"momentum": 0.0, "momentum_rate": None, "weight_decay": 0.0}

    learning_rate: Annotated[float, Field(gt=0, le=1e6), OrSchedule(may_vanish=False)] = Field(
        default=0.1, description="step size of SGD with the gradient through all branches"
    )
    batch_size: Annotated[int, Field(ge=1, le=10**6), OrSchedule()] = Field(default=128, description="anchors per step")
    momentum: Annotated[float, Field(ge=0, lt=1), OrSchedule()] = Field(
        default=0.0, description="share of the last step of sgd that is added to a step"
    )
    momentum_rate: MomentumRate = None
    average_rate: AverageRate = None


class TrainingTime(Time):
    """End of a run, and its output times."""

    stop: float = Field(
        ge=1e-9, le=1e12, description="last time of the flow W' = -grad L; step k of SGD is at k learning_rate"
    )


class Problem(ClockedProblem):
    """Latent-tree problem (latent_tree.md, section 1) with the settings of the methods."""

    settings: ClassVar[frozenset[str]] = frozenset(
        {"operator", "population", "particles", "density", "stationary", "training"}
    )
    seed_key: ClassVar[str | None] = "particles.seed"
    start_key: ClassVar[str | None] = "network.initial"
    keys_of_start: ClassVar[tuple[str, ...]] = ("network.initial.weights", "network.initial.biases")
    in_phases: ClassVar[tuple[str, ...]] = (
        "training",
        *(f"loss.{key}" for key in ("temperature", "margin", "beta", "negatives")),
    )

    # None where the inputs are others: what asks for a tree does so where there is one.
    tree: Tree = Field(default=cast("Any", None), description="tree of latents that generates the inputs")
    data: RingObjects | None = Field(default=None, description="other inputs in place of a tree, law = 'ring_objects'")
    network: Network
    initial: InitialState | None = Field(
        default=None, description="a file from which the weights start, such as { from = 'flow.nc', time = 2.0 }"
    )
    loss: Loss = Loss()
    training: Training = Training()
    time: TrainingTime
    operator: OperatorSettings = OperatorSettings()
    population: PopulationSettings = PopulationSettings()
    density: DensitySettings = DensitySettings()
    stationary: StationarySettings = StationarySettings()
    particles: ParticleSettings = ParticleSettings()

    @after_fields
    def _inputs_are_given_once(self) -> None:
        given: Any = self.tree
        if (given is None) == (self.data is None):
            raise ValueError("give one of the tables [tree] and [data], which both say what the inputs are")
        if self.data is not None and self.network.output_normalisation:
            raise ValueError(
                "data.law = 'ring_objects' has nodes as outputs, which are rectified and not normalised; set "
                "network.output_normalisation to false"
            )

    @after_fields
    def _start_fits_the_network(self) -> None:
        start: Any = self.network.initial
        if isinstance(start, ExplicitStart):
            start.check_shape(self.shape, self.network.bias)
            if not self.particles.common_start:
                raise ValueError(
                    "particles.common_start = false: network.initial.law = 'explicit' gives one start, and none can be "
                    "drawn; remove the key, or take the law 'uniform'"
                )
        if isinstance(start, SphereStart) and self.shape.depth != 2:
            raise ValueError(
                "network.initial.law = 'sphere' is for trees with two levels of latents; set tree.depth to 2, or take "
                "the law 'uniform'"
            )
        if isinstance(start, SphereStart) and start.outputs > self.shape.latents[1]:
            raise ValueError(
                f"network.initial.outputs = {start.outputs}: nodes of each of the {self.shape.latents[1]} latent(s) "
                "below the root have outgoing weights to one output, and some outputs would have none; lower it to "
                f"{self.shape.latents[1]}, or give the root more children"
            )
        check_start(self)

    @after_fields
    def _batches_fit_the_loss(self) -> None:
        batch, beta = self.training.batch_size, self.loss.beta
        if self.loss.kind == "nt_xent" and self.trusted and least_and_largest(batch, 0.0, self.time.stop)[0] < 2:
            raise ValueError(
                f"training.batch_size = {in_words_of(batch)}: loss.kind = 'nt_xent' takes negatives from the batch; "
                "raise it to 2 or more"
            )
        if self.loss.kind == "nt_xent" and beta != 0.0:
            raise ValueError(
                f"loss.beta = {in_words_of(beta)}: on trees it belongs to loss.kind = 'beta', and with 'nt_xent' to "
                "training on images; remove it, or take the kind 'beta'"
            )
        if self.trusted:  # schedules of a result are not opened
            per_time = self.steps_per_time
            rate = f"training.learning_rate = {1.0 / per_time:g}"
            self.particles.check_steps(self.time, per_time, rate, "lower the first or raise the second")

    @property
    def shape(self) -> Shape:
        """Shape of the tree and the network."""
        if self.data is not None:
            return Shape((self.data.field,), self.network.nodes_per_latent)
        start = self.network.initial
        outputs = start.outputs if isinstance(start, SphereStart) else None
        values, inputs = self.tree.inputs.shape
        return Shape(self.tree.branching, self.network.nodes_per_latent, outputs, values, inputs)

    @property
    def weight_count(self) -> int:
        """Number of weights and biases."""
        shape, bias = self.shape, int(self.network.bias)
        latents = enumerate(shape.latents[1:], 1)
        return sum(count * shape.width(level) * (shape.inputs[level - 1] + bias) for level, count in latents)

    @property
    def initial_weights(self) -> Weights:
        """Weights at the start, of runs of a file those of the first."""
        weights: Weights = initial_weights(self)
        return weights

    def drawn_weights(self, rng: Generator | None = None) -> Weights:
        """Weights by the law of the start, from its seed or, for a run with a start of its own, another generator."""
        return self.network.initial.weights_of(self.shape, self.network.bias, rng)

    @property
    def output(self) -> Normalisation | Rectified:
        """Outputs as a function of the last layer."""
        return self.normalisation if self.data is None else Rectified(self.normalisation)

    @property
    def normalisation(self) -> Normalisation:
        """Normalisation of outputs, which count by their direction under `nt_xent`."""
        return Normalisation(True) if self.loss.kind == "nt_xent" else self.network.normalisation

    @property
    def contrast(self) -> Contrast:
        """The loss as a function, with the number of negatives of `nt_xent`, the other samples of a batch."""
        found = self.loss.contrast
        return replace(found, negatives=self.training.batch_size - 1) if found.kind == "nt_xent" else found

    @property
    def motion(self) -> Motion:
        """How weights move down a gradient."""
        start = self.network.initial
        if isinstance(start, SphereStart):
            return ManyNodes(self.shape.nodes, start.fixed_lengths)
        return Motion()

    @property
    def averages_nodes(self) -> bool:
        """Whether outputs are averages over nodes, which have a law where there are many."""
        return isinstance(self.network.initial, SphereStart) and self.tree.is_symmetric_binary

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        shape = self.shape
        return {"latent": len(shape.level_of), "node": shape.nodes, "level": shape.depth}
