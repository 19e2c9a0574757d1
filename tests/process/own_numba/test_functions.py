"""Machine code for entry points alone: inner functions are compiled within what calls them; the notice of it."""

import gc
import json
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import llvmlite.binding
import llvmlite.ir
import numba
import pytest

from meanfield.process import own_numba
from meanfield.process.own_numba import cache, versions
from meanfield.process.own_numba.functions import CompilationNotice
from tests.forks import forks, printed_by

known = pytest.mark.skipif(not versions.is_numba_known(), reason=f"numba {numba.__version__} compiles in its own way")

INNER = """
{numba}
import numpy as np

@numba.njit({options})
def inner(x):
    if x < 0.0:
        raise ValueError("negative", x)  # needs the environment of this function
    return x + 1.0

@numba.njit({options})
def arrays(x):
    return np.full(2, x), (x,)
"""

OUTER = """
{numba}
from {inner} import arrays, inner

@numba.njit({options})
def middle(x):
    return 2.0 * inner(x)

@numba.njit({options})
def outer(x):
    return middle(x) + inner(x)

@numba.njit({options})
def of_arrays(x):
    return arrays(x)[0].sum()

@numba.njit({options})
def also_of_arrays(x):
    return arrays(x)[0].sum()
"""


IMPORTS = {True: "from meanfield.process import own_numba as numba", False: "import numba"}
"""How modules get their compiler, by whether they are ours."""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Function that writes two modules, which are ours or those of others."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, options="", inner=None):
        inner = inner or f"{name}_inner"
        for module, text in ((inner, INNER), (f"{name}_outer", OUTER)):
            source = text.format(numba=IMPORTS[module.startswith("ours_")], inner=inner, options=options)
            (tmp_path / f"{module}.py").write_text(source)

    return write


@pytest.fixture
def chain(written):
    """Function that makes two such modules, and gives their functions."""

    def make(name, inner=None):
        written(name, inner=inner)
        found = __import__(f"{name}_outer")
        return SimpleNamespace(
            outer=found.outer, middle=found.middle, inner=found.inner, of_arrays=found.of_arrays, arrays=found.arrays
        )

    return make


def has_machine_code(function):
    (result,) = function.overloads.values()
    return result.library._finalized


@known
def test_inner_functions_have_no_machine_code_until_python_calls_them(chain):
    functions = chain("ours_lazy")
    assert functions.outer(1.0) == 6.0
    assert has_machine_code(functions.outer)
    assert not has_machine_code(functions.middle)
    assert not has_machine_code(functions.inner)
    assert functions.middle(1.0) == 4.0
    assert has_machine_code(functions.middle)
    assert not has_machine_code(functions.inner)
    assert functions.inner(1.0) == 2.0
    assert functions.outer(2.0) == 9.0


def test_an_inner_function_owns_the_arrays_that_it_gives_to_python(chain):
    """Wrappers that do not count references give arrays whose memory is free."""
    functions = chain("ours_arrays")
    assert functions.of_arrays(1.0) == 2.0
    found = [functions.arrays(float(i)) for i in range(1000)]
    assert [array.tolist() for array, _ in found] == [[i, i] for i in range(1000)]
    assert [numbers for _, numbers in found] == [(i,) for i in range(1000)]


def test_functions_of_others_are_compiled_as_ever(chain):
    functions = chain("theirs")
    assert functions.outer(1.0) == 6.0
    assert has_machine_code(functions.middle)
    assert has_machine_code(functions.inner)


def test_functions_of_others_may_call_ours(chain):
    """Each is called by compiled code and by Python, in either order."""
    functions = chain("theirs_of", inner="ours_inside")
    for _ in range(2):
        assert functions.outer(1.0) == 6.0
        for function in (functions.outer, functions.middle, functions.inner):
            with pytest.raises(ValueError, match="negative"):
                function(-1.0)
        assert functions.middle(1.0) == 4.0


def test_functions_of_no_module_are_compiled():
    """Generated code often has none."""
    written = {}
    exec("def twice(x):\n    return 2.0 * x", written)
    assert written["twice"].__module__ is None
    assert own_numba.njit(written["twice"])(1.5) == 3.0


@known
def test_functions_that_only_later_ones_ask_for_are_linked():
    """Of functions that may be discarded LLVM takes those that something asks for, and `inner` comes too early."""
    from meanfield.process.own_numba.library import Library

    outer, inner, middle = map(
        llvmlite.binding.parse_assembly,
        (
            "declare double @middle() define double @outer() { %x = call double @middle() ret double %x }",
            "define linkonce_odr double @inner() { ret double 2.0 }",
            "declare double @inner() define linkonce_odr double @middle() { %x = call double @inner() ret double %x }",
        ),
    )
    Library._link(SimpleNamespace(_final_module=outer), [inner, middle])
    assert not any(function.is_declaration for function in outer.functions)


