"""Signals as a person's terminal sets them, however the tests were started."""

import signal

import pytest

DISPOSITIONS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGALRM: signal.SIG_DFL,
}
"""Dispositions of the signals that tests send; a shell starts what runs in its background with SIGINT ignored."""


@pytest.fixture(scope="session", autouse=True)
def usual_signals():
    """Signals have their usual effect on this process, and on those that it starts."""
    before = {number: signal.signal(number, usual) for number, usual in DISPOSITIONS.items()}
    yield
    for number, disposition in before.items():
        signal.signal(number, disposition)
