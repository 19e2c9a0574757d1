"""Code of functions that is optimised once, in the entry point at the start of their chain of calls."""

from __future__ import annotations

from typing import Any

from llvmlite.binding.newpassmanagers import create_pass_builder, create_pipeline_tuning_options
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import lookup_environment

from meanfield.process.own_numba.callee import Callee


class Library(JITCodeLibrary):
    """Code of a function and of what was written for it, into which that of its callees is linked at the end."""

    _for_linking: Any = None

    is_versioned = True
    """Whether the function itself is made of sources that the folder for compiled code is named after."""

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
        super().add_ir_module(module)
        for block in (block for function in module.functions for block in function.blocks):
            block.instructions.clear()
            block.terminator = None

    def add_linking_library(self, library: Any) -> None:
        """Remember a library to link, as it is."""
        self._linking_libraries.append(library)

    def finalize(self) -> None:
        """Link all libraries of the chain that begins here, each once; optimise, and generate machine code."""
        self._raise_if_finalized()
        modules = []
        for library in self._linked():
            self._reload_init.update(library._reload_init)
            modules.append(_module_of(library))
        self._link(modules)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

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
            if _is_open(library):
                found += [other for other in dict.fromkeys(library._linking_libraries) if other not in found]
        return [library for library in found if library is not self]

    def is_wholly_versioned(self) -> bool:
        """Whether this and all that was linked into it is made of versioned sources, or is numba's own."""
        return all(getattr(library, "is_versioned", True) for library in [self, *self._linked()])

    def _module_in_chain(self) -> Any:
        """The code of this library alone, whose functions may be defined many times and inlined."""
        if self._for_linking is None:
            self._for_linking = self._final_module.clone()
            for function in self._for_linking.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"
        return self._for_linking

    def _get_module_for_linking(self) -> Any:
        """The code for libraries of others, with all functions that it calls by their addresses.

        numba forgets what has to be loaded for a library that it takes from the disk: a function of somebody else that
        is linked with that one, and kept, would end the process that takes it from the disk.
        """
        module = self._own_module()
        asked = {function.name for function in module.functions}
        callees = [each for each in self._reload_init if isinstance(each, Callee) and each.symbol in asked]
        if not callees:
            return module
        module = module.clone()
        # Each name is given to what asks for it before any code defines it: one that is taken would get a suffix.
        for callee in callees:
            module.get_function(callee.symbol).name = callee.name_in_code
        for callee in callees:
            made = callee.compiled()
            code = made.library._get_module_for_linking().clone()
            code.get_function(made.fndesc.llvm_func_name).name = callee.name_in_code
            module.link_in(code)
        return module

    def _own_module(self) -> Any:
        """The code of this complete library, for ours and for the disk."""
        return super()._get_module_for_linking()

    def serialize_using_object_code(self) -> tuple[Any, ...]:
        """Machine code for the disk, and what callers are linked with."""
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), self._own_module().as_bitcode())


def _module_of(library: Any) -> Any:
    """The code of a library to link, in a chain of ours."""
    if _is_open(library):
        return library._module_in_chain()
    return library._own_module() if isinstance(library, Library) else library._get_module_for_linking()


def _is_open(library: Any) -> bool:
    """Whether a library is one of ours to which the code of others has not been linked yet."""
    return isinstance(library, Library) and not library._finalized
