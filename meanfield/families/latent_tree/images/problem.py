"""Problems of contrastive learning on images: data, dense network, loss, training, time."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from meanfield.families.latent_tree.problem import Loss, Training, TrainingTime
from meanfield.families.latent_tree.settings import NormalisesOutputs, OneStartSettings, UniformStart
from meanfield.ingredients.images.part import ArrayData
from meanfield.ingredients.part import Part
from meanfield.networks.dense import DenseWeights, uniform_start
from meanfield.problems.base import Problem

Width = Annotated[int, Field(ge=1, le=100_000)]  # nodes of a layer
Widths = Annotated[tuple[Width, ...], Field(strict=False, min_length=1, max_length=16)]


class DenseNetwork(NormalisesOutputs):
    """Dense network of ReLU nodes; its inputs are the pixels of an image, row by row, channels last."""

    widths: Widths = Field(description="nodes of each layer, for instance [128, 32]; the last one is not rectified")
    bias: bool = Field(default=False, description="whether nodes have biases")
    initial: UniformStart = UniformStart(law="uniform")


class ImageTraining(Training):
    """Training with fresh views in each batch, whose images are drawn with replacement."""

    optimiser: Literal["sgd", "adam"] = Field(
        default="sgd", description="sgd, or adam with the usual decay rates 0.9 and 0.999"
    )
    weight_noise: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="eta: after each epoch weights become (1 - eta) W + eta X, with X uniform within "
        "sqrt(6/(inputs + nodes))",
    )


class OperatorSettings(Part):
    """Finite population over which operators are averages."""

    images: int = Field(default=32, ge=2, le=10**5, description="number of images, drawn from those trained on")
    views: int = Field(default=4, ge=1, le=10**4, description="number of views of each")
    seed: int = Field(default=0, ge=0, description="seed of the draw, a whole number >= 0")


class LossSettings(Part):
    """Batches that estimate the loss, which precede the keys that SGD of all families has."""

    loss_batches: int = Field(
        default=8, ge=1, le=10**4, description="number of fresh batches that give the loss at each output time"
    )


class TrainingSettings(OneStartSettings, LossSettings):
    """Settings of training."""

    @property
    def kind(self) -> str:
        """See `ReplicaSettings.kind`."""
        return "image_statistics" if self.record == "statistics" else "image_training"


class ImageProblem(Problem):
    """Contrastive learning of a dense network on images (latent_tree.md, section 1.2)."""

    settings: ClassVar[frozenset[str]] = frozenset({"operator", "particles", "training"})
    seed_key: ClassVar[str | None] = "particles.seed"

    data: ArrayData
    network: DenseNetwork
    loss: Loss = Loss()
    training: ImageTraining = ImageTraining()
    operator: OperatorSettings = OperatorSettings()
    time: TrainingTime
    particles: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _batches_fit_the_loss(self) -> ImageProblem:
        training = self.training
        if self.loss.kind == "nt_xent" and training.batch_size < 2:
            raise ValueError(
                f"training.batch_size = {training.batch_size}: loss.kind = 'nt_xent' takes negatives from the batch; "
                "raise it to 2 or more"
            )
        rate = f"training.learning_rate = {training.learning_rate:g}"
        self.particles.check_steps(self.time, self.steps_per_time, rate, "lower the first or raise the second")
        return self

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of nodes from the inputs up."""
        return (self.data.read.inputs, *self.network.widths)

    @property
    def initial_weights(self) -> DenseWeights:
        """Weights at the start."""
        return self.drawn_weights(np.random.default_rng(self.network.initial.seed))

    def drawn_weights(self, rng: Generator) -> DenseWeights:
        """Weights at the start of a run, drawn by a generator."""
        return uniform_start(self.widths, self.network.bias, rng)

    @property
    def steps_per_time(self) -> float:
        """Steps of training per unit of time."""
        return 1.0 / self.training.learning_rate

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        return {"level": len(self.network.widths)}

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        return {"learning_rate": self.training.learning_rate, "batch_size": self.training.batch_size}
