"""The study of SGD against theories: it judges runs that follow a theory as those that do, and others as those that
do not."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from validation.hidden_manifold.sgd_against_theory import BASE, NAMES, cases, judge, numbers, problem_of, table


@pytest.fixture(scope="module")
def data():
    """Numbers of all theories, beside runs that follow the first theory of each case up to a standard error of .003."""
    chosen = cases()
    models = sorted({name for case in chosen.values() for name in case.theories})
    theory = np.full((len(chosen), len(models), BASE["time"]["outputs"], len(NAMES)), np.nan)
    for i, case in enumerate(chosen.values()):
        for name, changes in case.theories.items():
            theory[i, models.index(name)] = numbers(meanfield.solve(problem_of(changes), "order_parameters"))
    first = [models.index(next(iter(case.theories))) for case in chosen.values()]
    mean = theory[np.arange(len(chosen)), first] + 0.003
    dims = ("case", "time", "number")
    return xr.Dataset(
        {"mean": (dims, mean), "standard_error": (dims, np.full(mean.shape, 0.003))}
        | {"theory": (("case", "model", "time", "number"), theory)},
        {"case": list(chosen), "model": models, "number": list(NAMES)},
    )


def test_runs_that_follow_their_theory_agree_and_refuse_others(data):
    statements = judge(data)
    assert len(statements) == sum(len(case.theories) for case in cases().values())
    uncentred = [s for s in statements if "not centred" in s.text]  # its first theory is a wrong one
    assert [s.holds for s in uncentred] == [False]
    assert all(s.holds for s in statements if s not in uncentred)
    assert "| erf units, sign inputs | one Gaussian | 0.5556: +0.0030(30) | 0.4130: +0.0030(30) |" in table(data)


def test_runs_that_follow_no_theory_are_noticed(data):
    far = data.assign(mean=data["mean"] + 0.012)
    assert not any(s.holds for s in judge(far) if "agrees" in s.text)
