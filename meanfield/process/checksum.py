"""Checksum of a file: the digest of its bytes, appended to them, so that damage is noticed before HDF5 reads it.

HDF5 keeps checksums of a part of its bookkeeping only, and by default none of the data: a flipped bit there is another
number, and a damaged index can keep it busy for ever. What follows the end that a file states is no part of it: HDF5
ignores the checksum, and drops it when it opens the file for writing.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from meanfield.errors import InputError

MARK = b"\nmeanfield sha256 "
LENGTH = len(MARK) + 2 * hashlib.sha256().digest_size + 1
BYTES_AT_ONCE = 1 << 20
"""Number of bytes that are read at once."""


def append_checksum(path: str | Path) -> None:
    """Append the checksum of a file to it."""
    digest = _digest(path, os.path.getsize(path))
    with open(path, "ab") as file:
        file.write(MARK + digest + b"\n")


def verify_checksum(path: str | Path, remedy: str = "take another copy of the file, or run the solver again") -> bool:
    """Check a file against its checksum, and return whether it has one.

    Parameters
    ----------
    remedy : str
        What to do if it does not fit.

    Raises
    ------
    InputError
        If it has one that does not fit.
    """
    size = os.path.getsize(path) - LENGTH
    if size < 0:
        return False
    with open(path, "rb") as file:
        file.seek(size)
        checksum = file.read()
    if not checksum.startswith(MARK):
        return False
    if checksum != MARK + _digest(path, size) + b"\n":
        raise InputError(f"{path}: is damaged, its bytes are not those that meanfield wrote; {remedy}")
    return True


def digest_of_file(path: str | Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal digits.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(path: str | Path, size: int) -> bytes:
    """Digest of the first bytes of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for first in range(0, size, BYTES_AT_ONCE):
            digest.update(file.read(min(BYTES_AT_ONCE, size - first)))
    return digest.hexdigest().encode()
