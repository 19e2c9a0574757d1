"""Functions of this package, compiled for our target: machine code for entry points alone.

numba makes every function that compiled code calls ready for Python: it optimises all that the function calls together
with it, generates machine code and wrappers, and writes them to disk. A function at the end of a chain of calls is
optimised as often as the chain has links, and only its copy in the first link is ever run. Here a function that
compiled code asks for is typed and translated to the language of LLVM, no more; the entry point at the start of the
chain links what it needs, optimises it once, and is kept on disk. Functions that compiled code calls by their address
(`numerics.compiled.separate_calls`) are entry points, too, without the wrappers that Python calls. Should Python, or a
function of somebody else, call an inner function or one of these later, that is compiled once more: wrappers that are
added to what was there need more constants than others have kept on disk under the same name.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from multiprocessing import parent_process
from typing import Any

import numba
from numba.core import ccallback, compiler, dispatcher, errors, event, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import dispatcher_registry, jit_registry, target_registry
from numba.extending import overload
from numba.np.arrayobj import ol_raise_with_shape_context_generic, raise_with_shape_context

from meanfield.process.own_numba.cache import Cache, is_versioned
from meanfield.process.own_numba.target import NAME, Flags, Target, descriptor


class CompilationNotice:
    """Context of a compilation, perhaps within another; it says so once it has lasted longer than two seconds in all.

    Parameters
    ----------
    clock : callable
        Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._depth, self._started, self._spent = 0, 0.0, 0.0
        self._said = False

    @contextmanager
    def __call__(self, function: Any) -> Iterator[None]:
        """Context in which a function is compiled."""
        self._depth += 1
        if self._depth == 1:
            self._started = self._clock()
        elif not self._said and self._spent + self._clock() - self._started > 2.0:  # seconds without a word
            self._said = True
            _say(function)
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._spent += self._clock() - self._started


def _say(function: Any) -> None:
    """Print the line, on a terminal and in the process that a person has started."""
    if sys.stderr.isatty() and parent_process() is None:
        text = f"compiling {function.__name__} of {function.__module__} and other inner loops for this processor: up "
        print(f"{text}to a minute, once; the next run finds them on disk", file=sys.stderr, flush=True)


notice = CompilationNotice()
"""Notice of this process."""


_SEPARATE = "called separately"

_chain: list[str] = []
"""Names of the functions that are being compiled, each for the one before it; after `_SEPARATE` if the first of them
is only called by its address. The lock of numba's compiler guards it."""


class _NoEntryPoint:
    """Placeholder entry point of a function without machine code; numba looks its code up by it."""


@contextmanager
def _compiling(function: Callable[..., Any]) -> Iterator[None]:
    """Have the compiler work for a function.

    It makes millions of small objects, almost all of which live until it is done: to look for garbage among them again
    and again takes a quarter of its time.
    """
    _chain.append(function.__name__)
    pause = gc.isenabled()
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


def _is_inner() -> bool:
    """Whether the function that is being compiled serves another one."""
    return len(_chain) > 1 and not _is_separate()


def _is_separate() -> bool:
    """Whether the function that is being compiled is only called by its address."""
    return len(_chain) == 2 and _chain[0] == _SEPARATE


class _Compiler(dispatcher._FunctionCompiler):
    """Compiler of one function, as an entry point or as a link in a chain."""

    def compile(self, args: Any, return_type: Any) -> Any:
        """Result of the compilation for arguments of these types."""
        with _compiling(self.py_func):
            compiled = super().compile(args, return_type)
            compiled.library.is_versioned = is_versioned(self.py_func)
            if _is_inner() or _is_separate():
                compiled = compiled._replace(entry_point=_NoEntryPoint())
                self.targetdescr.target_context.insert_user_function(
                    compiled.entry_point, compiled.fndesc, [compiled.library]
                )
            return compiled

    def _customize_flags(self, flags: Any) -> Flags:
        flags = Flags(flags)
        if _is_inner() or _is_separate():
            flags.no_compile, flags.no_cpython_wrapper, flags.no_cfunc_wrapper = _is_inner(), True, True
        return flags


