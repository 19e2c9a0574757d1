"""Texts that people wrote: UTF-8 with or without a mark in front, and a message about any other encoding."""

from __future__ import annotations

from pathlib import Path

REMEDY = "save it as UTF-8, which editors offer beside the name of the file"


def read_utf8(path: Path) -> str:
    """Text of a file in UTF-8.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is in another encoding; the message names it where it can be told, and the remedy.
    """
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:  # without a mark the zeros of Latin letters
        raise ValueError(f"it is UTF-16, as some Windows editors and '>' of Windows PowerShell write it; {REMEDY}")
    if b"\0" in data:
        raise ValueError("it is no text, but a file of data, such as a result")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"byte 0x{data[error.start]:02x} in line {line} is no UTF-8; {REMEDY}") from error
