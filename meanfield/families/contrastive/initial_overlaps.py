"""Initial overlaps q(0) of the channels with features, and M(0) of channels: which of them unit vectors can have.

The channels are vectors w_k with |w_k|^2 = N. Their overlaps with the features are q = U^T W/N, and with each other
M = W^T W/N. What they do not share by the features is K = M - q^T q, a matrix of covariances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.typing import FloatArray

MATRIX_ROUNDING = 1e-9
"""Largest deviation of a matrix from being symmetric, of unit diagonal or positive semidefinite, by rounding."""

KEY = "model.initial_channel_overlap"


def overlaps_of_features(given: list[Any], channels: int) -> FloatArray:
    """The overlaps q(0) of the problem file as a matrix.

    Parameters
    ----------
    given : list
        `initial_overlap` of each feature: a number for one channel, a number per channel for several, or 'random'.

    Returns
    -------
    ndarray, shape (d1, d2)
        Zero for a random start.

    Raises
    ------
    ValueError
        If a feature has too few or too many numbers, some start at random and others do not, or a channel does not lie
        inside the unit ball.
    """
    random = [isinstance(value, str) for value in given]
    if any(random):
        if not all(random):
            raise ValueError(
                "features.initial_overlap is 'random' for some features and a number for others; "
                "make it 'random' for all or for none"
            )
        return np.zeros((len(given), channels))
    for k, value in enumerate(given):
        if channels == 1 and isinstance(value, tuple):
            raise ValueError(
                f"features[{k}].initial_overlap = {list(value)}: a list is for several channels; give one number, "
                "or set model.channels"
            )
        if channels > 1 and (not isinstance(value, tuple) or len(value) != channels):
            shown, count = (list(value), len(value)) if isinstance(value, tuple) else (value, 1)
            raise ValueError(
                f"features[{k}].initial_overlap = {shown}: {count} number(s) for model.channels = {channels}; give a "
                f"list of {channels}, one number per channel"
            )
    q = np.array(given, dtype=float).reshape(len(given), channels)
    with np.errstate(over="ignore"):
        squared = (q * q).sum(axis=0)
    for k in np.flatnonzero(~(squared < 1)).tolist():
        of_channel = f" of channel {k + 1}" if channels > 1 else ""
        raise ValueError(
            f"features.initial_overlap = {q[:, k].tolist()}{of_channel}: |q(0)|^2 = {squared[k]:.6g}, but it must be "
            "below 1 because weights and features lie on a sphere; lower initial_overlap"
        )
    return q


def overlap_of_channels(given: float | tuple[tuple[float, ...], ...] | None, q: FloatArray) -> FloatArray:
    """The overlaps M(0) of the channels.

    Parameters
    ----------
    given : float, matrix or None
        `model.initial_channel_overlap`: one number for all pairs, all of M(0), or nothing. Then channels share no more
        than their overlaps with the features: K is diagonal.
    q : ndarray, shape (d1, d2)
        Overlaps q(0) inside the unit ball.

    Returns
    -------
    ndarray, shape (d2, d2)

    Raises
    ------
    ValueError
        If M(0) is not symmetric with a unit diagonal, or no channels have such overlaps because K is not positive
        semidefinite.
    """
    channels = q.shape[1]
    shared = q.T @ q
    if given is None:
        M = shared
    elif isinstance(given, tuple):
        M = _matrix(given, channels)
    else:
        if not -1 <= given <= 1:
            raise ValueError(f"{KEY} = {given}: the overlap of two channels lies in [-1, 1]; correct it")
        M = np.full((channels, channels), given)
    M = M.copy()
    np.fill_diagonal(M, 1.0)
    least = float(np.linalg.eigvalsh(M - shared).min())
    if least < -MATRIX_ROUNDING:
        pairs = f"{given}" if not isinstance(given, tuple) else f"{[list(row) for row in given]}"
        raise ValueError(
            f"{KEY} = {pairs} with features.initial_overlap = {q.tolist()}: no channels have these overlaps, because "
            f"M(0) - q(0)^T q(0) has the eigenvalue {least:.4g} below 0; {_remedy(given, shared)}"
        )
    return M


def _matrix(given: tuple[tuple[float, ...], ...], channels: int) -> FloatArray:
    shape = f"{channels} x {channels}"
    if len(given) != channels or any(len(row) != channels for row in given):
        sizes = ", ".join(str(len(row)) for row in given)
        raise ValueError(
            f"{KEY}: {len(given)} row(s) of {sizes} number(s) for model.channels = {channels}; give {shape} numbers, "
            "or one number for all pairs"
        )
    M = np.array(given, dtype=float)
    wrong = np.flatnonzero(np.abs(np.diag(M) - 1.0) > MATRIX_ROUNDING)
    if len(wrong):
        k = wrong[0]
        raise ValueError(
            f"{KEY}[{k}][{k}] = {M[k, k]:g}: the overlap of a channel with itself is 1; set the diagonal to 1"
        )
    unequal = np.argwhere(~(np.abs(M - M.T) <= MATRIX_ROUNDING))
    if len(unequal):
        k, j = unequal[0]
        raise ValueError(f"{KEY}[{k}][{j}] = {M[k, j]:g}, but [{j}][{k}] = {M[j, k]:g}; make the matrix symmetric")
    return np.asarray(0.5 * (M + M.T))


def _remedy(given: float | tuple[tuple[float, ...], ...] | None, shared: FloatArray) -> str:
    """Remedy for a message: for two channels the range of their overlap."""
    if len(shared) == 2:
        room = np.sqrt((1 - shared[0, 0]) * (1 - shared[1, 1]))
        return f"give an overlap of the two channels from {shared[0, 1] - room:.6g} to {shared[0, 1] + room:.6g}"
    return "bring the overlaps of the channels nearer to q(0)^T q(0), or leave the key out"
