"""Calls in compiled code that leave the function that is called where it is.

numba links the code of every function into its callers, and LLVM inlines and optimises it in each of them anew: a large
function at the end of a chain of calls is compiled as often as the chain has links. `call` compiles it once. The caller
holds a symbol, which stands for the function's address in this process: before numba takes a caller from its cache, the
function is loaded, or compiled if it has changed, and its address told to LLVM. On versions of numba that are not known
(`meanfield.process.numba_versions`) it is linked, as any other function.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import Any

from llvmlite import binding
from numba.core import cgutils, types
from numba.core.compiler import CompileResult
from numba.extending import intrinsic

from meanfield.process.numba_versions import is_numba_known


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
    if not is_numba_known():
        return function.get_call_type(typing_context, kinds, {})
    from meanfield.process.entry_points import make_machine_code  # not every version of numba has what that imports

    return make_machine_code(function.dispatcher, kinds).signature


def generate_separate_call(context: Any, builder: Any, function: Any, kinds: tuple[Any, ...], values: Any) -> Any:
    """Write a call of a compiled function in the language of LLVM; for intrinsics."""
    if not is_numba_known():
        return _generate_linked_call(context, builder, function.dispatcher.overloads[kinds], values)
    python, convention = function.dispatcher.py_func, context.call_conv
    result = function.dispatcher.overloads[kinds].signature.return_type
    load = partial(_load, python.__module__, python.__qualname__, kinds, result)
    declared = cgutils.get_or_insert_function(builder.module, convention.get_function_type(result, kinds), load())
    status, value = convention.call_function(builder, declared, result, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    # What numba calls before it takes from its cache this caller, or others into which it has linked this one.
    context.active_code_library._reload_init.add(load)
    return value


def _generate_linked_call(context: Any, builder: Any, compiled: Any, values: Any) -> Any:
    context.add_linking_libs([compiled.library])
    return context.call_internal(builder, compiled.fndesc, compiled.signature, values)


def _load(module: str, name: str, kinds: tuple[Any, ...], result: Any) -> str:
    """Load or compile a function for arguments of these types, and tell LLVM its address; the symbol of that.

    Raises
    ------
    RuntimeError
        If the result is of another type than the caller was compiled for.
    """
    from meanfield.process.entry_points import make_machine_code  # not every version of numba has what that imports

    compiled = make_machine_code(getattr(import_module(module), name), kinds)
    if compiled.signature.return_type != result:
        raise RuntimeError(
            f"{module}.{name} returns {compiled.signature.return_type}, but compiled code on disk expects {result}; "
            "delete the files *.nbi and *.nbc beside the sources, or the folder NUMBA_CACHE_DIR"
        )
    symbol = f"{module}.{name}.{sha256(str(kinds).encode()).hexdigest()[:16]}"
    binding.add_symbol(symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
    return symbol


def _with_its_loaders(rebuild: Any) -> Any:
    """Method of numba that takes a function from its cache, extended: a new caller that links it inherits its loaders.

    numba runs them, and then forgets them. The new caller would go to the cache without, and LLVM would end the process
    that takes it from there, in the search of symbols that nobody has loaded.
    """

    def rebuild_with_loaders(cls: Any, *state: Any) -> Any:
        result = rebuild(cls, *state)
        result.library._reload_init.update(result.reload_init or ())
        return result

    return classmethod(rebuild_with_loaders)


if is_numba_known():
    _compile_result: Any = CompileResult
    _compile_result._rebuild = _with_its_loaders(_compile_result._rebuild.__func__)
