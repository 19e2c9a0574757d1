import pytest

from meanfield.errors import InputError
from meanfield.numerics.remembering import remembered


def test_results_and_refusals_are_found_once():
    calls = []

    @remembered(2)
    def root(x):
        calls.append(x)
        if x < 0:
            raise InputError(f"x = {x}: give a positive number")
        if x == 1:
            raise KeyError(x)
        return x**0.5

    assert root(4.0) == root(4.0) == 2.0
    errors = []
    for _ in range(3):
        with pytest.raises(InputError, match=r"x = -1\.0: give a positive number") as refused:
            root(-1.0)
        errors.append(refused.value)
    assert errors[0] is not errors[1]  # each has the traceback of its own call
    assert calls == [4.0, -1.0]
    for _ in range(2):
        with pytest.raises(KeyError):
            root(1)
    assert calls[2:] == [1, 1]


def test_results_can_be_forgotten():
    """As those of `functools.lru_cache`: benchmarks time what is found anew."""
    calls = []
    remember = remembered(2)(lambda x: calls.append(x) or x)
    remember(1.0)
    remember.cache_clear()
    assert remember(1.0) == 1.0
    assert calls == [1.0, 1.0]
