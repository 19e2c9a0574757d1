"""Problems of update rules: rule, data, features, students, side variables, prior, time. Frozen; they know no method.

All quantities are dimensionless; time is t = k/N for SGD step k (update_rules.md, section 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.families.update_rule.model import Model, Parameter, Side
from meanfield.families.update_rule.rule import Function, arguments_of
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate, HiddenLaw, JointLaw
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.part import FieldError, NamedValues, Part
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.ingredients.spectra import Spectrum
from meanfield.problems import base
from meanfield.problems.base import Time
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray

Overlap = Annotated[float, Field(ge=-1e6, le=1e6)]
Overlaps = Annotated[tuple[Overlap, ...], Field(strict=False)]
Chance = Annotated[float, Field(ge=0, le=1)]

OF_VECTORS = ("y", "s", "c", "t", "R", "Q")
"""Names that every rule may read: fields of features and students, hidden variables, time, and order parameters."""


class Data(Part):
    """Inputs of a sample."""

    signal: Literal["none", "spiked", "orthogonal"] = Field(
        default="none",
        description="'none' is white noise, 'spiked' adds features times hidden variables, 'orthogonal' does so where "
        "the noise has no part along them",
    )
    noise: float = Field(default=1.0, gt=0, le=1e6, description="variance of the noise of a coordinate")
    spectrum: Spectrum | None = Field(
        default=None,
        description="law of the eigenvalues rho of the covariance of the noise, by which the variance of a coordinate "
        "is multiplied, a table with law = ...; left out: all are 1",
    )
    observed: float = Field(
        default=1.0, gt=0, le=1, description="share of the coordinates that is kept in each sample, others are 0"
    )
    coins: Annotated[dict[str, Chance], AfterValidator(NamedValues)] = Field(
        default=NamedValues(),
        description="arguments that are 1 with a probability and else 0, such as { flip = 0.1 }",
    )
    normals: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description='arguments that are standard normal numbers of the sample, such as ["eps"]'
    )


class Feature(Part):
    """Feature or teacher: a vector that is not trained."""

    hidden: HiddenLaw | None = Field(
        default=None, description="law of the hidden variable that multiplies it, where data.signal has one"
    )
    coordinate: CoordinateLaw = Field(
        default=GaussianCoordinate(), description="a table with law = 'gaussian', 'rademacher', ..."
    )
    initial_overlap: Overlap | Overlaps = Field(
        default=0.0, description="w.u/N of each student at the start, a number, or a list of one for each student"
    )


class Student(Part):
    """Trained vector."""

    initial_norm: float = Field(default=1.0, gt=0, le=1e6, description="|w|^2/N at the start")
    initial_overlap: Overlaps = Field(
        default=(), description="overlaps with the students before it at the start, 0 if nothing is said"
    )


class OrderParameterSettings(Part):
    """Accuracy of the order parameters."""

    tolerance: float = Field(
        default=1e-6, ge=1e-12, le=1e-2, description="error allowed in R, Q, side variables and observables"
    )


class StepSettings(Part):
    """Kind of step, which precedes the keys that SGD of all families has."""

    method: Literal["auto", "plain", "chain"] = Field(
        default="auto",
        description="'plain' is SGD with its vectors, 'chain' follows the overlaps alone, exactly in law (linear "
        "priors, no mask); 'auto' takes the cheapest that gives what is asked for",
    )


class ParticleSettings(EnsembleSettings, StepSettings):
    """Settings of SGD at finite N."""

    dimension: int = Field(default=1000, ge=2, le=10**12, description="N, the number of coordinates")


class Problem(base.Problem):
    """Problem of an update rule (update_rules.md, section 1) with the settings of the methods."""

    settings: ClassVar[frozenset[str]] = frozenset({"order_parameters", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"
    in_phases: ClassVar[tuple[str, ...]] = ("model.rule_parameters", "model.batch_size", "data", "prior")

    model: Model
    data: Data = Data()
    features: Annotated[tuple[Feature, ...], Field(strict=False)] = Field(
        default=(), description="one [[features]] table for each vector that is not trained, with double brackets"
    )
    hidden: JointLaw | None = Field(
        default=None, description="the joint law of the hidden variables of all features, where they are dependent"
    )
    students: Annotated[tuple[Student, ...], Field(strict=False, min_length=1)] = Field(
        default=(Student(),), description="one [[students]] table for each trained vector; one of norm 1 without any"
    )
    side: Annotated[dict[str, Side], AfterValidator(NamedValues)] = Field(
        default=NamedValues(), description="tables of numbers that the algorithm trains, [side.NAME]"
    )
    prior: PriorSettings = PriorSettings()
    time: Time
    order_parameters: OrderParameterSettings = OrderParameterSettings()
    particles: ParticleSettings = ParticleSettings()

    @model_validator(mode="after")
    def _features_have_hidden_variables_if_there_is_a_signal(self) -> Problem:
        for k, feature in enumerate(self.features):
            if self.data.signal == "none" and feature.hidden is not None:
                raise ValueError(
                    f"features[{k}].hidden: data.signal = 'none' shows no hidden variable; set it to 'spiked' or "
                    "'orthogonal', or remove features.hidden"
                )
            if self.data.signal != "none" and feature.hidden is None and self.hidden is None:
                raise ValueError(
                    f"features[{k}].hidden: is missing, and data.signal = '{self.data.signal}' shows it; add it, or a "
                    "[hidden] table with the joint law of all"
                )
            if self.hidden is not None and feature.hidden is not None:
                raise ValueError(
                    f"features[{k}].hidden: the [hidden] table is the joint law of all hidden variables already; "
                    "remove one of the two"
                )
        if self.data.signal != "none" and not self.features:
            raise ValueError(f"features is empty, and data.signal = '{self.data.signal}' needs one; add [[features]]")
        if self.hidden is not None and self.data.signal == "none":
            raise ValueError(
                "hidden: data.signal = 'none' shows no hidden variable; set it to 'spiked' or 'orthogonal', or remove "
                "the [hidden] table"
            )
        if self.hidden is not None and self.hidden.dimension != len(self.features):
            raise ValueError(
                f"hidden: a law of {self.hidden.dimension} variable(s) for {len(self.features)} feature(s); "
                "give one variable for each feature"
            )
        return self

    @model_validator(mode="after")
    def _coordinates_keep_their_variances(self) -> Problem:
        for number, phase in enumerate(self.phases or ()):
            keys = [key for key in phase.set if key == "data" or key.startswith("data.spectrum")]
            if keys and pieces_of(self)[number].problem.data.spectrum != self.data.spectrum:
                raise ValueError(
                    f"phases[{number}].set: '{keys[0]}' changes the spectrum, and students know overlaps at the "
                    "eigenvalues of the start alone; leave it as it is, and set data.noise to scale it"
                )
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Problem:
        known: dict[str, str] = dict.fromkeys(OF_VECTORS, "what every rule may read")
        for key, names in (
            ("model.rule_parameters", self.model.rule_parameters),
            ("data.coins", self.data.coins),
            ("data.normals", self.data.normals),
            ("side", self.side),
        ):
            for name in names:
                if not name.isidentifier():
                    raise ValueError(f"{key}: '{name}' is no name that an argument can have; use letters and digits")
                if name in known:
                    raise ValueError(f"{key}: '{name}' is also {known[name]}; rename one of the two")
                known[name] = f"one of {key}"
        return self

    @model_validator(mode="after")
    def _arguments_are_known(self) -> Problem:
        known = self.readable
        for what, function in self.functions():
            for name in arguments_of(function, what):
                if name not in known:
                    missing = {"y": "features", "c": "data.signal"}.get(name, "")
                    hint = f"there is none without {missing}" if missing else nearest(name, known)
                    raise ValueError(f"model.rule: {what} reads '{name}'; {hint}")
        return self

    @model_validator(mode="after")
    def _parameters_are_read(self) -> Problem:
        """Check that what a file says has an effect: a misspelt name would have none."""
        if not self.model.at_hand or not all(side.at_hand for side in self.side.values()):
            return self
        read = sorted({name for what, function in self.functions() for name in arguments_of(function, what)})
        for key, names in (
            ("model.rule_parameters", self.model.rule_parameters),
            ("data.coins", self.data.coins),
            ("data.normals", self.data.normals),
        ):
            for name in names:
                if name not in read:
                    raise ValueError(f"{key}: the rule reads no '{name}'; it reads {', '.join(read)}; remove it")
        return self

    @model_validator(mode="after")
    def _start_is_possible(self) -> Problem:
        K = len(self.students)
        for m, feature in enumerate(self.features):
            given = feature.initial_overlap
            if isinstance(given, tuple) and len(given) != K:
                raise ValueError(
                    f"features[{m}].initial_overlap has {len(given)} number(s) for {K} student(s); give one for each"
                )
        for k, student in enumerate(self.students):
            if len(student.initial_overlap) not in (0, k):
                raise ValueError(
                    f"students[{k}].initial_overlap has {len(student.initial_overlap)} number(s), and there are {k} "
                    "student(s) before it; give one for each, or leave it out"
                )
        Q, R = self.initial_Q, self.initial_R
        least = float(np.linalg.eigvalsh(Q - R @ R.T)[0])
        if least < -1e-12 * np.abs(Q).max():  # rounding
            raise ValueError(
                f"features.initial_overlap: no students have them, as Q - R R^T has the eigenvalue {least:.4g}; "
                "lower initial_overlap, or raise students.initial_norm"
            )
        if self.model.constraint in ("gram_schmidt", "polar") and not np.array_equal(Q, np.eye(K)):
            raise ValueError(
                f"model.constraint = '{self.model.constraint}' keeps students orthonormal, and they start otherwise; "
                "leave students.initial_norm and students.initial_overlap out"
            )
        return self

    @model_validator(mode="after")
    def _dimension_leaves_room(self) -> Problem:
        vectors = len(self.features) + len(self.students)
        if self.particles.dimension < vectors + 1:
            raise FieldError(
                "particles.dimension",
                f"= {self.particles.dimension}: {vectors} features and students need at least {vectors + 1}; raise it",
            )
        return self

    @model_validator(mode="after")
    def _times_fit_steps(self) -> Problem:
        self.particles.check_times(self.time)
        return self

    def functions(self) -> Iterator[tuple[str, Function]]:
        """All functions of the rule and of side variables that are at hand, with words for them."""
        if self.model.at_hand:
            yield from self.model.functions.functions.items()
        yield from ((f"side.{name}.step", side.function) for name, side in self.side.items() if side.at_hand)

    @property
    def hidden_laws(self) -> list[HiddenPart]:
        """Laws of the groups of hidden variables that are independent of each other, in the order of features."""
        if self.hidden is not None:
            return [self.hidden]
        return [feature.hidden for feature in self.features if feature.hidden is not None]

    @property
    def readable(self) -> list[str]:
        """Names that functions may read."""
        absent = {"y", "R"} if not self.features else set()
        absent |= {"c"} if self.data.signal == "none" else set()
        named = (*self.model.rule_parameters, *self.data.coins, *self.data.normals, *self.side)
        return [*(name for name in OF_VECTORS if name not in absent), *named]

    @property
    def initial_R(self) -> FloatArray:
        """R(0), overlaps of students and features, shape (students, features)."""
        K = len(self.students)
        columns = [np.broadcast_to(np.array(feature.initial_overlap), K) for feature in self.features]
        return np.stack(columns, axis=1) if columns else np.zeros((K, 0))

    @property
    def initial_Q(self) -> FloatArray:
        """Q(0), overlaps of students, shape (students, students)."""
        Q = np.diag([student.initial_norm for student in self.students])
        for k, student in enumerate(self.students):
            if student.initial_overlap:
                Q[k, :k] = Q[:k, k] = student.initial_overlap
        return Q

    @property
    def names(self) -> dict[str, list[str]]:
        """Names of side variables and of observables, as far as there are some."""
        found = {"side_name": list(self.side), "observable_name": list(self.model.functions.measured)}
        return {key: names for key, names in found.items() if names}

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """See `meanfield.Problem.coordinates`."""
        return tuple(feature.coordinate for feature in self.features)

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        units = {"student": len(self.students), "student_": len(self.students)}
        measured = len(self.model.functions.observables) if self.model.at_hand else 0
        others = {"feature": len(self.features), "side": len(self.side), "observable": measured}
        return units | {dim: size for dim, size in others.items() if size}

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        return {"dimension": self.particles.dimension, "batch_size": self.model.batch_size}


def numbers_at(parameters: dict[str, Parameter]) -> FloatArray:
    """Values of parameters of a problem at one time."""
    assert not any(isinstance(value, Schedule) for value in parameters.values()), "a problem at one time"
    return np.array([float(value) for value in parameters.values()])
