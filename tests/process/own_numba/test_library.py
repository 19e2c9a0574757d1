"""Linking of our compiled code, written in the language of LLVM."""

from ctypes import CFUNCTYPE, c_double
from functools import partial
from itertools import permutations
from types import SimpleNamespace

import llvmlite.binding as llvm
import pytest

from meanfield.process.own_numba import versions
from tests.process.own_numba.test_functions import known

if versions.is_numba_known():
    from meanfield.process.own_numba.callee import Callee
    from meanfield.process.own_numba.library import Library

    class Written(Callee):
        """Function whose code is written below."""

        def compiled(self):
            return SimpleNamespace(
                library=library(CODE[self.name], CALLEES[self.name]), fndesc=SimpleNamespace(llvm_func_name=self.name)
            )

    FIRST, SECOND, THIRD = (Written("module", name, ()) for name in ("first", "second", "third"))
    CALLEES = {"third": [], "second": [THIRD], "first": [SECOND]}
    """What each function calls by its address."""


def library(code, callees):
    """Library of some code that calls others by their addresses."""
    symbols = {name: each.symbol for name, each in (("FIRST", FIRST), ("SECOND", SECOND), ("THIRD", THIRD))}
    own = llvm.parse_assembly(code.format(**symbols))
    made = SimpleNamespace(_own_module=lambda: own, _reload_init=callees)
    made._get_module_for_linking = partial(Library._get_module_for_linking, made)
    return made


CODE = {
    "third": "define linkonce_odr double @third() {{ ret double 4.0 }}",
    "second": """declare double @"{THIRD}"()
        define linkonce_odr double @second() {{ %x = call double @"{THIRD}"() %y = fadd double %x, 2.0 ret double %y }}
        """,
    "first": """declare double @"{SECOND}"()
        define linkonce_odr double @first() {{ %x = call double @"{SECOND}"() %y = fadd double %x, 1.0 ret double %y }}
        """,
}
CALLER = """
declare double @"{FIRST}"()
declare double @"{SECOND}"()
declare double @"{THIRD}"()
define linkonce_odr double @second() noinline {{ ret double 0.5 }}
define double @caller() {{
    %a = call double @"{FIRST}"()
    %b = call double @"{SECOND}"()
    %c = call double @"{THIRD}"()
    %d = call double @second()
    %ab = fadd double %a, %b
    %abc = fadd double %ab, %c
    %abcd = fadd double %abc, %d
    ret double %abcd
}}
"""
"""Caller of all of them that has a function of its own by the name of one: names have numbers, in the order in which a
process compiles, and code from the disk has those of another process."""


@known
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_what_is_called_by_its_address_is_linked_once_in_every_order(order):
    """That of a set of callees follows the hashes of strings, and differs from process to process."""
    callees = [(FIRST, SECOND, THIRD)[i] for i in order]
    module = library(CALLER, callees)._get_module_for_linking()
    module.verify()
    assert not any(function.is_declaration for function in module.functions)
    for callee in callees:
        assert sum(function.name.startswith(callee.symbol) for function in module.functions) == 1
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    assert CFUNCTYPE(c_double)(engine.get_function_address("caller"))() == 7.0 + 6.0 + 4.0 + 0.5
