"""Threads of linear algebra, of which workers must have none of their own.

By default a library of linear algebra has a thread per core, and those of a small product wait for one another in a
loop. Beside busy workers they take ten times the processor time of the work.
"""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_thread() -> AbstractContextManager[object]:
    """Context in which linear algebra takes one thread, in the whole process."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits
