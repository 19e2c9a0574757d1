"""Function that compiled code calls by its address, which a symbol stands for in each process."""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

from llvmlite import binding


class Callee(NamedTuple):
    """Function at the top of a module, for arguments of these types.

    numba calls it before it takes from the disk a caller, or others into which that is linked: the function is loaded,
    or compiled, and its address told to LLVM.
    """

    module: str
    name: str
    kinds: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        """Symbol that stands for the address."""
        return f"{self.module}.{self.name}.{sha256(str(self.kinds).encode()).hexdigest()[:16]}"

    @property
    def name_in_code(self) -> str:
        """Name of the function where its code is linked: the symbol has an address, and is defined nowhere."""
        return f"{self.symbol}.linked"

    def compiled(self) -> Any:
        """Result of compilation."""
        return getattr(import_module(self.module), self.name).machine_code(self.kinds)

    def __call__(self) -> None:
        """Tell LLVM the address."""
        made = self.compiled()
        binding.add_symbol(self.symbol, made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
