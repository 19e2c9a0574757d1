"""Plain SGD of the paper's networks on many mixtures at once, which share their normal numbers.

It shares no code with the library, and knows no theory. Inputs are signs, x = sign(F^T C/sqrt(D)). Latents of all
mixtures are linear in the same random numbers, so that products with F, which take most of the time, are computed once
for all of them. That mixtures share their noise also makes differences between them more accurate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

FloatArray = np.ndarray

RATE = 0.2
"""The paper's learning rate, of both layers."""

ACTIVATIONS = ("relu", "scaled_erf")


class Start(NamedTuple):
    """Networks before training: entries are independent normal numbers, the same for both activations.

    Parameters
    ----------
    fields : ndarray of float32, shape (D, N + teachers)
        F/sqrt(D), and beside it Wt/sqrt(D): C times this are the arguments of all inputs, and the teacher's fields.
    W : ndarray, shape (students, N)
    v : ndarray, shape (students,)
    vt : ndarray, shape (teachers,)
    """

    fields: FloatArray
    W: FloatArray
    v: FloatArray
    vt: FloatArray

    @property
    def latents(self) -> int:
        """D."""
        return int(self.fields.shape[0])

    @property
    def features(self) -> FloatArray:
        """F, shape (D, N)."""
        return self.fields[:, : self.W.shape[1]].astype(float) * math.sqrt(self.latents)

    @property
    def teacher(self) -> FloatArray:
        """Wt, shape (teachers, D)."""
        return self.fields[:, self.W.shape[1] :].T.astype(float) * math.sqrt(self.latents)


def draw_start(rng: np.random.Generator, N: int, D: int, units: int = 2) -> Start:
    """Networks and features of one run."""
    fields = rng.standard_normal((D, N + units)) / math.sqrt(D)
    return Start(
        fields.astype(np.float32),
        rng.standard_normal((units, N)),
        rng.standard_normal(units),
        rng.standard_normal(units),
    )


class Student(NamedTuple):
    """Weights of a student, which SGD changes in place."""

    W: FloatArray
    v: FloatArray
    relu: bool


def students_of(start: Start) -> list[Student]:
    """A student for each of `ACTIVATIONS`."""
    return [Student(start.W.copy(), start.v.copy(), name == "relu") for name in ACTIVATIONS]


@numba.njit(cache=True, error_model="numpy")
def combine(parts, factors, offsets, component, out):  # type: ignore[no-untyped-def]
    """Fields of samples: parts times factors, and the offset of each sample's component.

    Parameters
    ----------
    parts : ndarray of float32, shape (parts, samples, fields)
    factors : ndarray of float32, shape (parts,)
    offsets : ndarray of float32, shape (components, fields)
    component : ndarray of int, shape (samples,)
    out : ndarray of float32, shape (samples, fields)
    """
    for s in range(parts.shape[1]):
        offset = offsets[component[s]]
        for i in range(out.shape[1]):
            out[s, i] = offset[i]
        for p in range(parts.shape[0]):
            factor, part = factors[p], parts[p, s]
            for i in range(out.shape[1]):
                out[s, i] += factor * part[i]


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def advance(fields, student, vt, rate):  # type: ignore[no-untyped-def]
    """Steps of SGD, one for each sample.

    Parameters
    ----------
    fields : ndarray of float32, shape (samples, N + teachers)
        F^T C/sqrt(D), and the teacher's fields.
    student : Student
    vt : ndarray, shape (teachers,)
    rate : float
        Learning rate of both layers.
    """
    W, v, relu = student
    K, N = W.shape
    x, own, gain = np.empty(N), np.empty(K), np.empty(K)
    for s in range(fields.shape[0]):
        row = fields[s]
        for i in range(N):
            x[i] = 1.0 if row[i] > 0 else -1.0
        delta = 0.0
        for k in range(K):
            total = 0.0
            for i in range(N):
                total += W[k, i] * x[i]
            own[k] = total / math.sqrt(N)
            delta += v[k] * _value(relu, own[k])
        for m in range(vt.size):
            delta -= vt[m] * _value(relu, row[N + m])
        for k in range(K):
            gain[k] = -rate / math.sqrt(N) * v[k] * delta * _slope(relu, own[k])
            v[k] -= rate / N * delta * _value(relu, own[k])
            for i in range(N):
                W[k, i] += gain[k] * x[i]


@numba.njit(inline="always", error_model="numpy")
def _value(relu, x):  # type: ignore[no-untyped-def]
    """Activation, ReLU or erf(x/sqrt 2)."""
    return max(x, 0.0) if relu else math.erf(x * math.sqrt(0.5))


@numba.njit(inline="always", error_model="numpy")
def _slope(relu, x):  # type: ignore[no-untyped-def]
    """Its slope."""
    if relu:
        return 1.0 if x > 0 else 0.0
    return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * x * x)