@pytest.mark.filterwarnings("ignore:First-class function type feature is experimental")
def test_compiled_functions_call_those_that_they_are_given(chain):
    """A function that is an argument is called by its address, through a wrapper without objects of Python."""
    functions = chain("ours_given")
    assert functions.outer(1.0) == 6.0

    number = numba.float64

    @numba.njit(number(numba.types.FunctionType(number(number)), number))
    def apply(function, x):
        return function(x)

    for name, value in {"inner": 2.0, "middle": 4.0, "outer": 6.0}.items():
        assert apply(getattr(functions, name), 1.0) == value


def test_threads_wait_for_the_chain_of_another(chain):
    """What one thread compiles for Python is no inner function of what another one compiles meanwhile."""
    functions = chain("ours_threads")
    assert functions.outer(1.0) == 6.0
    compiler = functions.of_arrays._compiler
    core = compiler._compile_core
    with ThreadPoolExecutor(1) as other:
        futures = []

        def compile_beside(*arguments):
            futures.append(other.submit(functions.middle, 1.0))
            wait(futures, timeout=0.1)
            return core(*arguments)

        compiler._compile_core = compile_beside
        assert functions.of_arrays(1.0) == 2.0
        assert futures[0].result() == 4.0
    assert has_machine_code(functions.of_arrays)


def test_inner_functions_raise_what_they_raise_elsewhere(chain):
    functions = chain("ours_raising")
    for function in (functions.outer, functions.middle, functions.inner):
        with pytest.raises(ValueError, match="negative") as error:
            function(-1.0)
        assert error.value.args == ("negative", -1.0)


@known
def test_a_function_of_other_types_is_another_inner_function(chain):
    functions = chain("ours_types")
    assert functions.outer(1.0) == 6.0
    assert functions.outer(1) == 6.0
    assert [result.library._finalized for result in functions.inner.overloads.values()] == [False, False]
    assert functions.inner(1) == 2.0
    assert [result.library._finalized for result in functions.inner.overloads.values()] == [False, True]


@pytest.fixture
def on_disk(monkeypatch, tmp_path):
    """Function that runs code with each of some lists of `names` in new processes, and gives the lines that they print.

    In none of them a function of the modules that were written is compiled or loaded before. What is compiled is kept
    in a folder of the test, and the digest of sources knows the modules that are named as `versioned`.
    """

    def run(code, lists, *versioned):
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setattr(cache, "versioned_sources", lambda: versioned)
        return [line for names in lists for line in printed_by(code, names=names).splitlines()]

    return run


CALLS = """
import json
import ours_kept_outer as functions

shown = {}
for name in names:
    function = getattr(functions, name)
    try:
        value = function(-1.0)
    except ValueError as error:
        value = list(error.args)
    shown[name] = [function(1.0), value, sum(function.stats.cache_hits.values())]
print(json.dumps(shown))
"""


@known
@forks
def test_the_disk_keeps_entry_points_alone(written, on_disk):
    """Later processes find what earlier ones called, and compile for themselves what was only an inner function."""
    written("ours_kept", "cache=True")
    values = {"outer": 6.0, "middle": 4.0, "inner": 2.0}
    raised = ["negative", -1.0]
    hits = [{"outer": 0}, {"outer": 1, "inner": 0}, {"middle": 0, "inner": 1}, {"middle": 1}]
    shown = on_disk(CALLS, hits, "ours_kept_inner", "ours_kept_outer")
    expected = [{name: [values[name], raised, hit] for name, hit in each.items()} for each in hits]
    assert [json.loads(line) for line in shown] == expected


ARRAYS = """
import ours_shared_outer as functions

for name in names:
    print(name, getattr(functions, name)(1.0))
"""


@known
@forks
def test_inner_functions_and_entry_points_of_one_name_share_what_they_need(written, on_disk):
    """What the disk keeps of a function of one name is complete as an entry point, and less as an inner function.

    Names have numbers in the order of compilation: here those of `arrays` are the same in the first two processes.
    """
    written("ours_shared", "cache=True")
    lists = [["of_arrays"], ["also_of_arrays", "arrays"], ["of_arrays", "arrays"]]
    made = "arrays (array([1., 1.]), (1.0,))"
    expected = ["of_arrays 2.0", "also_of_arrays 2.0", made, "of_arrays 2.0", made]
    modules = "ours_shared_inner", "ours_shared_outer"
    assert on_disk(ARRAYS, lists, *modules) == expected


