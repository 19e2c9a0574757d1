"""numba for the functions of this package: `from meanfield.process import own_numba as numba`.

`njit` and `cfunc` compile for a target of our own, which `target` derives from numba's CPU: a first result takes a
third of the time, and loops vectorise that would not. Nothing of numba is replaced, and functions of others are
compiled, kept on disk and run as if this package were not there; each may call the other. On versions of numba whose
inner parts are not known (`versions`) both are numba's, and take longer. Everything else is numba's own.
"""

from __future__ import annotations

from typing import Any

import numba

from meanfield.process.own_numba.versions import is_numba_known

if is_numba_known():
    from meanfield.process.own_numba.functions import cfunc, njit
else:
    from meanfield.process.own_numba.versions import cfunc, njit, say_so

    say_so()

__all__ = ["cfunc", "njit"]


def __getattr__(name: str) -> Any:
    return getattr(numba, name)
