"""Images that a problem file names: files in a published format, or those of a package or a user's module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.images.augmentation import Augmentation
from meanfield.ingredients.images.labelled import Images, checked_images
from meanfield.ingredients.images.reading import Format, read_images
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import FieldError
from meanfield.ingredients.user_functions import is_address, load_object
from meanfield.typing import IntArray

Paths = Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=1000)]

SPLIT = 0
"""Seed of the draw of the images that are held out: every run holds out the same."""


class ArrayData(NamesFunctions):
    """Images, and how they are augmented."""

    law: Literal["arrays"] = "arrays"
    images: str | Paths = Field(
        description="path of a file relative to the problem file, several of CIFAR-10 as a list, or the address "
        "'package.module:name' of arrays, or of a function without arguments that returns them"
    )
    labels: str | None = Field(
        default=None,
        description="path of a file of labels, of mnist, stl10 or .npy images (.npy, or .npz with 'labels')",
    )
    format: Format = Field(
        default="arrays",
        description="of the files: arrays (.npz with 'images' and 'labels', or .npy), mnist (idx files), cifar10 (the "
        "Python or the binary version), or stl10",
    )
    white: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="value of a pixel that becomes 1; by default 255 for 8 bits "
        "without sign and 1 for floats; other whole numbers need it",
    )
    held_out: float = Field(
        default=0.2, ge=0, lt=1, description="share of the images that are not trained on, but score the linear probe"
    )
    augmentation: Augmentation = Augmentation()

    @field_validator("images", "labels")
    @classmethod
    def _find(cls, given: Any, info: ValidationInfo) -> Any:
        """Make paths absolute where the folder of the problem file is known."""
        folder = (info.context or {}).get("folder")
        if folder is None or given is None:
            return given
        if isinstance(given, tuple):
            return tuple(str((Path(folder) / path).resolve()) for path in given)
        return given if is_address(given) else str((Path(folder) / given).resolve())

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        if isinstance(self.images, tuple) and self.format != "cifar10":
            raise FieldError("images", f"a list belongs to format = 'cifar10'; give one path for '{self.format}'")
        if self.is_own and self.format != "arrays":
            raise FieldError("format", f"'{self.format}' is of files, and images is an address; remove format")
        held = self.is_own or self.format == "cifar10" or str(self.images).endswith(".npz")
        if self.labels is not None and held:
            raise FieldError("labels", "these images come with labels of their own; remove labels")
        return self

    @model_validator(mode="after")
    def _can_be_read(self, info: ValidationInfo) -> Self:
        """Read images at once for a problem file; those named in a result may no longer exist."""
        context = info.context or {}
        self.__dict__["_trusted"] = context.get("trusted", True)
        if self.is_own:
            self.look_up("images", _own_images, info)
            found = self.__dict__.get("_found", (None, None))[1]
        else:
            found = None if context.get("folder") is None else self._of_files_at_once()
        if isinstance(found, Images) and self._lacks_white(found):
            raise FieldError("white", self._lacks_white(found))
        return self

    def _of_files_at_once(self) -> Images:
        try:
            return self._of_files()
        except InputError as error:
            blamed = "labels" if str(error).startswith(f"{self.labels}:") else "images"
            raise FieldError(blamed, str(error)) from error

    @property
    def is_own(self) -> bool:
        """Whether images are those of a package or of a user's module."""
        return isinstance(self.images, str) and is_address(self.images)

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """See `NamesFunctions.named`."""
        return str(self.images), ()

    @property
    def read(self) -> Images:
        """The images.

        Raises
        ------
        InputError
            If they cannot be read, or only a result names them.
        """
        if self.is_own:
            found: Images = self.found("data.images", _own_images)
        else:
            if not self.__dict__.get("_trusted", True):
                raise InputError(
                    f"data.images = {self.images!r}: no file is opened because a result names it; load the problem "
                    "file with meanfield.load_problem and solve that"
                )
            found = self._of_files()
        if self._lacks_white(found):
            raise InputError(f"data.white: {self._lacks_white(found)}")
        return replace(found, white=self.white)

    def _of_files(self) -> Images:
        paths = (self.images,) if isinstance(self.images, str) else self.images
        versions = tuple(os.stat(path).st_mtime_ns if os.path.isfile(path) else 0 for path in paths)
        return _images_of_files(self.format, paths, self.labels, versions)

    def _lacks_white(self, found: Images) -> str:
        """What is wrong if nobody says which value of a pixel is white: a type of numbers has it only for 8 bits."""
        kind = found.pixels.dtype
        if self.white is not None or kind.kind == "f" or kind == np.uint8:
            return ""
        return (
            f"is missing, and pixels of type {kind} do not say what is white (the largest here is "
            f"{found.pixels.max()}); add the value that becomes 1, such as 255 or {np.iinfo(kind).max}"
        )

    @property
    def split(self) -> tuple[IntArray, IntArray]:
        """Numbers of the images that are trained on, and of those that are held out."""
        count = len(self.read)
        order = np.random.default_rng(SPLIT).permutation(count)
        held = round(self.held_out * count)
        return np.sort(order[held:]), np.sort(order[:held])


@lru_cache(maxsize=4)
def _images_of_files(format: Format, paths: tuple[str, ...], labels: str | None, versions: tuple[int, ...]) -> Images:
    """Images of files, read once per `versions` of the files."""
    return read_images(format, [Path(path) for path in paths], None if labels is None else Path(labels))


def _own_images(name: str, parameters: Any, folder: Path | None = None) -> Images:
    """Images at an address: arrays, a pair of images and labels, or a mapping with `images`, and `labels` or `target`.

    Raises
    ------
    ValueError
        If there are none.
    """
    found = load_object(name, folder)
    if callable(found):
        try:
            found = found()
        except Exception as error:  # whatever a user's function raises
            raise ValueError(f"'{name}': {type(error).__name__}: {error}") from error
    if isinstance(found, Mapping):
        if "images" not in found:
            raise ValueError(f"'{name}' returns {', '.join(map(str, found))}, and no 'images'; name them so")
        found = (found["images"], found.get("labels", found.get("target")))
    images, labels = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    return checked_images(f"'{name}'", images, labels)
