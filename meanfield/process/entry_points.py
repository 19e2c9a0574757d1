"""Machine code of numba for entry points alone: functions that something other than compiled code calls.

numba makes every function that compiled code calls ready for Python: it optimises all that the function calls together
with it, generates machine code and wrappers, and writes them to disk. A function at the end of a chain of calls is
optimised as often as the chain has links, and only its copy in the first link is ever run. Here a function of this
package that compiled code asks for is typed and translated to the language of LLVM, no more; the entry point at the
start of the chain links what it needs, optimises it once, and is kept on disk. Functions that compiled code calls by
their address (`numerics.compiled.separate_calls`) are entry points, too, without the wrappers that Python calls. Should
Python call an inner function or one of these later, that is compiled once more: wrappers that are added to what was
there need more constants than others have kept on disk under the same name. A first density takes half of the time
that way.

Imports numba, and is imported when something else has imported it, if its version is one of
`meanfield.process.numba_versions`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from llvmlite.binding.newpassmanagers import create_pass_builder, create_pipeline_tuning_options
from numba.core import caching, dispatcher, sigutils
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment

from meanfield.process.source_stamps import forget_code_of_changed_sources, sources_of

PACKAGE = "meanfield."

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SEPARATE = "called separately"

_chain: list[str] = []
"""Modules of the functions that are being compiled, each for the one before it; after `_SEPARATE` if the first of them
is only called by its address. The lock of numba's compiler guards it."""


def make_entry_point(function: Any, kinds: tuple[Any, ...]) -> Any:
    """Give a compiled function wrappers for arguments of these types, if it has none; its result of compilation.

    Parameters
    ----------
    function : numba.core.dispatcher.Dispatcher
        Compiled for these types, perhaps as an inner function.
    kinds : tuple of numba types
    """
    with global_compiler_lock:
        if isinstance(function.overloads[kinds].entry_point, _NoEntryPoint):
            del function.overloads[kinds]  # numba keeps its code for callers
            with _new_chain():
                function.compile(kinds)
        return function.overloads[kinds]


def make_machine_code(function: Any, kinds: tuple[Any, ...]) -> Any:
    """Give a function machine code for arguments of these types, if it has none, to be called by its address alone.

    Compiled, or taken from the disk, where it is kept without the wrappers that Python and others need.

    Parameters
    ----------
    function : numba.core.dispatcher.Dispatcher
        Compiled for these types, perhaps as an inner function, or not yet.
    kinds : tuple of numba types

    Returns
    -------
    numba.core.compiler.CompileResult
    """
    with global_compiler_lock:
        compiled = function.overloads.get(kinds)
        if compiled is None or not compiled.library._finalized:
            function.overloads.pop(kinds, None)
            with _new_chain(_SEPARATE):
                function.compile(kinds)
        return function.overloads[kinds]


class _NoEntryPoint:
    """What stands for the entry point of a function that has none; numba looks its code up by it."""


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code of a function and of what was written for it, into which that of its callees is linked at the end."""

    _for_linking: Any = None

    files: frozenset[str] = frozenset()
    """Sources of the function, and of those that were linked into it on disk."""

    def _optimize_functions(self, module: Any) -> None:
        """Optimise what a module defines, and prepare nothing for the many functions that it only declares."""
        codegen: Any = self._codegen
        module.data_layout = codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = codegen._function_pass_manager()
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Inline and simplify, then do all that there is to do.

        Loops of inner functions vectorise if the code that they were inlined into is simple already, and its loops are
        not unrolled. numba optimises each of them, too; here, without the first of the two, a step of plain SGD takes
        2.5 times as long.
        """
        codegen: Any = self._codegen
        simplify = create_pipeline_tuning_options(speed_level=1)
        simplify.loop_vectorization = simplify.slp_vectorization = simplify.loop_unrolling = False
        first = create_pass_builder(codegen._tm, simplify)
        passes, builder = codegen._module_pass_manager()
        first.getModulePassManager().run(self._final_module, first)
        passes.run(self._final_module, builder)

    def add_ir_module(self, module: Any) -> None:
        """Take over what was written in Python, and take it apart.

        Its parts know one another: only the collector of garbage would free them, one by one and all at the end.
        """
        super().add_ir_module(module)  # type: ignore[no-untyped-call]
        if _is_for_us():
            for block in (block for function in module.functions for block in function.blocks):
                block.instructions.clear()
                block.terminator = None

    def add_linking_library(self, library: Any) -> None:
        """Remember a library to link, as it is."""
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        """Link all libraries of the chain that begins here, each once; optimise, and generate machine code."""
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        modules = []
        for library in self._linked():
            self._reload_init.update(library._reload_init)
            own = not library._finalized
            modules.append(library._own_module_for_linking() if own else library._get_module_for_linking())
        self._link(modules)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()  # type: ignore[no-untyped-call]
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)  # type: ignore[no-untyped-call]
            if environment is not None:
                self._codegen.set_env(variable.name, environment)  # type: ignore[attr-defined]

    def _link(self, modules: list[Any]) -> None:
        """Link modules, each again while it defines what others that came after it have asked for.

        Of functions that may be discarded LLVM takes only those that something asks for already.
        """
        missing: set[str] = set()
        while modules:
            for module in modules:
                self._final_module.link_in(module, preserve=True)
            before, missing = missing, {each.name for each in self._final_module.functions if each.is_declaration}
            found = [m for m in modules if any(f.name in missing and not f.is_declaration for f in m.functions)]
            modules = found if missing != before else []  # nothing asks for what is left

    def _linked(self) -> list[Any]:
        """Libraries to link; one that is complete contains those that it needs."""
        found = list(dict.fromkeys(self._linking_libraries))
        for library in found:  # grows meanwhile
            if not library._finalized:
                found += [other for other in dict.fromkeys(library._linking_libraries) if other not in found]
        return [library for library in found if library is not self]

    def all_files(self) -> frozenset[str]:
        """Sources of all functions that this library holds."""
        return self.files.union(*(library.files for library in self._linked()))

    def _own_module_for_linking(self) -> Any:
        """The code of this library alone, whose functions may be defined many times and inlined."""
        if self._for_linking is None:
            self._for_linking = self._final_module.clone()
            for function in self._for_linking.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"
        return self._for_linking


