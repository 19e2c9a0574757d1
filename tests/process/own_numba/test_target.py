"""Shortcuts through numba's compiler give what it gives."""

import operator

import numba
import numpy as np
import pytest

from meanfield.process import own_numba
from meanfield.process.own_numba import versions
from tests.process.own_numba.test_functions import known

if versions.is_numba_known():
    from llvmlite import ir as llvm
    from numba.core import compiler, event, types
    from numba.core.registry import cpu_target
    from numba.core.targetconfig import ConfigStack
    from numba.extending import overload

    from meanfield.process.own_numba.target import Flags, descriptor


@known
@pytest.mark.parametrize("options", [{}, {"nogil": True, "fastmath": {"contract"}}])
def test_options_have_the_values_that_numba_finds(options):
    flags = Flags()
    numba.njit(lambda: None)._compiler.targetdescr.options.parse_as_flags(flags, options)
    assert flags.values() == {name: getattr(flags, name) for name in flags.options}
    assert flags == flags.copy()
    assert hash(flags) == hash(flags.copy())
    before = flags.copy()
    flags.nrt = not flags.nrt
    assert flags.values()["nrt"] is flags.nrt
    assert flags != before


@known
def test_functions_share_what_is_compiled_for_those_that_they_call():
    """Whether Python may call a function says nothing about its callees; how numbers are rounded does."""
    flags = Flags()
    alike, other = flags.copy(), flags.copy()
    alike.no_compile = alike.no_cpython_wrapper = True
    other.fastmath = True
    assert flags == alike
    assert hash(flags) == hash(alike)
    assert flags != other
    assert flags != compiler.Flags()
    assert compiler.Flags() != flags


@known
def test_types_have_the_size_that_llvm_finds():
    data = cpu_target.target_context.target_data
    pair = llvm.LiteralStructType([llvm.IntType(8), llvm.DoubleType()])
    for kind in (llvm.IntType(1), llvm.IntType(64), llvm.FloatType(), pair, pair.as_pointer(), llvm.ArrayType(pair, 3)):
        sizes = [descriptor.target_context.get_abi_sizeof(kind) for _ in range(2)]
        assert sizes == [kind.get_abi_size(data)] * 2


@known
@pytest.mark.parametrize("function", [operator.add, operator.lt, operator.pow, np.sqrt, np.add])
@pytest.mark.parametrize("fastmath", [False, True])
def test_operations_have_the_signature_that_numba_finds(function, fastmath):
    context = descriptor.typing_context
    context.refresh()
    kind = context.resolve_value_type(function)
    array = types.Array(types.float64, 1, "C")
    number = 1 if function is np.sqrt else 2
    flags = Flags()
    flags.fastmath = fastmath
    with ConfigStack().enter(flags):
        for argument in (types.int64, types.float64, array):
            if argument is array and function is operator.pow:
                continue
            kinds = (argument,) * number
            expected = kind.get_call_type(context, kinds, {})
            implementation = kind._impl_keys[expected.args]
            for asked in (function, kind, function):
                assert context.resolve_function_type(asked, kinds, {}) == expected
                found = kind._impl_keys.pop(expected.args)
                assert found is implementation or argument is array  # numba may compile one for arrays once more


@known
def test_what_numba_compiles_for_our_functions_is_ours():
    """Also what it compiles while it writes code, for methods of arrays and for shapes that disagree."""

    @own_numba.njit
    def assigns(x, out):
        out[:] = x
        return x.any()

    x = np.zeros(2, np.int16)  # of a type that nothing else has
    with event.install_recorder("numba:compile") as seen:
        assigns(x, x.copy())
    assert {type(each.data["dispatcher"]) for _, each in seen.buffer} == {type(assigns)}
    with pytest.raises(ValueError, match="size"):
        assigns(x, np.zeros(3, np.int16))


@known
def test_functions_that_are_registered_later_are_found():
    """Contexts look for what is new only if there is something."""

    @own_numba.njit
    def nothing():
        return 0

    assert nothing() == 0

    def registered(x):
        raise NotImplementedError

    @overload(registered)
    def _registered(x):
        return lambda x: x + 1

    @own_numba.njit
    def calls(x):
        return registered(x)

    assert calls(1) == 2
