"""Tables of the problem file besides the data and the filters: the model, SGD, the search, and the density."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from meanfield.ensembles.momentum import HasMomentum, MomentumRate
from meanfield.ensembles.settings import AverageRate, StartSettings
from meanfield.ingredients.activations import NamesActivation
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.key import OrSchedule


class Training(HasMomentum):
    """SGD in batches of pairs."""

    learning_rate: Annotated[float, Field(gt=0, le=1e6), OrSchedule(may_vanish=False)] = Field(
        default=0.02, description="eta, the step size, for instance 0.02, which also is the time that a step takes"
    )
    batch_size: Annotated[int, Field(ge=2, le=10**7), OrSchedule()] = Field(
        default=128, description="N, the number of samples per step"
    )
    momentum: Annotated[float, Field(ge=0, lt=1), OrSchedule()] = Field(
        default=0.0, description="share of the last step that is added to a step"
    )
    momentum_rate: MomentumRate = None
    weight_decay: Annotated[float, Field(ge=0, le=1e6), OrSchedule()] = Field(
        default=0.0, description="multiple of the weights in the gradient"
    )
    average_rate: AverageRate = None


class SearchSettings(Part):
    """Search for critical points in more than two coordinates, where they are not enumerated."""

    starts: int = Field(
        default=300,
        ge=10,
        le=10**5,
        description="number of random filters that are followed uphill, each a basin's vote",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of these filters")


class DensitySettings(Part):
    """Accuracy of the density of filters, and whether it is that of one filter over runs."""

    tolerance: float = Field(
        default=1e-3,
        ge=1e-6,
        le=0.1,
        description="error allowed in the moments of the density; cells are halved until two grids agree to it",
    )
    noise: bool = Field(
        default=False,
        description="whether the density is the law of one filter (filters.count = 1) over runs of SGD, with the noise "
        "of its batches, rather than that of infinitely many filters",
    )


class PopulationSettings(Part):
    """Exact flow of all weights."""

    tolerance: float = Field(
        default=1e-9,
        ge=1e-13,
        le=1e-2,
        description="error of a step of the integrator, of weights of size 1, and of a Gaussian importance",
    )
    finite_batch: bool = Field(
        default=False, description="whether the drift is that of batches of training.batch_size, or of large ones"
    )
    fast_top: bool = Field(
        default=False,
        description="whether the top layer of two is always at its optimum given the filters, as if it learnt much "
        "faster, in the exact flow and in SGD",
    )


class ParticleSettings(StartSettings):
    """Replicas of SGD."""

    test_batches: int = Field(
        default=8, ge=1, le=10**5, description="fresh batches whose mean is the energy at an output time"
    )


class BatchNorm(Part):
    """Batch normalisation of the filters of two layers, behind the activation, with statistics of each view."""

    active: bool = Field(default=False, description="whether there is batch normalisation")
    differentiate_mean: bool = Field(default=True, description="whether gradients pass through means of batches")
    differentiate_variance: bool = Field(default=True, description="whether they pass through variances of batches")
    epsilon: float = Field(default=1e-5, ge=0, le=1e3, description="number that is added to variances")


class Model(NamesActivation):
    """Network that is trained."""

    layers: Literal[1, 2] = Field(default=1, description="1 for filters on the sphere, 2 for filters with a top layer")
    outputs: int = Field(default=50, ge=1, le=10**4, description="number of outputs of the top layer")
    normalise_outputs: bool = Field(
        default=False, description="whether outputs of two layers are divided by their length"
    )
    unit_filters: bool = Field(default=True, description="whether filters are kept at length 1")
    unit_top: bool = Field(default=True, description="whether the top layer is kept at Frobenius norm 1")
    batch_norm: BatchNorm = Field(default=BatchNorm(), description="batch normalisation, a table with active = true")

    @after_fields
    def _keys_fit_the_layers(self) -> None:
        if self.layers == 2:
            return
        for key, usual in (("normalise_outputs", False), ("unit_filters", True), ("unit_top", True)):
            if getattr(self, key) != usual:
                raise FieldError(key, f"= {str(not usual).lower()} is for layers = 2; set that, or remove {key}")
        if self.batch_norm.active:
            raise FieldError("batch_norm", "is for layers = 2; set that, or remove batch_norm")
