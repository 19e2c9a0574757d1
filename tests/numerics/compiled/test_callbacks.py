"""Python functions that compiled code calls."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from meanfield.numerics.compiled.callbacks import Callback, call_back


@numba.njit(nogil=True)
def call_until_stopped(address, most):
    for count in range(most):
        if call_back(address):
            return count
    return most


def test_numbers_go_both_ways():
    numbers = np.zeros(2)

    def square():
        numbers[1] = numbers[0] ** 2
        numbers[0] += 1.0
        return numbers[0] == 4.0

    callback = Callback(square)
    assert call_until_stopped(callback.address, 10) == 3  # the fourth call says so
    assert numbers.tolist() == [4.0, 9.0]
    callback.reraise()  # nothing


def test_what_is_raised_stops_compiled_code_and_can_be_raised_again_once():
    callback = Callback(lambda: 1 / 0 > 0)
    assert call_until_stopped(callback.address, 10) == 0
    with pytest.raises(ZeroDivisionError):
        callback.reraise()
    callback.reraise()


def test_threads_without_the_interpreter_lock_may_call():
    calls = []
    callback = Callback(lambda: bool(calls.append(1)))
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: call_until_stopped(callback.address, 200), range(3))) == [200] * 3
    assert len(calls) == 600
