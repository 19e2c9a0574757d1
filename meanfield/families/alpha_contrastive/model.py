"""Networks that are trained: one layer of filters, or filters in places with a linear layer on top."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from meanfield.ingredients.activation_part import NamesActivation
from meanfield.ingredients.part import FieldError, Part


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

    @model_validator(mode="after")
    def _keys_fit_the_layers(self) -> Model:
        if self.layers == 2:
            return self
        for key, usual in (("normalise_outputs", False), ("unit_filters", True), ("unit_top", True)):
            if getattr(self, key) != usual:
                raise FieldError(key, f"= {str(not usual).lower()} is for layers = 2; set that, or remove {key}")
        if self.batch_norm.active:
            raise FieldError("batch_norm", "is for layers = 2; set that, or remove batch_norm")
        return self
