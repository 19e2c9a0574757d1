"""Shortcuts through numba's compiler give what it gives."""

import operator

import numba
import numpy as np
import pytest

from meanfield.process import numba_versions
from tests.process.test_entry_points import known

if numba_versions.is_numba_known():
    from llvmlite import ir as llvm
    from numba.core import compiler, event, ir, types
    from numba.core.registry import cpu_target
    from numba.core.targetconfig import ConfigStack
    from numba.extending import overload

    from meanfield.process import compiler_shortcuts


def statements():
    """Statements of all kinds, in the language of numba."""

    def function(x, y, *more):
        total, pair = {"a": x}, [y, (x, y)]
        for i in range(3):
            x[i] += y if i < 2 else -x[i + 1]
            del pair[0]
        print(x, i, *more)
        return total, pair, numba

    blocks = compiler.run_frontend(function).blocks.values()
    return [statement for block in blocks for statement in block.body]


@known
def test_a_statement_has_the_variables_that_numba_finds(monkeypatch):
    found = [[variable.name for variable in statement.list_vars()] for statement in statements()]
    monkeypatch.setattr(ir.Inst, "_rec_list_vars", compiler_shortcuts._variables_of_any)
    expected = [[variable.name for variable in statement.list_vars()] for statement in statements()]
    assert found == expected
    assert max(map(len, found)) > 2


@known
@pytest.mark.parametrize("options", [{}, {"nogil": True, "fastmath": {"contract"}}])
def test_options_have_the_values_that_numba_finds(options):
    flags = compiler.Flags()
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
    flags = compiler.Flags()
    alike, other = flags.copy(), flags.copy()
    alike.no_compile = alike.no_cpython_wrapper = True
    other.fastmath = True
    assert flags == alike
    assert hash(flags) == hash(alike)
    assert flags != other


@known
def test_types_have_the_size_that_llvm_finds():
    data = cpu_target.target_context.target_data
    pair = llvm.LiteralStructType([llvm.IntType(8), llvm.DoubleType()])
    for kind in (llvm.IntType(1), llvm.IntType(64), llvm.FloatType(), pair, pair.as_pointer(), llvm.ArrayType(pair, 3)):
        sizes = [kind.get_abi_size(data) for _ in range(2)]
        assert sizes == [compiler_shortcuts._size_of_any(kind, data)] * 2
    assert pair.get_abi_size(data) == 16


@known
@pytest.mark.parametrize("function", [operator.add, operator.lt, operator.pow, np.sqrt, np.add])
@pytest.mark.parametrize("fastmath", [False, True])
def test_operations_have_the_signature_that_numba_finds(function, fastmath):
    context = cpu_target.typing_context
    context.refresh()
    kind = context.resolve_value_type(function)
    array = types.Array(types.float64, 1, "C")
    number = 1 if function is np.sqrt else 2
    flags = compiler.Flags()
    flags.fastmath = fastmath
    with ConfigStack().enter(flags):
        for argument in (types.int64, types.float64, array):
            if argument is array and function is operator.pow:
                continue
            kinds = (argument,) * number
            expected = compiler_shortcuts._signature_of_any(kind, context, kinds, {})
            implementation = kind._impl_keys[expected.args]
            for _ in range(2):
                kind._impl_keys.clear()
                assert kind.get_call_type(context, kinds, {}) == expected
                assert kind._impl_keys[expected.args] is implementation


@known
def test_functions_that_are_registered_later_are_found():
    """Contexts look for what is new only if there is something."""

    @numba.njit
    def nothing():
        return 0

    assert nothing() == 0

    def registered(x):
        raise NotImplementedError

    @overload(registered)
    def _registered(x):
        return lambda x: x + 1

    @numba.njit
    def calls(x):
        return registered(x)

    assert calls(1) == 2


@known
def test_nothing_watches_the_lock_of_llvm():
    with event.install_recorder("numba:llvm_lock") as recorder:
        assert numba.njit(lambda: 1)() == 1
    assert not recorder.buffer
