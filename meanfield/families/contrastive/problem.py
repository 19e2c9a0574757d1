"""Contrastive problems: network, training, features, augmentation, prior, time. Frozen objects that know no method.

All quantities are dimensionless; time is t = k/N for SGD step k.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from meanfield.ensembles import momentum
from meanfield.errors import InputError
from meanfield.families.contrastive.initial_overlaps import overlap_of_channels, overlaps_of_features
from meanfield.families.contrastive.initial_state import InitialState
from meanfield.families.contrastive.settings import DecorrelationSettings, ParticleSettings
from meanfield.families.contrastive.tables import Augmentation, Feature, Model
from meanfield.ingredients.laws import (
    CoordinateLaw,
    GaussianResidual,
    JointLaw,
    ResidualLaw,
)
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.laws.hidden import ThreePoint
from meanfield.ingredients.part import after_fields
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.problems import base
from meanfield.problems.base import Time
from meanfield.problems.phases import pieces_of
from meanfield.problems.problem_keys import with_value
from meanfield.results.initial_state import check_start
from meanfield.typing import FloatArray


class Problem(base.Problem):
    """Contrastive-learning problem (theory.md, section 1) with the settings of the methods.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/sparse_prior.toml")
    >>> problem.model.learning_rate
    0.02
    """

    settings: ClassVar[frozenset[str]] = frozenset({"density", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"
    keys_of_start: ClassVar[tuple[str, ...]] = ("features[].initial_overlap", "model.initial_channel_overlap")
    in_phases: ClassVar[tuple[str, ...]] = (
        "model.activation", "model.centering", "model.learning_rate", "model.batch_size", "features[].hidden", "hidden",
        "augmentation", "prior", "decorrelation",
    )  # fmt: skip

    model: Model
    features: Annotated[tuple[Feature, ...], Field(strict=False)] = Field(
        description="one [[features]] table per feature, with double brackets"
    )
    hidden: JointLaw | None = Field(
        default=None, description="the joint law of the hidden variables of all features, where they are dependent"
    )
    initial_residual: ResidualLaw = Field(
        default=GaussianResidual(), description="the law of what is not along the features in the initial weights"
    )
    initial: InitialState | None = Field(
        default=None, description="a file from which the weights start, such as { from = 'density.nc', time = 2.0 }"
    )
    augmentation: Augmentation | None = None
    prior: PriorSettings = PriorSettings()
    decorrelation: DecorrelationSettings | None = None
    time: Time
    density: DensitySettings = DensitySettings()
    particles: ParticleSettings = ParticleSettings()

    @model_validator(mode="before")
    @classmethod
    def _several_channels_choose_a_scheme(cls, data: Any) -> Any:
        """Leave the scheme of a density to the method where there are several channels, unless the file says it."""
        if not isinstance(data, dict):
            return data
        model = data.get("model")
        settings = data.get("density", {})
        channels = model.get("channels", 1) if isinstance(model, dict) else getattr(model, "channels", 1)
        several = isinstance(channels, int) and channels > 1
        if several and isinstance(settings, dict) and settings.get("scheme") is None:
            return data | {"density": settings | {"scheme": "automatic"}}
        return data

    @after_fields
    def _there_is_a_feature(self) -> None:
        if not self.features:
            raise ValueError("features is empty; add a [[features]] table with hidden and initial_overlap")

    @after_fields
    def _hidden_variables_have_one_law(self) -> None:
        own = [k for k, feature in enumerate(self.features) if feature.hidden is not None]
        if self.hidden is None:
            lacking = [k for k in range(len(self.features)) if k not in own]
            if lacking:
                raise ValueError(
                    f"features[{lacking[0]}].hidden: is missing; add it, or a [hidden] table with the joint law of all"
                )
        elif own:
            raise ValueError(
                f"features[{own[0]}].hidden: the [hidden] table is the joint law of all hidden variables already; "
                "remove one of the two"
            )
        elif self.hidden.dimension != len(self.features):
            raise ValueError(
                f"hidden: a law of {self.hidden.dimension} variable(s) for {len(self.features)} feature(s); "
                "give one variable for each feature"
            )

    @after_fields
    def _random_start_has_no_residual(self) -> None:
        if self.random_start and self.initial_residual != GaussianResidual():
            raise ValueError(
                f"initial_residual.law = '{self.initial_residual.law}' with features.initial_overlap = 'random', which "
                "is uniform on the sphere; remove initial_residual, or give numbers for initial_overlap"
            )

    @after_fields
    def _start_is_said_once(self) -> None:
        lacking = [k for k, feature in enumerate(self.features) if feature.initial_overlap is None]
        if self.initial is None and lacking:
            raise ValueError(f"features[{lacking[0]}].initial_overlap: is missing; add it")
        check_start(self)

    @after_fields
    def _start_is_possible(self) -> None:
        if self.initial is not None:
            return
        q = overlaps_of_features([feature.initial_overlap for feature in self.features], self.model.channels)
        given = self.model.initial_channel_overlap
        if self.random_start and given is not None:
            raise ValueError(
                f"model.initial_channel_overlap = {given} with features.initial_overlap = 'random': channels that "
                "start at random are orthogonal; remove one of the two"
            )
        overlap_of_channels(given, q)

    @after_fields
    def _refuse_channel_keys_for_one_channel(self) -> None:
        if self.model.channels > 1:
            if self.initial_residual != GaussianResidual():
                raise ValueError(
                    f"initial_residual.law = '{self.initial_residual.law}' with model.channels = "
                    f"{self.model.channels}: residual weights of several channels are Gaussian; remove initial_residual"
                )
            return
        for key, given in (
            ("model.initial_channel_overlap", self.model.initial_channel_overlap),
            ("decorrelation", self.decorrelation),
        ):
            if given is not None:
                shown = f" = {given}" if key.startswith("model") else ""
                raise ValueError(
                    f"{key}{shown} with model.channels = 1: a single channel has no other; remove it, or set "
                    "model.channels to 2 or more"
                )

    @after_fields
    def _fourth_moments_exist_at_all_times(self) -> None:
        for k, feature in enumerate(self.features):
            if self.trusted and isinstance(law := feature.hidden, ThreePoint):  # what a result names is not opened
                law.check_moments(f"features[{k}].hidden", self.time.stop)

    @after_fields
    def _dimension_leaves_room(self) -> None:
        d1, d2 = len(self.features), self.model.channels
        least = d1 + 2 * d2
        if self.particles.dimension < least:
            several = f" and {d2} channels" if d2 > 1 else ""
            raise ValueError(
                f"particles.dimension = {self.particles.dimension}: with {d1} feature(s){several} it must be at "
                f"least {least}, so that noise orthogonal to features and weights exists; raise it"
            )

    @after_fields
    def _times_fit_steps(self) -> None:
        self.particles.check_times(self.time)

    @property
    def random_start(self) -> bool:
        """Whether the weights start uniformly on the sphere."""
        return isinstance(self.features[0].initial_overlap, str)

    @property
    def initial_overlap(self) -> FloatArray:
        """q(0), shape (d1,), or (d1, d2) with several channels; zero for a random start."""
        q = self._initial_overlaps
        return q if self.model.channels > 1 else q[:, 0]

    @property
    def initial_channel_overlap(self) -> FloatArray:
        """M(0), shape (d2, d2); channels that start at random are orthogonal."""
        if self.initial is not None:
            return np.asarray(self.initial.atoms.M.mean(axis=0))
        return overlap_of_channels(self.model.initial_channel_overlap, self._initial_overlaps)

    @property
    def _initial_overlaps(self) -> FloatArray:
        """q(0) as a matrix, shape (d1, d2), also for one channel."""
        if self.initial is not None:
            return self.initial.atoms.overlap
        return overlaps_of_features([feature.initial_overlap for feature in self.features], self.model.channels)

    @property
    def decorrelation_strength(self) -> float:
        """Strength lambda of the penalty on covariances of channels; 0 without one."""
        return 0.0 if self.decorrelation is None else self.decorrelation.strength

    @property
    def hidden_laws(self) -> tuple[HiddenPart, ...]:
        """Laws of independent groups of hidden variables: one per feature, or one for all."""
        return (self.hidden,) if self.hidden is not None else tuple(f.hidden for f in self.features if f.hidden)

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """See `meanfield.Problem.coordinates`."""
        return tuple(feature.coordinate for feature in self.features)

    @property
    def priors(self) -> tuple[PriorSettings, ...]:
        """Priors of all phases."""
        return tuple(piece.problem.prior for piece in pieces_of(self))

    @property
    def noise_covariance(self) -> FloatArray:
        """V, shape (2, 2); zero without augmentation."""
        return np.zeros((2, 2)) if self.augmentation is None else self.augmentation.covariance

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        d2 = self.model.channels
        several = {"channel": d2, "channel_": d2} if d2 > 1 else {}
        return {"feature": len(self.features)} | several | ({"diagonal": 2} if d2 == 2 else {})

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        numbers = {key: getattr(self.model, key) for key in ("learning_rate", "batch_size")}
        steady = {key: value for key, value in numbers.items() if not isinstance(value, Schedule)}
        return {"dimension": self.particles.dimension, **steady}


FACTORS = ("model.learning_rate", "prior.strength", "decorrelation.strength")
"""Keys of numbers that multiply parts of the limit, while others change g and Lambda as functions."""


def without_velocity(problem: Problem) -> Problem:
    """The problem without a velocity that lasts."""
    return problem if problem.model.momentum_rate is None else with_value(problem, "model.momentum_rate", None)


def check_no_velocity(problem: Problem) -> None:
    """Refuse a velocity that lasts where a method knows weights alone."""
    momentum.check_no_velocity(problem.model, "order parameters and SGD", "model")


def check_one_channel(problem: Problem, what: str) -> None:
    """Refuse several channels where a method knows only one.

    Parameters
    ----------
    what : str
        The method in the plural, for the message.
    """
    if problem.model.channels > 1:
        raise InputError(
            f"model.channels = {problem.model.channels}: {what} are known for a single channel; use the order "
            "parameters or particles, or set model.channels to 1"
        )
