"""Tables of a problem for groups of trained vectors, and for several kinds of samples in a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo

from meanfield.errors import InputError
from meanfield.families.update_rule.model import Constraint, make_rule
from meanfield.families.update_rule.rule import Rule
from meanfield.ingredients.fingerprints import fingerprint_of, unknown
from meanfield.ingredients.named_functions import Missing, NamesOutside, remedy_for
from meanfield.ingredients.part import NamedValues, Part, after_fields
from meanfield.ingredients.user_functions import is_address

Several = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Covariance = Annotated[
    tuple[Annotated[tuple[Annotated[float, Field(ge=-1e6, le=1e6)], ...], Field(strict=False)], ...],
    Field(strict=False),
]


class Group(Part):
    """Group of trained vectors, which have one name."""

    name: str = Field(description="name of the group, and of the fields of its vectors")
    constraint: Constraint | None = Field(
        default=None, description="what follows each step for these vectors; by default model.constraint"
    )


class Sample(NamesOutside):
    """Kind of sample that each step takes, independent of other kinds, with the functions that read it."""

    name: str | None = Field(default=None, description="name by which [side] tables and messages call it")
    along: str | None = Field(
        default=None,
        description="vectors that hidden variables multiply in samples: 'u' for features, the name of a group, or "
        "'none'; by default what data.signal says",
    )
    noise: float | None = Field(
        default=None, gt=0, le=1e6, description="variance of the noise of a coordinate; by default data.noise"
    )
    observed: Share | Annotated[tuple[Share, ...], Field(strict=False)] | None = Field(
        default=None,
        description="share of coordinates that is kept, the same ones in all views, or a list of one for each view, "
        "which then has missing coordinates of its own; by default data.observed",
    )
    batch_size: int | None = Field(
        default=None, ge=1, le=10**6, description="number of such samples per step; by default model.batch_size"
    )
    samples: int | None = Field(
        default=None,
        ge=2,
        le=64,
        description="number of samples that functions see at once, as arrays with an axis 0 for them; by default they "
        "see one, as numbers. A batch is one sample of batch_size, and its mean is for the functions to take",
    )
    views: int | None = Field(
        default=None, ge=1, le=16, description="number of views of a sample, whose fields are s1, s2, ...; by default 1"
    )
    view_covariance: Covariance | None = Field(
        default=None, description="covariance of the noise that views have of their own; by default 0"
    )
    gain: Annotated[dict[str, str | Several], AfterValidator(NamedValues)] | None = Field(
        default=None,
        description="factor of the input in the step of each group, such as { w = 'module:name' }, a list of one for "
        "each view",
    )
    move: (
        Annotated[dict[str, Annotated[dict[str, str], AfterValidator(NamedValues)]], AfterValidator(NamedValues)] | None
    ) = Field(
        default=None,
        description="factors of vectors in the step of each group, such as { V = { w = 'module:name' } }, which moves "
        "V along w",
    )
    means: Several | None = Field(
        default=None,
        description="functions whose averages over all samples at the overlaps before a step others read as mean1, "
        "mean2, ... in their order, or as mean if it is one; one that reads s, and not s1 or s2, has one for each view",
    )
    observables: Annotated[dict[str, str], AfterValidator(NamedValues)] | None = Field(
        default=None, description="functions that are averaged over such samples at each time, by name"
    )

    @classmethod
    def outside(cls) -> tuple[str, ...]:
        """See `NamesOutside.outside`."""
        return "gain", "move", "means", "observables"

    @after_fields
    def _views_fit_together(self) -> None:
        L = self.views or 1
        for group, given in (self.gain or {}).items():
            count = len(given) if isinstance(given, tuple) else 1
            if count != L:
                raise ValueError(
                    f"gain.{group} has {count} function(s) for {L} view(s); give one for each, or set views"
                )
        if isinstance(self.observed, tuple) and len(self.observed) != L:
            raise ValueError(
                f"observed has {len(self.observed)} number(s) for {L} view(s); give one for each, or one number for all"
            )
        C = np.array([[0.0] * L] * L)
        for i, row in enumerate(self.view_covariance or ()):
            if len(row) != L or len(self.view_covariance or ()) != L:
                raise ValueError(f"view_covariance is no table of {L} rows of {L} numbers, for {L} view(s); correct it")
            C[i] = row
        if not np.array_equal(C, C.T) or np.linalg.eigvalsh(C)[0] < -1e-12 * np.abs(C).max():  # rounding
            raise ValueError("view_covariance is no covariance: symmetric, with eigenvalues of at least 0; correct it")

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesOutside.look_up`."""
        context = info.context or {}
        if any(is_address(name) for name in self.asked.values()) and not context.get("trusted", True):
            self.keep(Missing.REFUSED, {key: unknown(name) for key, name in self.asked.items() if is_address(name)})
        elif not self.take_kept(info):
            self._make(context.get("folder"))

    def _make(self, folder: Any = None) -> None:
        made: dict[str, Rule] = {}
        for key, name in self.asked.items():
            try:
                made[key] = make_rule(name, folder=folder) if is_address(name) else make_rule(name)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
            if made[key].along is not None:
                raise ValueError(f"{key} = '{name}' has moves along vectors besides; name them under move")
        self.keep(made, {key: fingerprint_of(made[key], name) for key, name in self.asked.items() if is_address(name)})

    @property
    def asked(self) -> dict[str, str]:
        """Names of functions by their keys, in the order of `gain`, `move`, `means` and `observables`."""
        found: dict[str, str] = {}
        for group, given in (self.gain or {}).items():
            if isinstance(given, str):
                found[f"gain.{group}"] = given
            else:
                found |= {f"gain.{group}[{number}]": name for number, name in enumerate(given)}
        for group, along in (self.move or {}).items():
            found |= {f"move.{group}.{other}": name for other, name in along.items()}
        found |= {f"means[{number}]": name for number, name in enumerate(self.means or ())}
        return found | {f"observables.{key}": name for key, name in (self.observables or {}).items()}

    @property
    def at_hand(self) -> bool:
        """Whether the functions can be called: those of a user that a result alone names cannot."""
        return self.kept is None or self.kept.content is not Missing.REFUSED

    @property
    def functions(self) -> Mapping[str, Rule]:
        """What the keys of `asked` name.

        Raises
        ------
        InputError
            If it cannot be imported.
        """
        if not self.at_hand:
            own = next(name for name in self.asked.values() if is_address(name))
            raise InputError(f"draws: '{own}': no module is imported because a result names it; {remedy_for(own)}")
        if self.kept is None:
            try:
                self._make()
            except ValueError as error:
                raise InputError(f"draws: {error}") from error
        assert self.kept is not None
        found: Mapping[str, Rule] = self.kept.content
        return found

    @property
    def own_covariance(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Covariance of the noise of views of their own, shape (views, views)."""
        L = self.views or 1
        return np.zeros((L, L)) if self.view_covariance is None else np.array(self.view_covariance)
