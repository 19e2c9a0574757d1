"""Tables of the problem file: those of methods, starts of the network, and two objects on a ring of pixels."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from meanfield.ensembles.settings import StartSettings
from meanfield.families.latent_tree.shape import Shape
from meanfield.families.latent_tree.weights import Weights, sphere_weights, uniform_weights
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.networks.normalisation import Normalisation
from meanfield.typing import BoolArray, FloatArray

MOST_ENTRIES = 1 << 16
"""Largest number of entries of a list."""

MOST_LEVELS = 16
"""Largest depth of a tree."""

Number = Annotated[float, Field(ge=-1e6, le=1e6)]

Row = Annotated[tuple[Number, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]

Rows = Annotated[tuple[Row, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]

Blocks = Annotated[tuple[Rows, ...], Field(strict=False, min_length=1, max_length=MOST_ENTRIES)]

BiasesByLevel = Annotated[tuple[Rows, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]

WeightsByLevel = Annotated[tuple[Blocks, ...], Field(strict=False, min_length=1, max_length=MOST_LEVELS)]


class UniformStart(Part):
    """Weights and biases of the usual default, uniform within 1/sqrt(number of inputs)."""

    law: Literal["uniform"]
    seed: int = Field(default=0, ge=0, description="seed of the draw, a whole number >= 0")

    def weights_of(self, shape: Shape, bias: bool, rng: Generator | None = None) -> Weights:
        """Weights of a network, drawn by its own seed or another generator."""
        return uniform_weights(shape, bias, rng or np.random.default_rng(self.seed))


class SphereStart(Part):
    """Nodes of a network with a limit of many nodes: weights (and bias) on the unit sphere, outgoing weights +1 or -1.

    Outputs are sums over latents of averages over their nodes, and a node moves at a rate that does not depend on their
    number (latent_tree.md, section 3.4).
    """

    law: Literal["sphere"]
    positive: float = Field(
        default=1.0, ge=0, le=1, description="share of nodes with the outgoing weight +1; the others have -1"
    )
    fixed_lengths: bool = Field(
        default=False,
        description="whether weights stay on the sphere and outgoing weights as they are, or all are trained",
    )
    outputs: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="number of outputs; nodes of the first latent below the root have their outgoing weights to the "
        "first output, those of the second to the second, and so on in turns",
    )
    seed: int = Field(default=0, ge=0, description="seed of the draw, a whole number >= 0")

    def weights_of(self, shape: Shape, bias: bool, rng: Generator | None = None) -> Weights:
        """See `UniformStart.weights_of`."""
        return sphere_weights(shape, bias, self.positive, rng or np.random.default_rng(self.seed))


class ExplicitStart(Part):
    """Weights and biases that are given."""

    law: Literal["explicit"]
    weights: WeightsByLevel = Field(
        description="weights, nested by level from 1 to L, latent from left to right, node, and input, the left "
        "child's nodes first"
    )
    biases: BiasesByLevel | None = Field(
        default=None, description="biases, nested by level from 1 to L, latent, and node, where network.bias = true"
    )

    def weights_of(self, shape: Shape, bias: bool, rng: Generator | None = None) -> Weights:
        """See `UniformStart.weights_of`; nothing is drawn."""
        W = [np.array(level, dtype=float) for level in self.weights]
        b = [np.array(level, dtype=float) for level in self.biases] if self.biases is not None else None
        return Weights.nested(shape, W, b)

    def check_shape(self, shape: Shape, bias: bool) -> None:
        """Refuse nested lists whose lengths are not those of the network."""
        counts = list(shape.latents[1:])
        nodes = [shape.width(level) for level in shape.levels]
        if bias and self.biases is None:
            raise ValueError("network.initial.biases is missing; add it, or set network.bias to false")
        if not bias and self.biases is not None:
            raise ValueError("network.initial.biases belongs to network.bias = true; set that, or remove biases")
        _check_nesting("weights", self.weights, [counts, nodes, list(shape.inputs)])
        if self.biases is not None:
            _check_nesting("biases", self.biases, [counts, nodes])


Start = Annotated[UniformStart | SphereStart | ExplicitStart, Field(discriminator="law")]


def _check_nesting(key: str, given: Any, sizes: list[Any]) -> None:
    """Refuse nested lists whose lengths are not those of the network."""
    start = f"network.initial.{key}"
    if len(given) != len(sizes[0]):
        raise ValueError(
            f"{start} has {len(given)} level(s), but the network {len(sizes[0])}; give one list for each, from level 1"
        )
    for number, level in enumerate(given):
        _check_inner(f"{start}[{number}]", level, [size[number] for size in sizes])


def _check_inner(path: str, given: Any, sizes: list[int]) -> None:
    if len(given) != sizes[0]:
        raise ValueError(f"{path} has {len(given)} element(s), and {sizes[0]} are wanted; see the order of its nesting")
    for i, inner in enumerate(given if len(sizes) > 1 else ()):
        _check_inner(f"{path}[{i}]", inner, sizes[1:])


class PopulationSettings(Part):
    """Accuracy of the gradient flow."""

    tolerance: float = Field(
        default=1e-9, ge=1e-12, le=1e-3, description="error of a step of the flow, relative to the weights"
    )


class StationarySettings(Part):
    """Search for networks at rest."""

    starts: int = Field(
        default=40,
        ge=1,
        le=10**5,
        description="number of random networks that are followed to rest, and of others from which unstable states are "
        "searched for",
    )
    seed: int = Field(default=0, ge=0, description="seed of the random networks, a whole number >= 0")


class OperatorSettings(Part):
    """Views that are drawn where operators of all configurations do not fit."""

    samples: int = Field(
        default=2000,
        ge=80,
        le=10**6,
        description="number of views that are drawn for each value of the root, where those of all configurations of "
        "the leaves do not fit",
    )
    seed: int = Field(default=0, ge=0, description="seed of the draw, a whole number >= 0")


class DensitySettings(Part):
    """Scheme and accuracy of densities of nodes."""

    scheme: Literal["automatic", "finite_volumes", "particles"] = Field(
        default="automatic",
        description="'finite_volumes' for cells that follow nodes with two or three weights, 'particles' for a sample "
        "of nodes with any number; 'automatic' for cells where they serve",
    )
    tolerance: float = Field(
        default=5e-3,
        ge=1e-4,
        le=0.1,
        description="error allowed in Delta, absolute below 1 and relative above, of cells of three weights and of "
        "particles; those of two weights are exact",
    )

    cells: int = Field(
        default=240,
        ge=12,
        le=10**5,
        description="number of cells of the circle for densities of two weights",
    )


class ScoreSettings(Part):
    """Samples that are drawn for the score, which precede the keys that SGD of all families has."""

    score_samples: int = Field(
        default=1000,
        ge=2,
        le=10**7,
        description="number of fresh samples from which correlations are estimated at each output time, as the public "
        "code does",
    )


class OneStartSettings(StartSettings):
    """Replicas that start with the weights of the methods without chance, unless they are told to draw their own."""

    common_start: bool = Field(
        default=True,
        description="whether all runs start with the weights that network.initial.seed gives, those of the methods "
        "without chance, or each draws its own by the same law",
    )


class ParticleSettings(OneStartSettings, ScoreSettings):
    """Settings of SGD."""


class NormalisesOutputs(Part):
    """Part of a problem that says whether outputs are normalised."""

    output_normalisation: bool = Field(default=False, description="whether outputs are f/(|f| + epsilon), or f itself")
    epsilon: float = Field(default=0.0, ge=0, le=1e3, description="of the normalisation; the public code has 1e-4")

    @after_fields
    def _epsilon_belongs_to_it(self) -> None:
        if self.epsilon and not self.output_normalisation:
            raise FieldError("epsilon", "belongs to output_normalisation = true; set that, or remove epsilon")

    @property
    def remedy(self) -> str:
        """Remedy where SGD blows up; under some losses outputs that are not normalised grow without bound."""
        slower = "lower training.learning_rate"
        if self.output_normalisation:
            return slower
        return f"set network.output_normalisation = true, take a shorter time.stop, or {slower}"

    @property
    def normalisation(self) -> Normalisation:
        """Outputs as a function of the last layer."""
        return Normalisation(self.output_normalisation, self.epsilon)


FIELD = 2
"""Number of neighbouring pixels that nodes see."""

OBJECTS = ((0, 1), (0, 2))
"""Pixels of both objects, from their place on."""


class RingObjects(Part):
    """Two objects on a ring, two pixels each: side by side, or with a gap; views have them at any place."""

    field: ClassVar[int] = FIELD

    law: Literal["ring_objects"]
    sites: int = Field(
        default=8, ge=4, le=10**6, description="d, number of pixels of the ring; with 3 objects coincide"
    )

    @property
    def given_object(self) -> FloatArray:
        """Probabilities of the patterns 00, 01, 10, 11 in the field of two pixels given the object, shape (2, 4)."""
        found = np.zeros((len(OBJECTS), 1 << FIELD))
        for z, pixels in enumerate(OBJECTS):
            for place in range(-max(pixels), FIELD):  # elsewhere no pixel of the object is in the field
                pattern = [(k - place) in pixels for k in range(FIELD)]
                found[z, 2 * pattern[0] + pattern[1]] += 1.0 / self.sites
            found[z, 0] += 1.0 - found[z].sum()
        return found

    def views(self, rng: Generator, objects: BoolArray) -> BoolArray:
        """Which of the two pixels views of objects cover, shape (views, 2); the objects are False for the first."""
        place = rng.integers(self.sites, size=len(objects))
        far = np.where(objects, OBJECTS[1][1], OBJECTS[0][1])
        pixel = np.arange(FIELD)
        first = pixel == place[:, None]
        second = pixel == ((place + far) % self.sites)[:, None]
        return np.asarray(first | second)
