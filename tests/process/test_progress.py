"""Bars of forked processes: whatever one of them was doing when it was killed, the others go on."""

import os
import signal
import threading
import time

import pytest

from meanfield.process.progress import progress_bar


def lock():
    """What a bar waits for when it appears."""
    return type(progress_bar(1, "any")).get_lock()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")


def test_a_fork_that_is_killed_while_it_holds_the_lock_blocks_nobody():
    lock()  # exists before the fork, which would have one of its own
    child = os.fork()
    if not child:
        lock().acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    waiting = threading.Thread(target=lambda: progress_bar(1, "next").close(), daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_fork_does_not_wait_for_a_thread_that_it_has_not():
    with lock():
        child = os.fork()
        if not child:
            thread = threading.Thread(target=lambda: (progress_bar(1, "theirs").close(), os._exit(0)))
            thread.start()
            time.sleep(10)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
