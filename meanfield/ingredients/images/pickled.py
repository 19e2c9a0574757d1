"""The Python version of CIFAR-10: pickled dictionaries, which are read without executing what stands in them.

A pickle is a program. Here it may make numbers, texts, bytes, lists, tuples and dictionaries; what it asks for of
numpy is met by stand-ins that only remember what they are given. Everything else is refused.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meanfield.errors import InputError
from meanfield.ingredients.images.binary import CHANNELS, CIFAR_SIDE, checked_labels, planes
from meanfield.ingredients.images.labelled import Images

Bytes = bytes | bytearray


class _Inert:
    """Stand-in, which takes what it is given and does nothing with it."""

    def __init__(self, *given: Any) -> None:
        self.given: Any = given

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Inert):
    """Stand-in for an array."""

    state: Any = None

    @property
    def values(self) -> NDArray[np.uint8]:
        """The numbers, if they are bytes without sign."""
        if self.state is None:  # numpy._core.numeric._frombuffer(buffer, dtype, shape, order)
            numbers, kind, shape, order = self.given
        else:
            _, shape, kind, by_columns, numbers = self.state
            order = "F" if by_columns else "C"
        if not isinstance(kind, _Type) or kind.given[0] not in ("u1", b"u1") or not isinstance(numbers, Bytes):
            raise ValueError("it holds numbers of another type")
        return np.frombuffer(numbers, dtype=np.uint8).reshape(tuple(shape), order=order)


class _Type(_Inert):
    """Stand-in for the type of an array."""


class _Encoded(_Inert):
    """Stand-in for the function that turns text into bytes, which stands in pickles of old protocols."""

    def __new__(cls, text: str, encoding: str) -> Any:
        """Bytes of a text."""
        if encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError(f"the encoding {encoding}")
        return text.encode("latin1")


class _Class(_Inert):
    """Stand-in for the class of arrays, which is an argument only."""


STAND_INS: dict[tuple[str, str], type[_Inert]] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _Array for core in ("core", "_core")},
    ("numpy", "ndarray"): _Class,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encoded,
}
"""What a pickle may ask for, and what it gets."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Stand-in, in place of the import."""
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not imported")
        return STAND_INS[module, name]


def read_cifar10_pickle(path: Path) -> Images:
    """Images of a Python file of CIFAR-10, such as `data_batch_1`.

    Raises
    ------
    InputError
        If it cannot be read, is damaged, or asks for anything but arrays and dictionaries.
    """
    try:
        with open(path, "rb") as file:
            found = _Reader(file, encoding="bytes").load()
        rows, labels = _entry(found, "data").values, _entry(found, "labels")
        if rows.ndim != 2 or rows.shape[1] != CHANNELS * CIFAR_SIDE**2 or len(rows) == 0:
            raise ValueError(f"its data have the shape {rows.shape}, not (images, {CHANNELS * CIFAR_SIDE**2})")
        if not isinstance(labels, list) or len(labels) != len(rows):
            raise ValueError(f"it has no list of {len(rows)} labels")
        classes = np.array([label if type(label) is int and 0 <= label < 256 else 255 for label in labels], np.uint8)
    except Exception as error:  # a damaged pickle raises whatever its program leads to
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path}: cannot be read as a batch of CIFAR-10 ({reason}); download it again, or the binary version"
        ) from error
    return Images(planes(rows, CIFAR_SIDE), checked_labels(path, classes, 0))


def _entry(found: Any, key: str) -> Any:
    """Entry of the dictionary, whose keys are bytes or text."""
    if not isinstance(found, dict):
        raise ValueError("it is no dictionary")
    for name in (key.encode(), key):
        if name in found:
            return found[name]
    raise ValueError(f"it has no '{key}'")
