"""Thread barrier for compiled code: threads wait for each other at the cost of a fraction of a microsecond.

Handing work to a thread of a pool takes tens of microseconds, as long as a step of a density. Threads that take all
steps side by side and meet once in each need no hand-over.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from meanfield.process import own_numba as numba
from meanfield.typing import IntArray

COUNTER_DISTANCE = 16
"""Distance of the counters of different threads in an array: they lie on cache lines of their own."""


def counters(threads: int) -> IntArray:
    """Counters of the barriers that each thread has reached; new ones for every march."""
    return np.zeros(threads * COUNTER_DISTANCE, dtype=np.int64)


@cache
def give_way_address() -> int:
    """Address of the system's function by which a thread yields its core."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@intrinsic
def _publish(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Write a number to memory; a thread that sees it sees everything that was written before."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index, value = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        builder.store_atomic(value, builder.gep(data, [index]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic
def _observe(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Read a number that another thread publishes."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, index = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        return builder.load_atomic(builder.gep(data, [index]), "acquire", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _call(typing_context, address):  # type: ignore[no-untyped-def]
    """Call the function without arguments at an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.intp), generate


@numba.njit(cache=True, nogil=True)
def meet(arrived, thread, meeting, give_way):  # type: ignore[no-untyped-def]
    """Wait until all threads have reached a barrier.

    Parameters
    ----------
    arrived : ndarray of int
        From `counters`.
    thread : int
        Number of the thread that calls.
    meeting : int
        1, 2, 3, ... the same in all threads.
    give_way : int
        From `give_way_address`.
    """
    _publish(arrived, thread * COUNTER_DISTANCE, meeting)
    for other in range(arrived.size // COUNTER_DISTANCE):
        spins = 0
        while _observe(arrived, other * COUNTER_DISTANCE) < meeting:
            spins += 1
            if spins > 2000:  # a few microseconds, before the processor is offered to others
                _call(give_way)
