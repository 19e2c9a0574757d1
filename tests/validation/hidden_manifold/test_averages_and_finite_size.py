"""Studies of inputs with a mean and of finite N: runs that follow predictions agree, and others are noticed."""

import numpy as np
import xarray as xr
from scipy.stats import norm

from validation.hidden_manifold import averaged_theory, finite_size

TIMES, NUMBERS = np.linspace(0.0, 5.0, 6), list(averaged_theory.NAMES)


def averages(off):
    """Made-up numbers: runs are off the average by some of their standard errors, .003."""
    dims, shape = ("case", "time", "number"), (len(averaged_theory.CASES), len(TIMES), len(NUMBERS))
    theory = np.stack([np.full(shape, 0.5), np.full(shape, 0.6)], axis=1)
    return xr.Dataset(
        {
            "mean": (dims, theory[:, 0] + 0.003 * off),
            "standard_error": (dims, np.full(shape, 0.003)),
            "theory_error": (dims, np.zeros(shape)),
            "theory": (("case", "model", "time", "number"), theory),
        },
        {
            "case": list(averaged_theory.CASES),
            "model": list(averaged_theory.THEORIES),
            "time": TIMES,
            "number": NUMBERS,
        },
    )


def test_averages_that_runs_follow():
    data = averages(1.0)
    assert all(statement.holds for statement in averaged_theory.judge(data))
    assert "| erf units, sign + 1 | average | 0.5000: +0.0030(30) |" in averaged_theory.table(data)
    found = averaged_theory.judge(averages(4.0))
    assert [statement.holds for statement in found] == [False, True] * len(averaged_theory.CASES)


def finite(scatter, later):
    """Made-up numbers: deviations by a factor, and escapes at random that come later by a factor."""
    rng, scale = np.random.default_rng(0), 40.0
    runs = finite_size.ESCAPE_RUNS
    escapes = np.full((len(runs), 400), np.nan)
    for i, (count, stop) in enumerate(runs.values()):
        times = later * scale * np.abs(rng.standard_normal(count))
        escapes[i, :count] = np.where(times <= stop, times, np.nan)
    predicted = 1.0 - 2.0 * norm.sf(finite_size.GRID / scale)
    shape = (len(finite_size.SCATTER_RUNS), len(TIMES), len(NUMBERS))
    return xr.Dataset(
        {
            "deviation": (("time", "number"), np.ones(shape[1:])),
            "sgd_deviation": (("scatter_N", "time", "number"), np.full(shape, scatter)),
            "escape_share": (("escape_N", "grid"), np.tile(predicted, (len(runs), 1))),
            "escape_quantile": (("escape_N", "quantile"), np.ones((len(runs), 1))),
            "sgd_escape_time": (("escape_N", "run"), escapes),
        },
        {
            "scatter_N": list(finite_size.SCATTER_RUNS),
            "escape_N": list(runs),
            "grid": finite_size.GRID,
            "quantile": [0.5],
            "time": TIMES,
            "number": NUMBERS,
        },
    )


def test_scatter_and_escapes_that_runs_follow():
    data = finite(1.01, 1.0)
    assert all(statement.holds for statement in finite_size.judge(data))
    assert "| predicted | 1.000 |" in finite_size.tables(data)
    assert not any(statement.holds for statement in finite_size.judge(finite(1.3, 3.0)))
