"""Hidden-manifold problems: inputs, teacher, student, training, time. Frozen objects that know no method.

All quantities are dimensionless; time is t = k/N for SGD step k (hidden_manifold.md, section 1).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.families.hidden_manifold.family import TRAINING
from meanfield.families.hidden_manifold.initial_state import InitialState
from meanfield.families.hidden_manifold.inputs import CENTRED, Inputs
from meanfield.families.hidden_manifold.training import Training
from meanfield.ingredients.activations import ACTIVATIONS, NamesActivation
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.problems import base
from meanfield.problems.base import Time
from meanfield.problems.phases import pieces_of
from meanfield.results.initial_state import check_start
from meanfield.typing import FloatArray


class OrderParameterSettings(Part):
    """Accuracy of the order parameters."""

    tolerance: float = Field(
        default=1e-6,
        ge=1e-12,
        le=1e-2,
        description="error allowed in Q, R, v and the generalisation error; nodes of the spectrum and steps follow",
    )
    averaging_tolerance: float = Field(
        default=2e-3,
        ge=1e-5,
        le=0.1,
        description="three standard errors allowed in them where inputs have a mean, whose field is averaged over by "
        "sampling",
    )


class StepSettings(Part):
    """Kind of step, which precedes the keys that SGD of all families has."""

    method: Literal["auto", "plain", "chain"] = Field(
        default="auto",
        description="'plain' is SGD line by line, 'chain' follows the Gram matrices alone, for spectra of few "
        "eigenvalues; 'auto' takes the cheapest that gives what is asked for",
    )


class ParticleSettings(EnsembleSettings, StepSettings):
    """Settings of SGD at finite N."""

    dimension: int = Field(default=1000, ge=2, le=10**12, description="N, the number of inputs of the student")
    column_lengths: Literal["equal", "random"] = Field(
        default="equal",
        description="'equal' columns of F have the length sqrt(D), as the limit assumes; 'random' lengths are those "
        "that were drawn, with other results for an f that is not odd",
    )


MOST_UNITS = 64
"""Largest number of units of a network: the cost of the expectations grows like its fourth power."""

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[tuple[Number, ...], Field(strict=False, min_length=1, max_length=MOST_UNITS)]
Matrix = Annotated[tuple[Vector, ...], Field(strict=False, min_length=1, max_length=MOST_UNITS)]


class Network(NamesActivation):
    """Activation and second layer of a network with two layers."""

    function_key: ClassVar[str] = "activation"

    activation: str = Field(
        default="scaled_erf",
        description=f"one of {', '.join(ACTIVATIONS)}, or your own as 'package.module:name'; scaled_erf is "
        "erf(x/sqrt 2)",
    )
    output_weights: Vector = Field(description="weights of the second layer, one per unit, for instance [1.0, 1.0]")


class Teacher(Network):
    """Network on the latents whose output is learnt."""

    overlap: Matrix = Field(
        description="T, the matrix of products of the teacher's vectors divided by D, for instance [[1.0, 0.0], "
        "[0.0, 1.0]]"
    )

    @after_fields
    def _sizes_fit(self) -> None:
        units = len(self.output_weights)
        check_covariance("overlap", self.overlap, units, f"output_weights has {units}")


class Student(Network):
    """Network on the inputs that is trained, and its start."""

    initial: Literal["informed", "random"] = Field(
        default="informed",
        description="'informed' weights have a part along the features of the teacher, 'random' ones are independent "
        "normal numbers",
    )
    on_teacher: Matrix | None = Field(
        default=None,
        description="X, coefficients of each unit on the features of the teacher's vectors, for instance [[0.3, 0.0], "
        "[0.05, 0.25]]",
    )
    elsewhere: Matrix | None = Field(
        default=None,
        description="G, the matrix of products of the rest of the weights divided by N, for instance [[0.49, 0.0], "
        "[0.0, 0.49]]",
    )
    variance: float | None = Field(
        default=None, ge=0, le=1e6, description="variance of random initial weights, 1 if nothing is said"
    )

    @after_fields
    def _start_is_one_of_both(self) -> None:
        if self.initial == "random":
            for key in ("on_teacher", "elsewhere"):
                if getattr(self, key) is not None:
                    raise FieldError(key, "initial = 'random' needs only variance; remove one or the other")
            return
        if self.variance is not None:
            raise FieldError("variance", "belongs to initial = 'random'; remove it, or on_teacher and elsewhere")
        units = len(self.output_weights)
        if self.elsewhere is not None:
            check_covariance("elsewhere", self.elsewhere, units, f"output_weights has {units}")
        if self.on_teacher is not None and len(self.on_teacher) != units:
            raise FieldError(
                "on_teacher",
                f"has {len(self.on_teacher)} row(s), but output_weights has {units} unit(s); give a row per unit",
            )

    @property
    def rest(self) -> FloatArray:
        """G, shape (students, students)."""
        if self.elsewhere is not None:
            return np.array(self.elsewhere, dtype=float)
        return (1.0 if self.variance is None else self.variance) * np.eye(len(self.output_weights))


def check_covariance(key: str, rows: tuple[tuple[float, ...], ...], units: int, why: str) -> None:
    """Refuse what is no covariance of `units` variables.

    Raises
    ------
    FieldError
    """
    if len(rows) != units or any(len(row) != units for row in rows):
        shape = f"{len(rows)} row(s) of {sorted({len(row) for row in rows})} number(s)"
        raise FieldError(key, f"has {shape}, but {why} unit(s); give a square matrix with a row per unit")
    matrix = np.array(rows, dtype=float)
    if not np.array_equal(matrix, matrix.T):
        i, j = np.argwhere(matrix != matrix.T)[0]
        raise FieldError(
            key, f"is not symmetric: entry [{i}][{j}] is {matrix[i, j]:g}, and [{j}][{i}] {matrix[j, i]:g}; make it so"
        )
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -1e-12 * max(values[-1], 0.0) or values[-1] < 0:  # rounding
        raise FieldError(
            key,
            f"has the eigenvalue {values[0]:.6g}, but products of vectors have none below 0; lower its off-diagonal "
            "entries, or raise its diagonal",
        )


class Problem(base.Problem):
    """Hidden-manifold problem (hidden_manifold.md, section 1) with the settings of the methods."""

    settings: ClassVar[frozenset[str]] = frozenset({"order_parameters", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"
    keys_of_start: ClassVar[tuple[str, ...]] = (
        "student.initial",
        "student.on_teacher",
        "student.elsewhere",
        "student.variance",
    )
    in_phases: ClassVar[tuple[str, ...]] = (
        *TRAINING,
        "training.momentum",
        "inputs.nonlinearity",
        "inputs.components",
        "teacher.activation",
        "teacher.activation_parameters",
        "teacher.output_weights",
        "student.activation",
        "student.activation_parameters",
    )

    inputs: Inputs
    teacher: Teacher
    student: Student
    initial: InitialState | None = Field(
        default=None, description="a file from which the student starts, such as { from = 'runs.nc', time = 2.0 }"
    )
    training: Training
    time: Time
    order_parameters: OrderParameterSettings = OrderParameterSettings()
    particles: ParticleSettings = ParticleSettings()

    @after_fields
    def _start_is_said_once(self) -> None:
        for key in ("on_teacher", "elsewhere") if self.initial is None and self.student.initial == "informed" else ():
            if getattr(self.student, key) is None:
                raise ValueError(f"student.{key}: is missing; add it, or set student.initial to 'random'")
        check_start(self)

    @after_fields
    def _start_fits_the_teacher(self) -> None:
        units = self.teachers
        for k, row in enumerate(self.student.on_teacher or ()):
            if len(row) != units:
                raise ValueError(
                    f"student.on_teacher[{k}] has {len(row)} number(s), but the teacher has {units} unit(s); give one "
                    "for each"
                )
        for q, component in enumerate(self.inputs.components):
            if isinstance(component.mean, tuple) and len(component.mean) not in (0, units):
                raise ValueError(
                    f"inputs.components[{q}].mean has {len(component.mean)} number(s), but the teacher has {units} "
                    "unit(s); give one for each"
                )

    @after_fields
    def _common_mean_is_zero(self) -> None:
        """Check that what is to be centred is: a mean that all components have would be left in the inputs."""
        inputs = self.inputs
        unknown = inputs.latents is not None and inputs.latents.is_refused
        if not inputs.centered or inputs.standardise == "inputs" or unknown:
            return
        key = next(
            (f"inputs.{key}" for key in ("random_means", "latents") if getattr(inputs, key)), "inputs.components"
        )
        if self.inputs.own_means and self.inputs.standardise == "nothing":
            raise ValueError(
                f"{key}: each latent has a mean of its own, and centered = true asks for 0; set inputs.standardise to "
                "'latents', or centered to false"
            )
        weights = [component.weight for component in self.inputs.mixture]
        common = np.append(weights @ self.component_means, self.inputs.latent_mean)
        numbers = [c.mean for c in self.inputs.mixture if not isinstance(c.mean, tuple)]
        size = max(np.abs(self.component_means).max(initial=0.0), np.abs(numbers).max(initial=0.0))
        if np.abs(common).max() > CENTRED * size:
            shown = common[-1] if numbers else [round(float(x), 9) for x in common[:-1]]
            raise ValueError(
                f"{key}: the mean of the mixture is {shown}, and centered = true asks for 0; set inputs.standardise "
                "to 'latents', which subtracts it, or centered to false"
            )

    @after_fields
    def _phases_have_the_same_dims(self) -> None:
        """Check that results have as many components throughout, and that no direction comes or goes."""
        known = self.inputs.components
        for number, piece in enumerate(pieces_of(self)):
            given = piece.problem.inputs.components
            if given == known:
                continue
            if len(given) != len(known):
                raise ValueError(
                    f"phases[{number}].set: has {len(given)} of inputs.components, and the problem {len(known)}; give "
                    "as many to all phases, of small weights if need be"
                )
            if any(component.mean_elsewhere > 0.0 for component in (*known, *given)):
                raise ValueError(
                    f"phases[{number}].set: changes inputs.components, of which one has a mean_elsewhere, a direction "
                    "that stays the same in all phases; remove it, or do not change them"
                )

    @after_fields
    def _times_fit_steps(self) -> None:
        self.particles.check_times(self.time)

    @property
    def students(self) -> int:
        """K, the number of units of the student."""
        return len(self.student.output_weights)

    @property
    def teachers(self) -> int:
        """M, the number of units of the teacher."""
        return len(self.teacher.output_weights)

    @property
    def teacher_overlap(self) -> FloatArray:
        """T, shape (teachers, teachers)."""
        return np.array(self.teacher.overlap, dtype=float)

    @property
    def initial_on_teacher(self) -> FloatArray:
        """X, shape (students, teachers); zero for a random start."""
        if self.student.on_teacher is None:
            return np.zeros((self.students, self.teachers))
        return np.array(self.student.on_teacher, dtype=float)

    @property
    def component_means(self) -> FloatArray:
        """Coefficients of the components' means on the teacher's vectors, shape (components, teachers)."""
        rows = [c.mean if isinstance(c.mean, tuple) and c.mean else (0.0,) * self.teachers for c in self.inputs.mixture]
        return np.array(rows, dtype=float)

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        each = self.inputs.components_drawn == "coordinate"  # which makes them one Gaussian, whatever a file holds
        units = {"student": self.students, "student_": self.students, "teacher": self.teachers}
        return units | {"teacher_": self.teachers, "component": 1 if each else len(self.inputs.gaussians)}

    @property
    def labels(self) -> dict[str, float]:
        """See `meanfield.Problem.labels`."""
        rate = self.training.learning_rate
        steady = {} if isinstance(rate, Schedule) else {"learning_rate": rate}
        return {"dimension": self.particles.dimension, **steady}