class Dispatcher(CPUDispatcher):
    """Function of this package with its compiled code, one for each list of types of arguments."""

    targetdescr = descriptor

    def __init__(
        self, py_func: Any, locals: Any = None, targetoptions: Any = None, pipeline_class: Any = compiler.Compiler
    ) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler = _Compiler(py_func, descriptor, self.targetoptions, self.locals, pipeline_class)

    def enable_caching(self) -> None:
        """Keep compiled code on disk."""
        self._cache = Cache(self.py_func)

    def add_overload(self, cres: Any) -> None:
        """Take over compiled code, of which Python shall know what has an entry point."""
        if isinstance(cres.entry_point, _NoEntryPoint):
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)

    def compile(self, sig: Any) -> Any:
        """Compile for arguments of these types, if it has not been done; what stands for the code.

        Unlike numba's own it does not time each of the functions of a chain, to which every call of LLVM would report.
        """
        with global_compiler_lock:
            if not self._can_compile:
                raise RuntimeError("compilation disabled")
            with self._compiling_counter:
                kinds, result = sigutils.normalize_signature(sig)
                kinds = tuple(kinds)
                if kinds not in self.overloads and not self._load(kinds, result):
                    with self._alone(kinds, result) as waited:
                        if not (waited and self._load(kinds, result)):
                            self._compile(kinds, result)
                return (self.overloads[kinds] if _chain else self._entry_point(kinds)).entry_point

    def _load(self, kinds: tuple[Any, ...], result: Any) -> bool:
        """Take the code from the disk; whether it was there."""
        separate = _chain == [_SEPARATE]
        found = self._cache.load_overload((kinds, result, separate), self.targetctx)
        if found is None:
            self._cache_misses[kinds] += 1
            return False
        self._cache_hits[kinds] += 1
        if separate:
            found = found._replace(entry_point=_NoEntryPoint())
        self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        self.add_overload(found)
        return True

    def _alone(self, kinds: tuple[Any, ...], result: Any) -> AbstractContextManager[bool]:
        """Context in which no other process compiles the same, if it is to be kept."""
        separate = _chain == [_SEPARATE]
        if (separate or not _chain) and isinstance(self._cache, Cache):
            return self._cache.alone((kinds, result, separate), self.targetctx)
        return nullcontext(False)

    def _compile(self, kinds: tuple[Any, ...], result: Any) -> None:
        """Generate the code, and keep it on disk unless it is a link of a chain."""
        told = {"dispatcher": self, "args": kinds, "return_type": result}
        with notice(self.py_func), event.trigger_event("numba:compile", data=told):
            try:
                made = self._compiler.compile(kinds, result)
            except errors.ForceLiteralArg as error:
                fold = self._compiler.fold_argument_types
                raise error.bind_fold_arguments(lambda args, kws: fold(args, kws)[1]) from None
            self.add_overload(made)
        separate = _chain == [_SEPARATE]
        if separate or not isinstance(made.entry_point, _NoEntryPoint):
            self._cache.save_overload((kinds, result, separate), made)

    def _entry_point(self, kinds: tuple[Any, ...]) -> Any:
        """Result of compilation with wrappers for Python, which are made if it has none."""
        if isinstance(self.overloads[kinds].entry_point, _NoEntryPoint):
            del self.overloads[kinds]  # numba keeps its code for callers
            with _new_chain():
                self.compile(kinds)
        return self.overloads[kinds]

    def get_compile_result(self, sig: Any) -> Any:
        """Result of compilation, for those who call a function that they were given."""
        with global_compiler_lock:
            return self._entry_point(tuple(super().get_compile_result(sig).signature.args))

    def machine_code(self, kinds: tuple[Any, ...]) -> Any:
        """Result of compilation with machine code that is called by its address, perhaps without wrappers."""
        with global_compiler_lock:
            compiled = self.overloads.get(kinds)
            if compiled is None or not compiled.library._finalized:
                self.overloads.pop(kinds, None)
                with _new_chain(_SEPARATE):
                    self.compile(kinds)
            return self.overloads[kinds]


class _CallbackCompiler(ccallback._CFuncCompiler):
    """Compiler of a function that others call by its address."""

    def compile(self, args: Any, return_type: Any) -> Any:
        with _compiling(self.py_func), notice(self.py_func):
            compiled = super().compile(args, return_type)
            compiled.library.is_versioned = is_versioned(self.py_func)
            return compiled

    def _customize_flags(self, flags: Any) -> Flags:
        return Flags(super()._customize_flags(flags))


class _Callback(ccallback.CFunc):
    """Function with the address of its code."""

    _targetdescr = descriptor

    def __init__(self, function: Any, signature: Any, options: dict[str, Any]) -> None:
        super().__init__(function, signature, {}, options)
        self._compiler = _CallbackCompiler(function, descriptor, options, {}, compiler.Compiler)

    def enable_caching(self) -> None:
        self._cache = Cache(self.__wrapped__)


def cfunc(signature: Any, cache: bool = False, **options: Any) -> Callable[[Any], _Callback]:
    """Decorator for functions that others call by their address, as `numba.cfunc`."""

    def decorate(function: Any) -> _Callback:
        made = _Callback(function, sigutils.normalize_signature(signature), options)
        if cache:
            made.enable_caching()
        with global_compiler_lock, _new_chain():
            made.compile()
        return made

    return decorate


target_registry.pop(NAME, None)  # of this module before it was reloaded
target_registry[NAME] = Target
dispatcher_registry[Target] = Dispatcher
njit = partial(numba.njit, _target=NAME)
jit_registry[Target] = partial(numba.jit, _target=NAME)  # for what numba compiles for our functions
# That arrays have other shapes is said without them: numba takes three seconds for what writes them into the message.
overload(raise_with_shape_context, target=NAME)(ol_raise_with_shape_context_generic)