@contextmanager
def _compiling(module: str | None) -> Iterator[None]:
    """Have the compiler work for a function of a module; one that `exec` defines may have none.

    It makes millions of small objects, almost all of which live until it is done: to look for garbage among them again
    and again takes a quarter of its time.
    """
    _chain.append(module or "")
    pause = _is_ours(_chain[-1]) and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        _chain.pop()
        if pause:
            gc.enable()


@contextmanager
def _new_chain(*start: str) -> Iterator[None]:
    """Have the compiler begin anew, in the midst of what it does for another function."""
    chain = _chain.copy()
    _chain[:] = start
    try:
        yield
    finally:
        _chain[:] = chain


def _is_ours(module: str) -> bool:
    return module.startswith(PACKAGE)


def _is_for_us() -> bool:
    """Whether the function that is being compiled stands in a chain that concerns this package."""
    return any(map(_is_ours, _chain))


def _is_inner() -> bool:
    """Whether the function that is being compiled serves another one, in a chain that concerns this package."""
    return len(_chain) > 1 and not _is_separate() and _is_for_us()


def _is_separate() -> bool:
    """Whether the function that is being compiled is only called by its address."""
    return len(_chain) == 2 and _chain[0] == _SEPARATE


def _extend(owner: Any, name: str) -> Callable[[_Function], _Function]:
    """Decorator that replaces a method of numba by a function of it and its arguments."""
    method = getattr(owner, name)

    def replace(function: _Function) -> _Function:
        @wraps(method)
        def extended(self: Any, *arguments: Any) -> Any:
            return function(method, self, *arguments)

        setattr(owner, name, extended)
        return function

    return replace


def compile_entry_points_alone() -> None:
    """Change the compiler of numba in this process, for chains of calls that concern this package."""
    JITCPUCodegen._library_class = _Library
    forget_code_of_changed_sources(_Library.all_files)
    compiler = dispatcher._FunctionCompiler  # type: ignore[attr-defined]

    @_extend(compiler, "compile")
    def compile_in_chain(method: Any, self: Any, kinds: Any, result: Any) -> Any:
        with _compiling(self.py_func.__module__):
            compiled = method(self, kinds, result)
            compiled.library.files = sources_of(self.py_func)
            if _is_inner() or _is_separate():
                compiled = compiled._replace(entry_point=_NoEntryPoint())
                self.targetdescr.target_context.insert_user_function(
                    compiled.entry_point, compiled.fndesc, [compiled.library]
                )
            return compiled

    @_extend(compiler, "_customize_flags")
    def flags_of(method: Any, self: Any, flags: Any) -> Any:
        flags = method(self, flags)
        if _is_inner() or _is_separate():
            flags.no_compile, flags.no_cpython_wrapper, flags.no_cfunc_wrapper = _is_inner(), True, True
        return flags

    @_extend(dispatcher.Dispatcher, "add_overload")
    def add_overload(method: Any, self: Any, compiled: Any) -> None:
        if isinstance(compiled.entry_point, _NoEntryPoint):  # Python shall not know it
            self.overloads[tuple(compiled.signature.args)] = compiled
        else:
            method(self, compiled)

    @_extend(dispatcher.Dispatcher, "compile")
    def compile_for_python(method: Any, self: Any, signature: Any) -> Any:
        with global_compiler_lock:
            entry = method(self, signature)
            if _chain:
                return entry
            kinds, _ = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
            return make_entry_point(self, tuple(kinds)).entry_point

    @_extend(dispatcher.Dispatcher, "get_compile_result")
    def result_for_calls_by_address(method: Any, self: Any, signature: Any) -> Any:
        with global_compiler_lock:
            return make_entry_point(self, tuple(method(self, signature).signature.args))

    @_extend(caching.Cache, "save_overload")
    def save_overload(method: Any, self: Any, signature: Any, compiled: Any) -> None:
        if _chain == [_SEPARATE] or not isinstance(compiled.entry_point, _NoEntryPoint):
            method(self, signature, compiled)

    @_extend(caching.Cache, "load_overload")
    def load_overload(method: Any, self: Any, signature: Any, context: Any) -> Any:
        compiled = method(self, signature, context)
        if compiled is None or _chain != [_SEPARATE]:
            return compiled
        return compiled._replace(entry_point=_NoEntryPoint())

    @_extend(caching.Cache, "_index_key")
    def index_key(method: Any, self: Any, signature: Any, codegen: Any) -> tuple[Any, ...]:
        key: tuple[Any, ...] = method(self, signature, codegen)
        return (*key, _SEPARATE) if _chain == [_SEPARATE] else key
