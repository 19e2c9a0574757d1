"""Shortcuts through numba's compiler give what it gives."""

import numba
import pytest

from meanfield.process import numba_versions
from tests.process.test_entry_points import known

if numba_versions.is_numba_known():
    from numba.core import compiler, ir

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
    flags.nrt = not flags.nrt
    assert flags.values()["nrt"] is flags.nrt
