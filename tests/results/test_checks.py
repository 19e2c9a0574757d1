"""Files of the right names and dims whose contents cannot be a result are refused, with the variable in the message."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.comparison.distributions import marginal_of
from meanfield.errors import InputError
from meanfield.results import checks
from meanfield.results.result import Result
from tests import ROOT

RUNS = ROOT / "tests" / "compatibility"


def with_values(name, change):
    """A copy in which the values of a variable are changed."""

    def spoil(dataset):
        variable = dataset.variables[name]
        values = change(np.array(variable.values))
        return dataset.drop_vars(name).assign({name: xr.Variable(variable.dims, values, variable.attrs)})

    return spoil


def at(index, value):
    def change(values):
        values.flat[index] = value
        return values

    return change


def attribute(name, value):
    return lambda dataset: dataset.assign_attrs({name: value})


CASES = [
    ("density", with_values("time", lambda t: t[::-1]), "'time' does not increase"),
    ("density", with_values("time", at(2, np.nan)), "'time' holds nan"),
    ("density", with_values("q", at(1, np.nan)), "'q' holds nan"),
    ("density", with_values("q", at(1, np.inf)), "'q' holds inf"),
    ("density", with_values("q", at(1, 1.5)), r"'q' has \|q\|\^2 = 2.25"),
    ("density", with_values("q", lambda q: q.astype("U8")), "'q' holds <U8, not numbers"),
    ("density", with_values("q", lambda q: q + 1j), "'q' holds complex128, not numbers"),
    ("density", with_values("q", lambda q: q.astype("datetime64[ns]")), "'q' holds datetime64"),
    ("density", with_values("P", at(70, -0.1)), r"'P' holds -0.1, outside"),
    ("density", with_values("P", at(70, 9.0)), "'P' has a mass that differs from 'mass' by"),
    ("density", lambda d: d.assign(P_w=1.01 * marginal_of(Result.of(d))), "'P_w' has a mass that differs from 'mass'"),
    ("density", with_values("u_weight", lambda weight: 0.5 * weight), "'u_weight' sums to 0.5, not to 1"),
    ("density", with_values("u", lambda u: u[::-1]), "'u' does not increase"),
    ("density", lambda d: d.rename_dims(u="node"), r"'P' has dims .*'node'.*, not .*'u'"),
    ("density", with_values("w_bnds", at(1, 5.0)), "'w_bnds' holds cells that do not end where the next ones begin"),
    ("density", with_values("w", lambda w: w + 1.0), "'w' holds cells that do not lie between their edges"),
    ("density", lambda d: d.isel(bounds=[1]), "dim 'bounds' has size 1, but a cell has 2 edges"),
    ("density", with_values("tau", lambda tau: tau + 0.01), "'tau' is 0.06.*, but the problem says 0.05"),
    ("density", lambda d: d.isel(time=slice(0)), "dim 'time' has size 0"),
    ("density", attribute("status", "done"), "status = 'done'"),
    ("density", attribute("status", 1), "'status' is missing, or is no text"),
    ("density", attribute("problem", "?"), "'problem' holds no problem: not a TOML file"),
    ("density", attribute("problem", 0.5), "'problem' is missing, or is no text"),
    ("density", attribute("schema_version", "2"), "schema_version = '2': it is a whole number"),
    ("density", attribute("schema_version", -1), "schema_version = .*-1.*: it is a whole number"),
    ("density", attribute("schema_version", [2, 2]), "schema_version = .*: it is a whole number"),
    ("density", attribute("schema_version", 2**62), "newer than"),
    ("density", attribute("method", [1, 2]), "not a result of meanfield"),
    ("order_parameters", lambda d: xr.concat([d, d], "feature", data_vars="minimal"), "dim"),
    ("particles", with_values("weights", at(0, np.inf)), "'weights' holds inf"),
    ("ensemble", with_values("count", lambda n: n - 9), "'count' holds -6"),
    ("ensemble", with_values("winner", at(0, 1)), "'winner' holds 1, but dim 'feature' ends before"),
    ("stationary", with_values("stability", at(0, 3)), r"'stability' holds 3, outside \[-1, 1\]"),
    ("continuation", with_values("parameter", at(0, np.nan)), "'parameter' holds nan"),
    ("portrait", with_values("kind", at(0, "sink")), "'kind' holds 'sink', which is none of stable node"),
    ("portrait", with_values("kind", lambda kind: np.arange(5)), "'kind' holds int64, not words"),
    ("portrait", with_values("region", at(9, 7)), "'region' holds 7, but dim 'state' ends before"),
    ("portrait", lambda d: d.isel(row=slice(3)), "dim 'row' has size 3, and 'column' 6"),
    ("portrait", attribute("plane", "x"), "'plane' is neither"),
    ("dynamics", attribute("indices_add_up", 1), "'indices_add_up' is neither"),
    ("comparison", with_values("KS", lambda KS: KS + 1), "'KS' holds 1"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "spoil", "message"), CASES, ids=[f"{m}: {text}" for m, _, text in CASES])
def test_what_is_no_result_is_refused(method, spoil, message):
    spoilt = spoil(meanfield.load(RUNS / f"{method}-2.nc"))
    with pytest.raises(InputError, match=message):
        checks.check(Result.of(spoilt))


def test_what_several_channels_have_is_missed():
    """Also if no other variable has the dim `channel_`, by which it would be seen that there are several."""
    run = meanfield.load(RUNS / "particles-several_channels-5.nc")
    with pytest.raises(InputError, match="variable 'M' is missing"):
        checks.check(Result.of(run.drop_vars("M")))


def test_it_is_refused_when_it_is_loaded(tmp_path):
    with_values("q", at(1, np.nan))(xr.load_dataset(RUNS / "density-2.nc")).to_netcdf(tmp_path / "run.nc")
    with pytest.raises(InputError, match=r"run.nc: variable 'q' holds nan from t = 0\.5 on; run the solver again, or"):
        meanfield.load(tmp_path / "run.nc")


def test_gaps_say_that_a_run_did_not_finish(tmp_path):
    dataset = with_values("q", at(1, np.nan))(meanfield.load(RUNS / "particles-2.nc"))
    for status in ("interrupted", "failed: at t = 0.5"):
        meanfield.save(dataset.assign_attrs(status=status), tmp_path / "run.nc")
        assert np.isnan(meanfield.load(tmp_path / "run.nc")["q"].values.flat[1])


def test_parts_of_results_are_results(tmp_path):
    for method, part in (
        ("particles", {"replica": [2]}),
        ("density", {"time": [0, 2]}),
        ("stationary", {"state": [1]}),
    ):
        meanfield.save(meanfield.load(RUNS / f"{method}-2.nc").isel(part), tmp_path / "part.nc")
        assert meanfield.load(tmp_path / "part.nc").attrs["method"] == method


def test_variables_of_users_have_names_of_their_own():
    """Readers take what has a name of ours for what it means there."""
    dataset = meanfield.load(RUNS / "order_parameters-2.nc")
    checks.check(Result.of(dataset.assign(my_edge=("somewhere", [0.0, 1.0]), lucky=("elsewhere", [7]))))
    with pytest.raises(InputError, match="'r' belongs to no result of method 'order_parameters'; give yours another"):
        checks.check(Result.of(dataset.assign(r=("time", np.zeros(3)))))


@pytest.mark.parametrize(
    ("method", "name", "attribute", "value"),
    [
        ("density", "q", "scale_factor", 2.0),
        ("dynamics", "growth_rate", "scale_factor", np.nan),
        ("density", "q", "missing_value", np.nan),
        ("density", "q", "_FillValue", 0.5),
        ("portrait", "kind", "_FillValue", "saddle"),
    ],
)
def test_attributes_that_change_numbers_are_refused(method, name, attribute, value):
    dataset = meanfield.load(RUNS / f"{method}-2.nc")
    dataset[name].encoding[attribute] = value
    with pytest.raises(InputError, match=rf"'{name}' has the attribute '{attribute}', with which its numbers"):
        checks.check(Result.of(dataset))


def test_what_belongs_together_is_there_together():
    dataset = meanfield.load(RUNS / "dynamics-2.nc")
    with pytest.raises(InputError, match="'learnable_moment' is missing, without which 'uninformed_rate' says nothing"):
        checks.check(Result.of(dataset.rename(learnable_moment="mine")))
