"""The study of finite size: its control variate, its theory and its fits."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.mckean_vlasov.order_parameters import rate
from validation.contrastive import finite_size, linearised

pytestmark = pytest.mark.slow  # a study with code of its own, which takes longer to compile than to run

STANDARD_ERRORS = 4.0
"""Largest accepted deviation in standard errors, exceeded by chance with probability 6e-5; a handful of looks, and the
seeds are fixed."""


@pytest.fixture(scope="module")
def few_dimensions():
    """Q and delta of 20000 replicas at N = 100."""
    return linearised.coupled_replicas(finite_size.problem_at(finite_size.OVERLAP, 100, 20_000))


def test_the_rate_is_that_of_the_closure_and_of_one_expanded_step():
    problem = finite_size.problem_at(finite_size.OVERLAP, 100, 1)
    closure, B = Closure(problem), linearised.growth_rate(problem)
    for q in (0.1, 0.45, 0.8):
        right = rate(closure, np.array([q]))[0]
        np.testing.assert_allclose(q * B(q * q), right, rtol=1e-9)  # the closure's digits
        np.testing.assert_allclose(linearised.step_expansion(problem, q)[0], right, rtol=1e-9)  # likewise


def test_the_limit_takes_the_right_time():
    problem = finite_size.problem_at(finite_size.OVERLAP, 100, 1)
    q, _, _ = linearised.solve_corrections(problem)
    B = linearised.growth_rate(problem)
    tight = {"epsabs": 1e-14, "epsrel": 1e-13}  # a tenth of what is asked below
    time, _ = quad(lambda x: 1 / (x * B(x * x)), problem.initial_overlap[0], q, **tight)
    np.testing.assert_allclose(time, problem.time.stop, rtol=1e-12)  # ten times the tolerance of the solution


def test_the_chain_is_that_of_the_library():
    problem = finite_size.problem_at(finite_size.OVERLAP, 100, 40)
    q, _ = linearised.coupled_replicas(problem)
    np.testing.assert_array_equal(q, meanfield.simulate_sgd(problem).q.values[:, -1, 0])


def test_the_fluctuation_has_mean_zero(few_dimensions):
    _, delta = few_dimensions
    assert abs(delta.mean()) <= STANDARD_ERRORS * delta.std() / math.sqrt(len(delta))


def test_means_with_and_without_it_agree(few_dimensions):
    rest = np.subtract(*few_dimensions)
    problem = finite_size.problem_at(finite_size.OVERLAP, 100, 50_000, seed=7, record="statistics")
    direct = meanfield.simulate_sgd(problem).isel(time=-1, feature=0, feature_=0)
    error = math.hypot(rest.std() / math.sqrt(len(rest)), math.sqrt(direct.q_covariance / 100 / 50_000))
    assert abs(rest.mean() - float(direct.q_mean)) <= STANDARD_ERRORS * error


def test_without_it_the_spread_falls_twice_as_fast():
    # kurtosis 13: the standard deviation of R replicas has a relative error of sqrt(12/(4 R)), 0.11 and 0.22 here
    small, large = (
        np.subtract(*linearised.coupled_replicas(finite_size.problem_at(finite_size.OVERLAP, N, replicas))).std() * N
        for N, replicas in ((10**4, 256), (10**5, 64))
    )
    assert abs(math.log(large / small)) <= 3 * math.hypot(0.11, 0.22)  # a spread of N^(-1/2) gives 1.15


def test_the_slope_of_a_power_law_is_found_within_its_error():
    rng, N = np.random.default_rng(0), xr.DataArray(10.0 ** np.arange(2, 9))
    error = 0.02 / N
    fits = [finite_size.fit_slope(N, -3 / N + error * rng.standard_normal(7), error, -1.0) for _ in range(200)]
    deviations = np.array([(fit.slope + 1) / fit.error for fit in fits])
    assert abs(deviations.mean()) <= STANDARD_ERRORS / math.sqrt(200)
    assert abs(deviations.std() - 1) <= STANDARD_ERRORS / math.sqrt(400)  # error of the standard deviation of 200
    chi_squared = np.mean([fit.chi_squared for fit in fits])
    assert abs(chi_squared - 5) <= STANDARD_ERRORS * math.sqrt(10 / 200)  # five degrees of freedom have variance 10
