"""Loops over vectors that vectorise, for compiled code without reference counts.

Vectors that are written may not overlap others. Where lengths differ, that of the vector that is written counts, or
else that of the first.
"""

from __future__ import annotations

from meanfield.numerics.compiled.without_reference_counts import without_reference_counts


@without_reference_counts(fastmath={"reassoc", "contract", "nsz"})
def dot(x, y):  # type: ignore[no-untyped-def]
    """Scalar product x.y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@without_reference_counts(fastmath={"reassoc", "contract", "nsz"})
def sum_of(x):  # type: ignore[no-untyped-def]
    """Sum of all elements."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@without_reference_counts()
def least_of(x):  # type: ignore[no-untyped-def]
    """The least element; numba compiles `x.min()` for complex numbers and NaN, too."""
    found = x[0]
    for i in range(1, x.size):
        found = min(found, x[i])
    return found


@without_reference_counts()
def largest_of(x):  # type: ignore[no-untyped-def]
    """The largest element."""
    found = x[0]
    for i in range(1, x.size):
        found = max(found, x[i])
    return found


@without_reference_counts()
def sort(x):  # type: ignore[no-untyped-def]
    """Sort few elements in place; for `np.sort` numba compiles a sort for many, which takes a second."""
    for i in range(1, x.size):
        value, place = x[i], i
        while place > 0 and x[place - 1] > value:
            x[place] = x[place - 1]
            place -= 1
        x[place] = value


@without_reference_counts()
def copy(x, out):  # type: ignore[no-untyped-def]
    """Write x to `out`; `out[:] = x` tells shapes apart, and takes longer to compile."""
    for i in range(out.size):
        out[i] = x[i]


@without_reference_counts(inline="always")  # a call takes longer than a short loop
def scale(x, factor, out):  # type: ignore[no-untyped-def]
    """Write factor x to `out`."""
    for i in range(out.size):
        out[i] = factor * x[i]


@without_reference_counts(fastmath={"contract"})
def add(x, of_y, y):  # type: ignore[no-untyped-def]
    """Add of_y y to x."""
    for i in range(x.size):
        x[i] += of_y * y[i]
