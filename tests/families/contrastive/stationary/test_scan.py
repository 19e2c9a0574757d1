"""No stationary state of one feature is missed or invented, by a scan over q that shares no code with the search."""

import numpy as np
import pytest

import meanfield
from tests.example_problems import features, make_problem
from tests.oracles.stationary_scan import OVERLAPS, Scan, scanned_overlaps
from validation.contrastive.random_problems import random_problem

ATOM = features('{ hidden = { law = "laplace" }, coordinate = { law = "rademacher" }, initial_overlap = 0.1 }')

SEEDS = (840004, 840006, 840008, 840014, 840022, 840029)
"""Three problems without any state, and others with a fold or without a state at q = 0, that the scan resolves."""


def searched_overlaps(problem):
    q = meanfield.find_stationary_states(problem)["q"].values[:, 0]
    return sorted(q[(q > -1e-9) & (q < OVERLAPS[-1])])  # states are found to 1e-10


def test_the_scan_of_gaussian_weights_is_exact():
    """Without a prior w given u is N(-a v u, v) with a = 2 g/Lambda, and v + (a v)^2 = 1."""
    problem = make_problem(ATOM)
    scan = Scan(problem, 2000)
    (g,), diffusion = scan._closure(np.array([0.4]))
    a = 2 * g / diffusion
    variance = (np.sqrt(1 + 4 * a**2) - 1) / (2 * a**2)
    assert scan(0.4) == pytest.approx(-a * variance - 0.4, abs=1e-9)  # Brent's method to 1e-9 in G/Lambda


def test_the_search_finds_what_the_scan_finds():
    problem = random_problem(840019)  # a cauchy prior, no state at q = 0, three values of u
    found = scanned_overlaps(problem, terms=10_000)  # ten times as many change no digit
    assert found == pytest.approx(searched_overlaps(problem), abs=1e-5)  # bisection to 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_state_of_random_problems_is_missed_or_invented(seed):
    problem = random_problem(seed)
    found = scanned_overlaps(problem)
    assert found == pytest.approx(searched_overlaps(problem), abs=2e-3)  # its sums err by 8e-4 where E[w|u] jumps
