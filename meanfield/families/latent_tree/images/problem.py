"""Problems of contrastive learning on images: data, network, loss, training, time."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.families.latent_tree.images.family import FOLLOWED
from meanfield.families.latent_tree.initial_state import InitialState, initial_weights
from meanfield.families.latent_tree.problem import Loss, Training, TrainingTime
from meanfield.families.latent_tree.settings import NormalisesOutputs, OneStartSettings, UniformStart
from meanfield.ingredients.images.part import ArrayData
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.schedules.shapes import in_words_of, least_and_largest
from meanfield.networks.convolutional import ConvolutionalNetwork, ConvolutionalWeights
from meanfield.networks.dense import DenseWeights, uniform_start
from meanfield.problems.clock import ClockedProblem
from meanfield.results.initial_state import check_start

Width = Annotated[int, Field(ge=1, le=100_000)]  # nodes of a layer
Widths = Annotated[tuple[Width, ...], Field(strict=False, min_length=1, max_length=16)]


class Convolution(Part):
    """Convolutions below the dense layers: a first one, and stages of blocks of two, whose pixels are averaged.

    They are those of ResNet-18 with a first convolution of 3 x 3 pixels if all keys but `channels` have their defaults.
    """

    channels: Widths = Field(description="channels of each stage, [64, 128, 256, 512] of ResNet-18")
    blocks: int = Field(default=2, ge=1, le=100, description="blocks of two convolutions in each stage")
    kernel: Literal[1, 3, 5, 7] = Field(default=3, description="pixels of the side of a kernel")
    stride: int = Field(
        default=2, ge=1, le=8, description="pixels of a step of the first convolution of each stage but the first"
    )
    residual: bool = Field(default=True, description="whether the input of a block is added to its output")
    batch_norm: bool = Field(
        default=True, description="whether channels are normalised over a batch, then scaled and shifted"
    )


class ImageNetwork(NormalisesOutputs):
    """Dense network of ReLU nodes on pixels, row by row and channels last, or on what convolutions make of them."""

    widths: Widths = Field(
        description="nodes of each layer, for instance [128, 32]; the last one is not rectified. Above convolutions "
        "they are the projector, for instance [512, 128]"
    )
    convolution: Convolution | None = Field(
        default=None, description="convolutions below, trained by PyTorch; by default there are none"
    )
    bias: bool = Field(default=False, description="whether nodes have biases, and channels that are not normalised")
    initial: UniformStart = UniformStart(law="uniform")


class ImageTraining(Training):
    """Training with fresh views in each batch, whose images are drawn with replacement."""

    optimiser: Literal["sgd", "adam"] = Field(
        default="sgd", description="sgd, or adam with the usual decay rates 0.9 and 0.999"
    )
    weight_decay: Annotated[float, Field(ge=0, le=1e6), OrSchedule()] = Field(
        default=0.0, description="multiple of all that is trained in the gradient"
    )
    weight_noise: Annotated[float, Field(ge=0, le=1), OrSchedule()] = Field(
        default=0.0,
        description="eta: after each epoch weights become (1 - eta) W + eta X, with X uniform within "
        "sqrt(6/(inputs + nodes))",
    )

    @after_fields
    def _momentum_is_of_sgd(self) -> None:
        for key, value in (("momentum", self.momentum), ("momentum_rate", self.momentum_rate or 0.0)):
            if self.optimiser == "adam" and value != 0.0:
                raise FieldError(key, f"= {in_words_of(value)}: optimiser = 'adam' has means of its own; remove it")


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


class ImageProblem(ClockedProblem):
    """Contrastive learning of a network on images (latent_tree.md, section 1.2)."""

    settings: ClassVar[frozenset[str]] = frozenset({"operator", "particles", "training"})
    seed_key: ClassVar[str | None] = "particles.seed"
    start_key: ClassVar[str | None] = "network.initial"
    in_phases: ClassVar[tuple[str, ...]] = (*FOLLOWED, "loss.negatives")

    data: ArrayData
    network: ImageNetwork
    initial: InitialState | None = Field(
        default=None, description="a file from which the weights start, such as { from = 'training.nc', time = 2.0 }"
    )
    loss: Loss = Loss()
    training: ImageTraining = ImageTraining()
    operator: OperatorSettings = OperatorSettings()
    time: TrainingTime
    particles: TrainingSettings = TrainingSettings()

    @after_fields
    def _start_fits_the_network(self) -> None:
        check_start(self)

    @after_fields
    def _batches_fit_the_loss(self) -> None:
        if not self.trusted:  # schedules of a result are not opened
            return
        batch = self.training.batch_size
        if self.loss.kind == "nt_xent" and least_and_largest(batch, 0.0, self.time.stop)[0] < 2:
            raise ValueError(
                f"training.batch_size = {in_words_of(batch)}: loss.kind = 'nt_xent' takes negatives from the batch; "
                "raise it to 2 or more"
            )
        rate = f"training.learning_rate = {1.0 / self.steps_per_time:g}"
        self.particles.check_steps(self.time, self.steps_per_time, rate, "lower the first or raise the second")

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of nodes from the inputs up."""
        return (self.data.read.inputs, *self.network.widths)

    @property
    def convolutional(self) -> ConvolutionalNetwork | None:
        """Shape of a network with convolutions."""
        if self.network.convolution is None:
            return None
        _, height, width, channels = self.data.read.pixels.shape
        return self._with_convolutions(height, width, channels)

    def _with_convolutions(self, *image: int) -> ConvolutionalNetwork:
        assert self.network.convolution is not None
        height, width, channels = image
        return ConvolutionalNetwork(
            image=(height, width, channels),
            widths=self.network.widths,
            bias=self.network.bias,
            **self.network.convolution.model_dump(),
        )

    @property
    def initial_weights(self) -> DenseWeights | ConvolutionalWeights:
        """Weights at the start, of runs of a file those of the first."""
        weights: DenseWeights | ConvolutionalWeights = initial_weights(self)
        return weights

    def drawn_weights(self, rng: Generator | None = None) -> DenseWeights | ConvolutionalWeights:
        """Weights that are drawn by the seed of the start, or by another generator."""
        convolutional, rng = self.convolutional, rng or np.random.default_rng(self.network.initial.seed)
        return uniform_start(self.widths, self.network.bias, rng) if convolutional is None else convolutional.start(rng)

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        if self.network.convolution is None:
            return {"level": len(self.network.widths)}
        return {"level": len(self._with_convolutions(1, 1, 1).layers)}  # whatever the images are, which may be away
