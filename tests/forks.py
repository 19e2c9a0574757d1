"""Processes that are forked from that of the tests, and need neither import nor set up what takes longest."""

import contextlib
import io
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")


def printed_by(code, **names):
    """What a forked process prints that runs some code with these names; an error if it ends before, as by a signal."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(_printed, code, names).result()


def _printed(code, names):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()
