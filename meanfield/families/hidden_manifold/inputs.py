"""Inputs of hidden-manifold problems: latents, feature matrix and nonlinearity (hidden_manifold.md, section 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationError

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.spectra import IndependentFeatures, Spectrum
from meanfield.ingredients.laws.empirical import Empirical
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.nonlinearities import NONLINEARITIES, Moments, Nonlinearity, make_nonlinearity
from meanfield.ingredients.part import FieldError, Part, after_fields
from meanfield.ingredients.spectra import MarchenkoPastur
from meanfield.ingredients.spectra import Spectrum as Eigenvalues
from meanfield.typing import FloatArray

SUM_TOLERANCE = 1e-9
"""Largest deviation from 1 of a sum of weights, by rounding."""

LARGEST_MEAN = 1e3
"""Largest mean of a component."""

MOST_VALUES = 10_000
"""Largest number of different values in a file of latents: SGD keeps a number for each of them and each latent."""

CENTRED = 1e-9
"""Largest mean, relative to the largest mean of a component, that is 0 to rounding."""

Mean = Annotated[float, Field(ge=-LARGEST_MEAN, le=LARGEST_MEAN)]


class Component(Part):
    """Component of the Gaussian mixture of latents: mean and scale."""

    weight: float = Field(gt=0, le=1, description="probability of the component; they add up to 1")
    scale: float = Field(default=1.0, ge=1e-3, le=1e3, description="s, the standard deviation of each latent")
    mean: Mean | Annotated[tuple[Mean, ...], Field(strict=False)] = Field(
        default=(),
        description="a list of the mean's coefficients on the teacher's vectors, for instance [2.0, 0.0]; or, for "
        "components that are drawn per coordinate, a number, the mean of each latent",
    )
    mean_elsewhere: float = Field(
        default=0.0,
        ge=0,
        le=LARGEST_MEAN,
        description="norm of the mean's part that is orthogonal to the teacher and to all other components",
    )


class Value(Component):
    """Value that latents draw from a file: a component of no width."""

    scale: float = Field(default=0.0, ge=0, le=0, description="0")


class RandomMeans(Part):
    """Components of variance 1 and equal weight whose means are drawn from [-half_width, half_width)."""

    components: int = Field(ge=1, le=1000, description="m, the number of components, for instance 2")
    half_width: float = Field(ge=0, le=LARGEST_MEAN, description="alpha: means are uniform in [-alpha, alpha)")
    each: Literal["component", "latent"] = Field(
        default="component",
        description="'component': all latents have one mean in a component; 'latent': each has its own",
    )
    seed: int = Field(default=0, ge=0, le=2**62, description="decides the means, which all replicas share")

    def drawn(self, latents: int) -> FloatArray:
        """Means, shape (components, latents), or (components, 1) where all latents have one."""
        shape = (self.components, latents if self.each == "latent" else 1)
        return np.random.default_rng(self.seed).uniform(-self.half_width, self.half_width, shape)


class Inputs(NamesFunctions):
    """Law of the inputs x = f(F^T C/sqrt D)."""

    function_key: ClassVar[str] = "inputs.nonlinearity"
    make: ClassVar[Any] = make_nonlinearity

    nonlinearity: str = Field(
        description=f"f, one of {', '.join(NONLINEARITIES)}, or your own as 'package.module:name'",
    )
    centered: bool = Field(default=True, description="whether the mean of f over all inputs is subtracted")
    aspect_ratio: float = Field(ge=1e-3, le=1e3, description="delta = D/N, latents per input, for instance 0.5")
    spectrum: Spectrum = Field(
        default=IndependentFeatures(), description="law of the eigenvalues of F F^T/N, a table with law = ..."
    )
    components_drawn: Literal["sample", "coordinate"] = Field(
        default="sample", description="whether all latents of a sample have one component, or each draws its own"
    )
    components: Annotated[tuple[Component, ...], Field(strict=False)] = Field(
        default=(), description="one [[inputs.components]] table per component; none is one standard Gaussian"
    )

    random_means: RandomMeans | None = Field(
        default=None, description="components with means that are drawn, in place of [[inputs.components]]"
    )
    latents: Empirical | None = Field(
        default=None,
        description="{ file = 'values.npy' }: each latent draws one of the values in a column of a file, in place of "
        "[[inputs.components]]",
    )
    standardise: Literal["nothing", "latents", "inputs"] = Field(
        default="nothing",
        description="'latents': each latent less its mean, divided by its standard deviation, over all components; "
        "'inputs': the same of each input",
    )

    @after_fields
    def _one_way_to_give_components(self) -> None:
        drawn = self.random_means
        if self.latents is not None:
            self._check_latents()
        if drawn is not None and self.components:
            raise FieldError("random_means", "is there beside inputs.components; remove one or the other")
        if drawn is not None and drawn.each == "component" and self.components_drawn == "sample":
            raise FieldError(
                "random_means",
                "a mean that all latents of a sample share is a direction along which samples scatter by sqrt(D), for "
                "which there is no theory; set random_means.each to 'latent', or components_drawn to 'coordinate'",
            )

    def _check_latents(self) -> None:
        """Refuse a file of latents beside components, and one that all latents of a sample would draw from together."""
        beside = "components" if self.components else "random_means" if self.random_means else ""
        if beside:
            raise FieldError("latents", f"is there beside inputs.{beside}; remove one or the other")
        if self.components_drawn == "sample":
            raise FieldError(
                "latents",
                "each value of the file is a mean that latents may have, and one that all latents of a sample share "
                "has the length sqrt(D), for which there is no theory; set components_drawn to 'coordinate'",
            )

    @after_fields
    def _can_be_standardised(self) -> None:
        elsewhere = [k for k, component in enumerate(self.components) if component.mean_elsewhere > 0]
        if self.standardise == "latents" and elsewhere:
            raise FieldError(
                "standardise",
                f"inputs.components[{elsewhere[0]}].mean_elsewhere is not 0: less the mean of all components it would "
                "no longer be orthogonal to the others; remove it, or set standardise to 'nothing'",
            )
        if self.standardise == "inputs" and not self.centered:
            raise FieldError("standardise", "'inputs' subtracts their mean; set inputs.centered to true")
        try:
            if self.latents is None:
                _ = self.mixture
        except ValidationError as error:
            raise FieldError(
                "standardise",
                "divides components.scale by so much that it falls below 0.001; give scales and means "
                "that differ by less",
            ) from error

    @after_fields
    def _weights_add_up(self) -> None:
        total = sum(component.weight for component in self.components)
        if self.components and abs(total - 1.0) > SUM_TOLERANCE:
            raise FieldError(
                "components", f"their weights add up to {total:.9g}, not to 1; correct or normalise components.weight"
            )

    @after_fields
    def _means_are_of_one_kind(self) -> None:
        per_latent = [k for k, component in enumerate(self.components) if isinstance(component.mean, float | int)]
        if per_latent and self.components_drawn == "sample":
            mean = self.components[per_latent[0]].mean
            raise FieldError(
                "components",
                f"components[{per_latent[0]}].mean = {mean}: a number is the mean of every latent, and a mean of "
                "norm sqrt(D) moves the student's fields within single steps, for which there is no theory with one "
                "component per sample; give a list of coefficients on the teacher's vectors, or set components_drawn "
                "to 'coordinate'",
            )

    @after_fields
    def _spectrum_has_room(self) -> None:
        """Check that F F^T/N has rank at most N."""
        atoms = getattr(self.spectrum, "eigenvalues", None)
        least = 1.0 - 1.0 / self.aspect_ratio
        if atoms is None or least <= 0:
            return
        nodes = self.spectrum.atoms  # type: ignore[union-attr]
        share = float(nodes.weight[nodes.rho == 0].sum())
        if share < least - SUM_TOLERANCE:
            raise FieldError(
                "spectrum",
                f"the share of the eigenvalue 0 is {share:.6g}, but with aspect_ratio = "
                f"{self.aspect_ratio:g} F F^T/N has rank N < D, and at least {least:.6g} of its eigenvalues are 0; "
                "add the eigenvalue 0, or lower aspect_ratio",
            )

    @property
    def eigenvalues(self) -> Eigenvalues:
        """Law of the eigenvalues of F F^T/N."""
        given = self.spectrum
        return MarchenkoPastur(aspect_ratio=self.aspect_ratio) if isinstance(given, IndependentFeatures) else given

    @property
    def function(self) -> Nonlinearity:
        """The function that `nonlinearity` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Nonlinearity = self.found()
        return found

    @cached_property
    def mixture(self) -> tuple[Component, ...]:
        """Components as they are after standardisation, one standard Gaussian if none are given.

        Means that each latent has of its own are not among them; see `own_means`.
        """
        drawn = self.random_means
        if self.latents is not None:
            return self._values(self.latents)
        if drawn is None:
            given = self.components or (Component(weight=1.0),)
        else:
            numbers = drawn.drawn(1)[:, 0] if drawn.each == "component" else np.zeros(drawn.components)
            given = tuple(Component(weight=1.0 / len(numbers), mean=float(number)) for number in numbers)
        return _standardised(given, self.components_drawn) if self.standardise == "latents" else given

    def _values(self, latents: Empirical) -> tuple[Component, ...]:
        """Values that latents draw, each a component without a scale.

        Raises
        ------
        InputError
            If they are too many, or all the same.
        """
        atoms, chance = latents.atoms
        values = atoms[:, 0]
        if not 1 < len(values) <= MOST_VALUES:
            raise InputError(
                f"inputs.latents.file = '{latents.file}': holds {len(values):,} different value(s), and 2 to "
                f"{MOST_VALUES:,} fit; give others, or round them"
            )
        if self.standardise == "latents":
            values = values - chance @ values
            values = values / np.sqrt(chance @ values**2)
        pairs = zip(chance.tolist(), values.tolist(), strict=True)
        return tuple(Value(weight=weight, mean=value) for weight, value in pairs)

    @property
    def is_uneven(self) -> bool:
        """Whether latents have means that do not vanish in the limit, so that the means of inputs differ."""
        return self.latent_mean != 0.0 or self.own_means

    @property
    def own_means(self) -> bool:
        """Whether each latent has means of its own that do not vanish in the limit."""
        drawn = self.random_means
        if drawn is None or drawn.each == "component" or drawn.half_width == 0.0:
            return False
        return self.components_drawn == "sample" or self.standardise != "latents"

    @cached_property
    def _of_function(self) -> tuple[Moments, ...]:
        """Moments of f itself in the components of `gaussians`."""
        try:
            return tuple(self.function.moments(scale) for _, scale in self.gaussians)
        except ValueError as error:
            raise InputError(f"inputs.nonlinearity = '{self.nonlinearity}': {error}") from error

    @cached_property
    def shift(self) -> float:
        """Number that is subtracted from f: its mean over all inputs if `centered`, or 0."""
        if not self.centered:
            return 0.0
        return sum(weight * m.mean for (weight, _), m in zip(self.gaussians, self._of_function, strict=True))

    @cached_property
    def moments(self) -> tuple[Moments, ...]:
        """Moments of f as inputs take it, centred and standardised, in the components of `gaussians`."""
        a = self.shift
        centred = [Moments(m.mean - a, m.slope, m.square - 2.0 * a * m.mean + a**2) for m in self._of_function]
        if self.standardise != "inputs":
            return tuple(centred)
        k = self.factor
        return tuple(Moments(k * m.mean, k * m.slope, k * k * m.square) for m in centred)

    @cached_property
    def factor(self) -> float:
        """Number by which f less its mean is multiplied: 1 over its standard deviation if inputs are standardised."""
        if self.standardise != "inputs":
            return 1.0
        square = sum(weight * m.square for (weight, _), m in zip(self.gaussians, self._of_function, strict=True))
        return float((square - self.shift**2) ** -0.5)

    @property
    def gaussians(self) -> tuple[tuple[float, float], ...]:
        """Weights and scales of the Gaussians that latents are in the limit: one where coordinates draw components."""
        if self.own_means:
            # Of all samples and inputs together, whose means differ with the scale of the means of latents.
            spread = 0.0 if self.standardise == "latents" else self.random_means.half_width**2 / 3.0  # type: ignore[union-attr]
            each = 1 if self.components_drawn == "coordinate" else len(self.mixture)
            return ((1.0 / each, float(np.sqrt(1.0 + spread))),) * each
        if self.components_drawn == "sample":
            return tuple((component.weight, component.scale) for component in self.mixture)
        second = sum(c.weight * (c.scale**2 + number_of(c) ** 2) for c in self.mixture)
        return ((1.0, float(np.sqrt(second - self.latent_mean**2))),)

    @cached_property
    def latent_mean(self) -> float:
        """Mean of every latent, where components have means that are numbers; 0 if it is to rounding."""
        means = [number_of(c) for c in self.mixture]
        total = float(sum(c.weight * mean for c, mean in zip(self.mixture, means, strict=True)))
        return total if abs(total) > CENTRED * max(map(abs, means)) else 0.0


def number_of(component: Component) -> float:
    """Mean of each latent in a component."""
    return 0.0 if isinstance(component.mean, tuple) else component.mean


def _standardised(components: tuple[Component, ...], drawn: str) -> tuple[Component, ...]:
    """Components less the mean of all, divided by the standard deviation of a latent."""
    chance = np.array([component.weight for component in components])
    number, scale = (np.array([of(c) for c in components]) for of in (number_of, lambda c: c.scale))
    common = float(chance @ number)
    deviation = float(np.sqrt(chance @ (scale**2 + (number - common) ** 2)))
    length = max(len(c.mean) if isinstance(c.mean, tuple) else 0 for c in components)
    vectors = np.array([c.mean if isinstance(c.mean, tuple) and c.mean else (0.0,) * length for c in components])
    along = (vectors - chance @ vectors) / deviation
    means = [
        tuple(row.tolist()) if isinstance(c.mean, tuple) else (c.mean - common) / deviation
        for c, row in zip(components, along, strict=True)
    ]
    return tuple(
        Component(weight=c.weight, scale=c.scale / deviation, mean=mean)
        for c, mean in zip(components, means, strict=True)
    )
