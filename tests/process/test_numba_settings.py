"""Settings of numba under which nothing of ours can be computed: one line, from every public name."""

import pytest
from numba.core import config

import meanfield
from meanfield.errors import InputError
from meanfield.process.numba_settings import check_numba_settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_DISABLE_JIT", "1"),  # intrinsics are not usable in pure Python
        ("NUMBA_NUM_THREADS", "0"),  # numba cannot be imported
        ("NUMBA_NUM_THREADS", "-2"),
        ("NUMBA_NUM_THREADS", "all"),  # numba warns, with a traceback
        ("NUMBA_OPT", "fast"),
        ("NUMBA_CPU_FEATURES", "avx2"),  # LLVM ends the process
        ("NUMBA_CACHE_LOCATOR_CLASSES", "nonsense"),  # numba takes it for folders that cannot be written
        ("NUMBA_CACHE_LOCATOR_CLASSES", "os.path"),  # and asks it for a place
    ],
)
def test_settings_that_end_in_a_traceback_are_named_with_the_remedy(monkeypatch, name, value):
    monkeypatch.delattr(meanfield, "solve")  # it stays once it has been used
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "", raising=False)  # which older versions do not have
    with pytest.raises(InputError, match=f"{name} = '{value}' in the environment: .*; unset {name}"):
        _ = meanfield.solve
    with pytest.raises(AttributeError):
        _ = meanfield.no_such_name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_DISABLE_JIT", "0"),
        ("NUMBA_NUM_THREADS", "1"),
        ("NUMBA_OPT", "max"),
        ("NUMBA_CPU_FEATURES", "+avx2,-avx512f"),
        ("NUMBA_CPU_FEATURES", ""),
        ("NUMBA_CACHE_LOCATOR_CLASSES", "numba.core.caching._CacheLocator, _CacheLocator"),
    ],
)
def test_settings_that_numba_takes_are_left_alone(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "", raising=False)  # which older versions do not have
    check_numba_settings()
