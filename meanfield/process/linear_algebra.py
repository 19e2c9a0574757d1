"""Threads of linear algebra, of which workers must have none of their own.

By default a library of linear algebra has a thread per core, and those of a small product wait for one another in a
loop. Beside busy workers they take ten times the processor time of the work.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Context in which linear algebra takes one thread, in the whole process."""
    limits: AbstractContextManager[object] = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Libraries of this process: to find them takes milliseconds, and new ones come with new modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
