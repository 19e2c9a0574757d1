"""Problems of update rules: rule, data, features, students, side variables, prior, time. Frozen; they know no method.

All quantities are dimensionless; time is t = k/N for SGD step k (update_rules.md, section 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.families.update_rule.checks import (
    check_arguments,
    check_classes,
    check_draws,
    check_groups,
    check_hidden_variables,
    check_names,
    check_parameters,
    check_start,
)
from meanfield.families.update_rule.data import Classes, Data
from meanfield.families.update_rule.in_time import check_schedules
from meanfield.families.update_rule.initial_state import InitialState
from meanfield.families.update_rule.kinds import Kind, kinds_of
from meanfield.families.update_rule.model import Model, Parameter, Side
from meanfield.families.update_rule.places import FEATURES
from meanfield.families.update_rule.rule import Function
from meanfield.families.update_rule.samples import Group, Sample
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate, HiddenLaw, JointLaw
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.part import NamedValues, Part, after_fields
from meanfield.ingredients.priors import PriorSettings
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.problems import base
from meanfield.problems.base import Time
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray

Overlap = Annotated[float, Field(ge=-1e6, le=1e6)]
Overlaps = Annotated[tuple[Overlap, ...], Field(strict=False)]


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
    group: str | None = Field(default=None, description="name of its group, one of groups; by default 's'")
    hidden: HiddenLaw | None = Field(
        default=None, description="law of the hidden variable that multiplies it in samples of draws along its group"
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

    settings: ClassVar[frozenset[str]] = frozenset({"order_parameters", "density", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"
    keys_of_start: ClassVar[tuple[str, ...]] = (
        *("features[].initial_overlap", "students[].initial_norm", "students[].initial_overlap", "side.*.start"),
    )
    in_phases: ClassVar[tuple[str, ...]] = (
        *("model.rule_parameters", "model.batch_size", "data", "prior", "features[].hidden", "hidden"),
        *(f"draws[].{key}" for key in ("noise", "observed", "batch_size", "view_covariance")),
    )

    model: Model = Model()
    data: Data = Data()
    features: Annotated[tuple[Feature, ...], Field(strict=False)] = Field(
        default=(), description="one [[features]] table for each vector that is not trained, with double brackets"
    )
    hidden: JointLaw | None = Field(
        default=None, description="the joint law of the hidden variables of all features, where they are dependent"
    )
    groups: Annotated[tuple[Group, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="one [[groups]] table for each group of trained vectors with a name of its own"
    )
    students: Annotated[tuple[Student, ...], Field(strict=False, min_length=1)] = Field(
        default=(Student(),),
        description="one [[students]] table for each trained vector; one of norm 1 for each group without any",
    )
    draws: Annotated[tuple[Sample, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="one [[draws]] table for each kind of sample of a step, in place of model.rule"
    )
    side: Annotated[dict[str, Side], AfterValidator(NamedValues)] = Field(
        default=NamedValues(), description="tables of numbers that the algorithm trains, [side.NAME]"
    )
    initial: InitialState | None = Field(
        default=None, description="a file from which training starts, such as { from = 'runs.nc', time = 2.0 }"
    )
    prior: PriorSettings = PriorSettings()
    time: Time
    order_parameters: OrderParameterSettings = OrderParameterSettings()
    density: DensitySettings | None = Field(default=None, description="accuracy of the density, or its cells and steps")
    particles: ParticleSettings = ParticleSettings()

    @model_validator(mode="before")
    @classmethod
    def _every_group_has_a_student(cls, data: Any) -> Any:
        groups = data.get("groups") if isinstance(data, dict) else None
        if not isinstance(groups, list | tuple) or "students" in data:
            return data
        names = [each.get("name") if isinstance(each, dict) else getattr(each, "name", None) for each in groups]
        return data | {"students": [{"group": name} for name in names]}

    @model_validator(mode="before")
    @classmethod
    def _several_students_choose_a_scheme(cls, data: Any) -> Any:
        """Leave the scheme of a density to the method where there are several students, unless the file says it."""
        settings, students = (data.get(key) for key in ("density", "students")) if isinstance(data, dict) else (None, 1)
        several = isinstance(students, list | tuple) and len(students) > 1
        if several and isinstance(settings, dict) and settings.get("scheme") is None:
            return data | {"density": settings | {"scheme": "automatic"}}
        return data

    @after_fields
    def _parts_fit_together(self) -> None:
        for check in (check_groups, check_draws, check_hidden_variables, check_classes):
            check(self)

    @after_fields
    def _coordinates_keep_their_variances(self) -> None:
        for number, phase in enumerate(self.phases or ()):
            keys = [key for key in phase.set if key == "data" or key.startswith("data.spectrum")]
            if keys and pieces_of(self)[number].problem.data.spectrum != self.data.spectrum:
                raise ValueError(
                    f"phases[{number}].set: '{keys[0]}' changes the spectrum, and students know overlaps at the "
                    "eigenvalues of the start alone; leave it as it is, and set data.noise to scale it"
                )

    @after_fields
    def _names_are_known(self) -> None:
        for check in (check_schedules, check_names, check_arguments, check_parameters):
            check(self)

    @after_fields
    def _start_is_possible(self) -> None:
        check_start(self)

    @after_fields
    def _dimension_leaves_room(self) -> None:
        vectors = len(self.features) + len(self.students)
        if self.particles.dimension < vectors + 1:
            given = f"particles.dimension = {self.particles.dimension}"
            raise ValueError(f"{given}: {vectors} features and students need at least {vectors + 1}; raise it")

    @after_fields
    def _times_fit_steps(self) -> None:
        self.particles.check_times(self.time)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of samples that a step takes."""
        return kinds_of(self)

    def functions_of(self, kind: Kind) -> Iterator[tuple[str, Function]]:
        """All functions that read a kind of sample and are at hand, with words for them."""
        yield from kind.functions()
        own = {name: self.side[name] for name in kind.side}
        yield from ((f"side.{name}.step", side.function) for name, side in own.items() if side.at_hand)

    @property
    def at_hand(self) -> bool:
        """Whether all functions can be called: those of a user that a result alone names cannot."""
        named = all(each.at_hand for each in (self.model, *self.side.values()))
        return named and all(sample.at_hand for sample in self.draws or ())

    @property
    def vectors(self) -> dict[str, range]:
        """Numbers of the features, and of the students of each group, among all vectors."""
        M, names = len(self.features), [student.group or "s" for student in self.students]
        found = {FEATURES: range(M)}
        for k, name in enumerate(names):
            found[name] = range(found[name].start if name in found else M + k, M + k + 1)
        return found

    @property
    def constraints(self) -> tuple[tuple[str, range], ...]:
        """What follows each step for the students of each group, by their numbers."""
        M, own = len(self.features), {group.name: group.constraint for group in self.groups or ()}
        return tuple(
            (own.get(name) or self.model.constraint, range(each.start - M, each.stop - M))
            for name, each in self.vectors.items()
            if name != FEATURES
        )

    def laws_of(self, group: str) -> tuple[HiddenPart, ...]:
        """Laws of the hidden variables that multiply the vectors of a group, independent of each other.

        That of classes has their label and the deviation of their noise besides.
        """
        if group == FEATURES and self.data.classes is not None:
            return (Classes(members=self.data.classes),)
        if group == FEATURES and self.hidden is not None:
            return (self.hidden,)
        owners = self.features if group == FEATURES else [each for each in self.students if each.group == group]
        return tuple(owner.hidden for owner in owners if owner.hidden is not None)

    @property
    def initial_R(self) -> FloatArray:
        """R(0), overlaps of students and features, shape (students, features); of several runs of a file their mean."""
        if self.initial is not None:
            return np.asarray(self.initial.atoms.R.mean(axis=0))
        K = len(self.students)
        columns = [np.broadcast_to(np.array(feature.initial_overlap), K) for feature in self.features]
        return np.stack(columns, axis=1) if columns else np.zeros((K, 0))

    @property
    def initial_Q(self) -> FloatArray:
        """Q(0), overlaps of students, shape (students, students)."""
        if self.initial is not None:
            Q = np.array(self.initial.atoms.Q.mean(axis=0))
            for name, group in self.constraints:
                if name in ("gram_schmidt", "polar"):  # but for rounding
                    Q[group.start : group.stop, group.start : group.stop] = np.eye(len(group))
            return Q
        Q = np.diag([student.initial_norm for student in self.students])
        for k, student in enumerate(self.students):
            if student.initial_overlap:
                Q[k, :k] = Q[:k, k] = student.initial_overlap
        return Q

    @property
    def initial_v(self) -> FloatArray:
        """v(0), side variables, shape (side variables,)."""
        if self.initial is not None:
            return np.asarray(self.initial.atoms.v.mean(axis=0))
        return np.array([float(side.start) for side in self.side.values()])  # type: ignore[arg-type]

    @property
    def names(self) -> dict[str, list[str]]:
        """Names of side variables and of observables, as far as there are some."""
        found = {"side_name": list(self.side), "observable_name": list(self.measured)}
        if self.groups is not None:
            found["student_name"] = [
                f"{name}{[k] if len(group) > 1 else ''}"
                for name, group in self.vectors.items()
                if name != FEATURES
                for k in range(len(group))
            ]
        return {key: names for key, names in found.items() if names}

    @property
    def measured(self) -> list[str]:
        """Names of observables, in the order of results."""
        return [name for kind in self.kinds for name in kind.measured]

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """See `meanfield.Problem.coordinates`."""
        return tuple(feature.coordinate for feature in self.features)

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        units = {"student": len(self.students), "student_": len(self.students)}
        measured = len(self.measured) if self.at_hand else 0
        others = {"feature": len(self.features), "side": len(self.side), "observable": measured}
        others |= {} if self.data.spectrum is None else {"eigenvalue_group": 5}  # as many at most as there are of u
        others["diagonal"] = 2 if len(self.students) == 2 else 0
        return units | {dim: size for dim, size in others.items() if size}

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        numbers = {"dimension": self.particles.dimension, "batch_size": self.model.batch_size}
        return {name: value for name, value in numbers.items() if not isinstance(value, Schedule)}


def numbers_at(parameters: dict[str, Parameter]) -> FloatArray:
    """Values of parameters of a problem at one time."""
    assert not any(isinstance(value, Schedule) for value in parameters.values()), "a problem at one time"
    return np.array([float(value) for value in parameters.values()])


def pulls(problem: Problem) -> bool:
    """Whether a single student is pulled by a prior that is not linear, so that E[w phi(w)] is no multiple of Q."""
    return len(problem.students) == 1 and any(not piece.problem.prior.functions.linear for piece in pieces_of(problem))
