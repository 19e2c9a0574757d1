"""Python functions that compiled code calls by address, without knowing what they do."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64)


class Callback:
    """A function without arguments that compiled code can call, without holding the global interpreter lock.

    Numbers go to it and come back through arrays that both sides know. It says whether compiled code should stop, and
    so does an exception, which is kept until `reraise`.

    Parameters
    ----------
    function : callable
        Gives whether to stop.

    Attributes
    ----------
    address : int
        For `call_back`; valid as long as this object lives.
    """

    def __init__(self, function: Callable[[], bool]) -> None:
        self._function = function
        self._raised: BaseException | None = None
        self._pointer = _SIGNATURE(self._call)
        self.address = int(ctypes.cast(self._pointer, ctypes.c_void_p).value or 0)

    def _call(self) -> int:
        try:
            return int(self._function())
        except BaseException as error:  # ctypes would print it and go on
            self._raised = error
            return 1

    def reraise(self) -> None:
        """Raise what the last call has raised, if it did."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


@intrinsic
def call_back(typing_context, address):  # type: ignore[no-untyped-def]
    """`call_back(address)` inside compiled code: call the function of a `Callback`; whether to stop."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        integer = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(integer, []).as_pointer())
        return builder.icmp_signed("!=", builder.call(function, []), integer(0))

    return types.boolean(types.intp), generate
