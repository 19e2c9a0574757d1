"""Kinks of a rule: linear forms of what it reads, as coefficients of the columns of a row."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

import numpy as np

from meanfield.ingredients.nearest import nearest
from meanfield.numerics.compiled.row_functions import Argument
from meanfield.numerics.gaussian_moments.rules import Kinks
from meanfield.typing import FloatArray


def kinks_of(kinks: tuple[str, ...], names: Mapping[str, Argument], width: int, numbers: Mapping[str, float]) -> Kinks:
    """Kinks that a rule names, by linear forms that are 0 there.

    A name of several vectors stands for each of them, `s[0]` for one, and that of a parameter for its value.

    Parameters
    ----------
    kinks : tuple of str
        Such as `s`, `s - y` or `2*s[0] - 1`.
    names : mapping of str to Argument
    width : int
        Number of columns of a row.
    numbers : mapping of str to float
        Values of parameters.

    Raises
    ------
    ValueError
        If one is no linear form of what is in a row.
    """
    columns, one = np.eye(width + 1), np.eye(width + 1)[width:]
    known = {
        name: np.split(columns[list(place.columns)], place.shape[0] if place.shape else 1)
        for name, place in names.items()
        if not place.constant
    }
    known |= {name: [value * one] for name, value in numbers.items()}
    rows = np.concatenate([one[:0], *(_form(text, known) for text in kinks)])
    rows /= np.abs(rows[:, :width]).max(axis=1, keepdims=True)  # small factors would be taken for rounding
    return Kinks(rows[:, :width], -rows[:, width])


def _form(text: str, known: Mapping[str, list[FloatArray]]) -> FloatArray:
    """Coefficients and offsets of a text, shape (forms, width + 1), from those of names by their first index."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"the kink '{text}' cannot be read; write a linear form such as 's - y' or 's - 1'") from error
    found = _value(tree, text, known)
    if not found[:, :-1].any(axis=1).all():
        raise ValueError(f"the kink '{text}' reads no field; write a linear form such as 's - y' or 's - 1'")
    return found


def _value(node: ast.expr, text: str, known: Mapping[str, list[FloatArray]]) -> FloatArray:
    """Linear forms of an expression, a row for each of several vectors."""
    match node:
        case ast.Constant(value=int() | float() as number) if math.isfinite(number):
            width = next(iter(known.values()))[0].shape[1]
            return number * np.eye(width)[-1:]
        case ast.Name(id=name):
            if name not in known:
                raise ValueError(f"the kink '{text}': '{name}' is no field or parameter; {nearest(name, list(known))}")
            return np.concatenate(known[name])
        case ast.Subscript(value=ast.Name() as vectors, slice=ast.Constant(value=int() as index)):
            _value(vectors, text, known)  # refuses names that are not there
            parts = known[vectors.id]
            if not 0 <= index < len(parts):
                raise ValueError(f"the kink '{text}': {vectors.id} has {len(parts)} vector(s), counted from 0")
            return parts[index]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, text, known)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            one, other = (_value(side, text, known) for side in (left, right))
            if len(one) != len(other) and 1 not in (len(one), len(other)):
                raise ValueError(f"the kink '{text}': {len(one)} and {len(other)} vectors; name one, as in s[0]")
            return one + other if isinstance(op, ast.Add) else one - other
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            one, other = (_value(side, text, known) for side in (left, right))
            if isinstance(op, ast.Mult) and not one[:, :-1].any():
                one, other = other, one
            if not other[:, :-1].any() and other[0, -1] != 0.0:
                factor = float(other[0, -1])
                return one * (factor if isinstance(op, ast.Mult) else 1.0 / factor)
    raise ValueError(
        f"the kink '{text}' is not linear; write forms such as 's - y' or 's - 1', and of a product one for each factor"
    )
