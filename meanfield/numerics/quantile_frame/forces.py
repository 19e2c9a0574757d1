"""Values of a force at many points, eight at a time where that costs no compilation."""

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
