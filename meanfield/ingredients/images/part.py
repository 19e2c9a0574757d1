"""Images that a problem file names, in files of a published format or by any module, and how views differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, ValidationInfo, field_validator

from meanfield.errors import InputError
from meanfield.ingredients.file_part import FilePart, absolute
from meanfield.ingredients.images.labelled import Images, checked_images
from meanfield.ingredients.images.reading import Format, read_images
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import FieldError, Part
from meanfield.ingredients.user_functions import is_address, load_object
from meanfield.typing import FloatArray, IntArray


class Augmentation(Part):
    """Random changes of an image, each drawn anew for every view; without a key there is none of that sort."""

    crop: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="least side of the part of an image that a view shows, relative to its own; the part is drawn "
        "uniformly in size and place, and enlarged to the whole",
    )
    shift: int = Field(
        default=0, ge=0, le=1000, description="largest number of pixels by which a view is moved along each axis"
    )
    flip: bool = Field(default=False, description="whether left and right are exchanged in half of all views")
    intensity: float = Field(
        default=0.0, ge=0, le=1, description="largest change of the factor that multiplies all pixels of a view"
    )
    noise: float = Field(
        default=0.0, ge=0, le=1e6, description="standard deviation of Gaussian noise that is added to each pixel"
    )

    @property
    def moves(self) -> bool:
        """Whether a view looks elsewhere than at the whole image."""
        return self.crop < 1.0 or self.shift > 0 or self.flip

    def views(self, images: FloatArray, rng: Generator) -> FloatArray:
        """One view of each image.

        Parameters
        ----------
        images : ndarray, shape (images, height, width, channels)

        Returns
        -------
        ndarray, shape (images, height, width, channels)
            What lies beyond the edge of an image is 0.
        """
        count, height, width, _ = images.shape
        if self.moves:
            side = rng.uniform(self.crop, 1.0, (count, 1))
            rows = self._lines(rng, side, height)
            columns = self._lines(rng, side, width)
            flipped = rng.random(count) < 0.5
            if self.flip:
                columns[flipped] = columns[flipped, ::-1]
            images = _interpolated(images, rows, columns)
        if self.intensity > 0.0:
            images = images * rng.uniform(1.0 - self.intensity, 1.0 + self.intensity, (count, 1, 1, 1))
        if self.noise > 0.0:
            images = images + self.noise * rng.standard_normal(images.shape)
        return images

    def _lines(self, rng: Generator, side: FloatArray, size: int) -> FloatArray:
        """Places in an image, in pixels, of the lines of a view along one axis, shape (views, size).

        `side` has the shape (views, 1).
        """
        first = rng.random(side.shape) * (1.0 - side) * size
        move = rng.integers(-self.shift, self.shift + 1, side.shape)
        return np.asarray(first + side * (np.arange(size) + 0.5) - 0.5 + move)


def _interpolated(images: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Images at other places, linearly between pixels and to 0 beyond the edge."""
    _, height, width, channels = images.shape
    down = np.maximum(1.0 - np.abs(rows[:, :, None] - np.arange(height)), 0.0)
    across = np.maximum(1.0 - np.abs(columns[:, :, None] - np.arange(width)), 0.0)
    if channels == 1:
        return np.asarray((down @ images[..., 0] @ across.swapaxes(1, 2))[..., None])
    planes = down[:, None] @ np.moveaxis(images, -1, 1) @ across[:, None].swapaxes(2, 3)
    return np.asarray(np.moveaxis(planes, 1, -1))


Paths = Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=1000)]


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
    return checked_images(f"'{name}'", np.array(images), labels)  # a copy: they may be changed in place


class ArrayData(NamesFunctions, FilePart):
    """Images, and how they are augmented."""

    function_key: ClassVar[str] = "data.images"
    make: ClassVar[Any] = staticmethod(_own_images)

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
        """Make paths absolute; see `FilePart`."""
        if isinstance(given, tuple):
            return tuple(absolute(path, info) for path in given)
        return given if given is None or is_address(given) else absolute(given, info)

    def _check_keys(self) -> None:
        if isinstance(self.images, tuple) and self.format != "cifar10":
            raise FieldError("images", f"a list belongs to format = 'cifar10'; give one path for '{self.format}'")
        if self.is_own and self.format != "arrays":
            raise FieldError("format", f"'{self.format}' is of files, and images is an address; remove format")
        held = self.is_own or self.format == "cifar10" or str(self.images).endswith(".npz")
        if self.labels is not None and held:
            raise FieldError("labels", "these images come with labels of their own; remove labels")

    def look_up(self, info: ValidationInfo) -> None:
        """See `NamesOutside.look_up`."""
        self._check_keys()
        if self.is_own:
            super().look_up(info)
        elif self.may_open(info):
            self._read_at_once()
        found = self.kept
        if found is not None and isinstance(found.content, Images) and self._lacks_white(found.content):
            raise FieldError("white", self._lacks_white(found.content))

    def _read_at_once(self) -> None:
        try:
            self._of_files()
        except InputError as error:
            blamed = "labels" if str(error).startswith(f"{self.labels}:") else "images"
            raise FieldError(blamed, str(error)) from error

    @property
    def is_own(self) -> bool:
        """Whether images are those of a package or of a user's module."""
        return isinstance(self.images, str) and is_address(self.images)

    @property
    def paths(self) -> dict[str, str]:
        """See `FilePart.paths`."""
        images = (
            {"images": self.images}
            if isinstance(self.images, str)
            else {f"images[{i}]": image for i, image in enumerate(self.images)}
        )
        return images | ({} if self.labels is None else {"labels": self.labels})

    @property
    def asked(self) -> Any:
        """See `NamesOutside.asked`."""
        return self.format, self.paths

    @property
    def atoms(self) -> Images:
        """See `FilePart.atoms`."""
        return self.read

    @property
    def read(self) -> Images:
        """The images.

        Raises
        ------
        InputError
            If they cannot be read, or only a result names them.
        """
        if self.is_own:
            found: Images = self.found()
        else:
            found = self._of_files()
        if self._lacks_white(found):
            raise InputError(f"data.white: {self._lacks_white(found)}")
        return replace(found, white=self.white)

    def _of_files(self) -> Images:
        images = (self.images,) if isinstance(self.images, str) else self.images
        return self.read_once("data.images", lambda sha256: _images_of_files(sha256, self.format, images, self.labels))

    def _lacks_white(self, found: Images) -> str:
        """Fault if nobody says which value of a pixel is white: a type of numbers has it only for 8 bits."""
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
        order = np.random.default_rng(0).permutation(count)  # one seed: every run holds out the same
        held = round(self.held_out * count)
        return np.sort(order[held:]), np.sort(order[:held])


@lru_cache(maxsize=4)
def _images_of_files(sha256: tuple[str, ...], format: Format, paths: tuple[str, ...], labels: str | None) -> Images:
    """Images of files, which problems share as long as no byte of the files, labels included, changes."""
    return read_images(format, [Path(path) for path in paths], None if labels is None else Path(labels))
