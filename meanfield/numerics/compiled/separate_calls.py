"""Calls in compiled code that leave the function that is called where it is.

numba links the code of every function into its callers, and LLVM inlines and optimises it in each of them anew: a large
function at the end of a chain of calls is compiled as often as the chain has links. `call` compiles it once, and the
caller holds a symbol that stands for its address (`meanfield.process.own_numba.callee`). A function that is not
compiled for our target, as on versions of numba that are not known, is linked as any other.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from meanfield.process.own_numba.callee import Callee


@intrinsic
def call(typing_context, function, *arguments):  # type: ignore[no-untyped-def]
    """`call(function, ...)` inside compiled code: the result of a compiled function, by a call that is never inlined.

    The function stands at the top of its module. A call takes some 20 ns, little for what takes microseconds.
    """
    kinds = tuple(types.unliteral(kind) for kind in arguments)
    result = separate_call_type(typing_context, function, kinds).return_type

    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        unpacked = cgutils.unpack_tuple(builder, values[1], len(kinds))
        return generate_separate_call(context, builder, function, kinds, unpacked)

    return result(function, types.StarArgTuple(arguments)), generate


def separate_call_type(typing_context: Any, function: Any, kinds: tuple[Any, ...]) -> Any:
    """Signature of a call of a compiled function, given by its type in numba, with arguments of these types."""
    compiled = _separately_compiled(function.dispatcher, kinds)
    return compiled.signature if compiled else function.get_call_type(typing_context, kinds, {})


def generate_separate_call(context: Any, builder: Any, function: Any, kinds: tuple[Any, ...], values: Any) -> Any:
    """Write a call of a compiled function in the language of LLVM; for intrinsics."""
    python, convention = function.dispatcher.py_func, context.call_conv
    compiled = _separately_compiled(function.dispatcher, kinds)
    if compiled is None:
        linked = function.dispatcher.overloads[kinds]
        context.add_linking_libs([linked.library])
        return context.call_internal(builder, linked.fndesc, linked.signature, values)
    callee = Callee(python.__module__, python.__qualname__, kinds)
    callee()
    result = compiled.signature.return_type
    declared = cgutils.get_or_insert_function(
        builder.module, convention.get_function_type(result, kinds), callee.symbol
    )
    status, value = convention.call_function(builder, declared, result, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    context.active_code_library._reload_init.add(callee)
    return value


def _separately_compiled(dispatcher: Any, kinds: tuple[Any, ...]) -> Any:
    """Result of compilation with machine code that is called by its address; None of functions of numba's target."""
    return dispatcher.machine_code(kinds) if hasattr(dispatcher, "machine_code") else None
