"""Values of a force at many points, and the cubic B-spline over which it is averaged next to a kink."""

from __future__ import annotations

from meanfield.numerics.compiled.scalar_functions import call_loop, call_scalar
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def evaluate_force(mesh, x, result):  # type: ignore[no-untyped-def]
    """Fill in the force of unit strength at all x."""
    if mesh.loop != 0:
        call_loop(mesh.loop, x, result)
    else:
        for j in range(x.size):
            result[j] = call_scalar(mesh.force, x[j])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def cubic_spline(x):  # type: ignore[no-untyped-def]
    """Cubic B-spline b(x) on [-2, 2], its integral C(x) from the left, and that of C."""
    u = abs(x)
    if u >= 2.0:
        density, tail, corner = 0.0, 0.0, 0.0
    elif u >= 1.0:
        v = 2.0 - u
        density, tail, corner = v**3 / 6.0, v**4 / 24.0, v**5 / 120.0
    else:
        square = u * u
        density = 2.0 / 3.0 - square + 0.5 * square * u
        tail = 0.5 - 2.0 * u / 3.0 + square * u / 3.0 - square * square / 8.0
        corner = 7.0 / 30.0 - 0.5 * u + square / 3.0 - square * square / 12.0 + square * square * u / 40.0
    return density, 1.0 - tail if x > 0.0 else tail, corner + max(x, 0.0)
