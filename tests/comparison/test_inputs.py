"""Results that somebody changed, or that do not belong together, are refused by name before anything is compared."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from tests.example_problems import SMALL


def with_value(dataset, value):
    changed = dataset.copy(deep=True)
    changed["q"].values[..., 1, 0] = value
    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda runs: with_value(runs, np.nan), r"'q' holds nan in replica 0 from t = 0\.5 on"),
        (lambda runs: with_value(runs, np.inf), "'q' holds inf"),
        (
            lambda runs: runs.assign(r=1e80 * runs["q"][..., 0]),
            "'r' reaches 5e.79, .* before it escapes",
        ),
        (lambda runs: runs.isel(time=[0]), "have no output time after the start in common .*1 from 0 to 0"),
        (
            lambda runs: runs.assign_coords(time=1.3 * runs["time"]),
            r"'time' holds 0\.65, which is none of the 3 output",
        ),
        (lambda runs: runs.assign_coords(time=64 * runs["time"]), "'time' holds 32, .* it is the time t = k/N"),
        (lambda runs: runs.assign_coords(snapshot_time=[0.0, 32.0, 64.0]), "'snapshot_time' holds 32"),
        (lambda runs: runs.assign_coords(feature=[1]), "the coordinate 'feature' is 1, but counts from 0"),
        (lambda runs: runs.isel(replica=[0, 0, 1]), "replica 0 comes twice"),
        (lambda runs: runs.isel(replica=[0, 1, 0]).assign_coords(replica=[0, 1, 2]), "runs 0 and 2 are equal"),
        (lambda runs: xr.Dataset({"q": runs["q"]}), "is no result of meanfield, .*'method' is missing.* time, q, r"),
        (lambda runs: xr.concat([runs, runs], "time", data_vars="minimal"), "'time' does not increase"),
        (lambda runs: runs.isel(time=slice(None, None, -1)), "'time' does not increase"),
        (lambda runs: runs.isel(replica=0), "its replicas are gone, .* give the whole result"),
        (lambda runs: runs.isel(replica=slice(0, 0)), "its replicas are gone"),
        (lambda runs: runs.mean("replica", keep_attrs=True), "its replicas are gone"),
        (lambda runs: runs.transpose("time", ...), r"has dims \('time', 'replica', 'feature'\), not"),
        (lambda runs: runs.rename(replica="run"), "its replicas are gone"),
        (lambda runs: runs.assign_attrs(schema_version=3), r"older than 7; meanfield\.load\(path\) brings"),
        (lambda runs: runs.assign_attrs(schema_version=99), "newer than 7"),
    ],
)
def test_changed_results(ode, runs, change, words):
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.compare(ode, change(runs), labels=["limit", "runs"])


def test_some_of_the_replicas_are_enough(ode, runs):
    assert meanfield.compare(ode, runs.isel(replica=slice(0, 2))).sizes["pair"] == 1


def test_equal_labels(ode, runs):
    with pytest.raises(meanfield.InputError, match="labels: 'a' comes twice"):
        meanfield.compare(ode, runs, labels=["a", "a"])


KEY = "model.learning_rate"


TIMES = [0.01 * k for k in range(101)]


def line(end):
    return {"schedule": "linear", "start": 0.05, "end": end, "duration": 1.0}


def phases(rate, stop=0.5):
    return {"phases": [{"stop": stop}, {"stop": 1.0, "set": {KEY: rate}}]}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({KEY: line(0.1)}, {KEY: line(0.2)}, r": model\.learning_rate\.end = 0\.1 against 0\.2;"),
        ({KEY: 0.05}, {KEY: line(0.2)}, r": model\.learning_rate = 0\.05 against {'schedule': 'linear', .*};"),
        (phases(0.1), phases(0.2), r": phases\[1\]\.set\.model\.learning_rate = 0\.1 against 0\.2;"),
        (phases(0.1), phases(0.1, 0.25), r": phases\[0\]\.stop = 0\.5 against 0\.25;"),
        ({}, phases(0.1), r": phases = None against \({'stop': 0\.5, .*;"),
        (
            {},
            {KEY: {"times": TIMES, "values": TIMES}},
            r": model\.learning_rate = 0\.05 against {'times': .{20,75} \.\.\.;",
        ),
    ],
)
def test_problems_that_differ_in_time_are_refused_by_the_key(first, second, words):
    problem = meanfield.parse_problem(SMALL)
    one, other = (meanfield.simulate_sgd(meanfield.with_values(problem, values)) for values in (first, second))
    with pytest.raises(meanfield.InputError, match=words):
        meanfield.compare(one, other)