SEPARATE = """
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

@numba.njit(cache=True)
def far(x):
    return x + 1.0

@numba.njit(cache=True)
def near(x):
    return 2.0 * call(far, x)

@numba.njit(cache=True)
def caller(x):
    return near(x) + 3.0
"""

SEPARATE_CALLS = """
import ours_separate as functions

for name in names:
    function = getattr(functions, name)
    print(name, function(1.0), sum(function.stats.cache_hits.values()))
"""


@known
@forks
def test_a_new_caller_of_what_the_disk_kept_finds_what_that_calls_by_its_address(tmp_path, monkeypatch, on_disk):
    """The caller is compiled where `near` comes from the disk, and taken from there where nothing else is called."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ours_separate.py").write_text(SEPARATE)
    shown = on_disk(SEPARATE_CALLS, [["near"], ["near", "caller"], ["caller"]], "ours_separate")
    assert shown == ["near 4.0 0", "near 4.0 1", "caller 7.0 0", "caller 7.0 1"]


@known
@forks
def test_the_disk_keeps_nothing_that_holds_functions_of_others(written, on_disk, tmp_path):
    """Those of a user may change at any time, also where ours alone are called by Python."""
    written("ours_kept", "cache=True")
    shown = on_disk(CALLS, [["outer"], ["outer"]], "ours_kept_outer")
    assert [json.loads(line)["outer"][2] for line in shown] == [0, 0]
    assert not list(tmp_path.rglob("*.nbc"))


@known
def test_inner_functions_that_numba_has_finished_become_entry_points(chain):
    functions = chain("ours_finished")
    assert functions.outer(1.0) == 6.0
    for result in functions.inner.overloads.values():
        result.library._ensure_finalized()  # as numba does for what it asks of a library
    assert functions.inner(1.0) == 2.0
    assert functions.middle(1.0) == 4.0


@known
def test_what_was_written_in_python_is_freed_without_the_collection_of_garbage(chain):
    functions = chain("ours_freed")

    def instructions():
        return sum(issubclass(type(found), llvmlite.ir.Instruction) for found in gc.get_objects())

    gc.collect()
    before = instructions()
    was = gc.isenabled()
    gc.disable()
    try:
        assert functions.of_arrays(1.0) == 2.0
        assert instructions() - before < 50  # 9 of 1,322 were left when this was written: what holds them is no cycle
    finally:
        gc.enable() if was else gc.disable()


@known
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collection_of_garbage_pauses_while_ours_is_compiled(chain, enabled):
    functions = chain(f"ours_garbage_{enabled}")
    during = []
    compiler = functions.inner._compiler
    core = compiler._compile_core
    compiler._compile_core = lambda *arguments: during.append(gc.isenabled()) or core(*arguments)
    was = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(numba.TypingError):
            functions.outer("text")
        assert functions.outer(1.0) == 6.0
        assert gc.isenabled() is enabled
        assert during == [False, False]
    finally:
        gc.enable() if was else gc.disable()


def kernel():
    """What is compiled."""


BEGIN, END = "begin", "end"


@pytest.fixture
def said(monkeypatch, capsys):
    """What a process on a terminal says while it compiles; each step comes with the time at which it happens."""

    def listen(*steps, terminal=True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        now, contexts = [], []
        notice = CompilationNotice(lambda: now[-1])
        for time, step in steps:
            now.append(time)
            if step == BEGIN:
                contexts.append(notice(kernel))
                contexts[-1].__enter__()
            else:
                contexts.pop().__exit__(None, None, None)
        return capsys.readouterr().err

    return listen


def test_a_short_compilation_says_nothing(said):
    assert said((0.0, BEGIN), (1.0, BEGIN), (1.1, END), (1.5, END)) == ""


def test_a_long_compilation_is_announced_once(said):
    text = said((0.0, BEGIN), (3.0, BEGIN), (4.0, END), (5.0, BEGIN), (6.0, END), (7.0, END))
    assert text.count("\n") == 1
    assert text.startswith("compiling kernel of tests.process.own_numba.test_functions and other inner loops")


def test_only_time_spent_compiling_counts(said):
    assert said((0.0, BEGIN), (1.0, END), (100.0, BEGIN), (100.5, BEGIN), (100.6, END), (100.7, END)) == ""
    assert said((0.0, BEGIN), (1.9, END), (100.0, BEGIN), (100.2, BEGIN), (100.6, END), (100.7, END)) != ""


def test_nothing_is_said_elsewhere_than_on_a_terminal(said):
    assert said((0.0, BEGIN), (3.0, BEGIN), (4.0, END), (7.0, END), terminal=False) == ""
