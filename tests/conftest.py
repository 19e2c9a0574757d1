"""Signals as a person's terminal sets them, however the tests were started; and a garbage collector that rests."""

import gc
import signal

import pytest

DISPOSITIONS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGALRM: signal.SIG_DFL,
}
"""Dispositions of the signals that tests send; a shell starts what runs in its background with SIGINT ignored."""


ALLOCATIONS = (20_000, 20, 50)
"""Thresholds of the garbage collector: full collections, which look at all that was ever imported, become rare."""


def pytest_collection_finish():
    """Spare the garbage collector the modules and tests that stay: it takes a tenth of the processor time else."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*ALLOCATIONS)


@pytest.fixture(scope="session", autouse=True)
def usual_signals():
    """Signals have their usual effect on this process, and on those that it starts."""
    before = {number: signal.signal(number, usual) for number, usual in DISPOSITIONS.items()}
    yield
    for number, disposition in before.items():
        signal.signal(number, disposition)
