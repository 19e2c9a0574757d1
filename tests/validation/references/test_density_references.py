"""Stored references: they belong to their problems, are found again, and the density is right in every regime."""

import tomllib

import numpy as np
import pytest

import meanfield
from meanfield.families.contrastive.problem import Problem
from validation.references import density_problems
from validation.references.hard_problems import AGREEMENT, HARD
from validation.references.spectral_elements import reference_solution

NAMES = [*density_problems.TEXTS, *HARD]
QUICK = ("kink", "near_one", "two_features", "wells")


def quick_or_slow(names, quick):
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def test_there_is_a_reference_for_each_problem():
    priors = ("none", "l1", "quartic", "elastic_net", "double_well", "cauchy")
    assert sorted(density_problems.TEXTS) == sorted(f"{prior}_{count}" for prior in priors for count in (1, 2))
    assert len(HARD) == 12
    assert sorted(density_problems.REFERENCES.glob("density_*.csv")) == sorted(
        density_problems.reference_path(name) for name in NAMES
    )


@pytest.mark.parametrize("name", NAMES)
def test_references_belong_to_their_problems(name):
    lines = density_problems.reference_path(name).read_text().splitlines()
    start, stop = (
        lines.index(line) for line in (f'# title = "{name}"', next(x for x in lines if x.startswith("# time,")))
    )
    problem = Problem.model_validate(tomllib.loads("\n".join(line[2:] for line in lines[start:stop])))
    assert problem.limit() == density_problems.accuracy_problem(name).limit()
    reference = density_problems.load_reference(name)
    np.testing.assert_allclose(reference.times, problem.time.outputs_at, rtol=1e-5)  # six digits are kept
    cut_off = AGREEMENT if name in HARD else 1e-12  # two schemes agree so far where the mesh ends in a tail; rounding
    np.testing.assert_allclose(reference.q[0], problem.initial_overlap, atol=cut_off)  # both in the line before
    assert reference.q.shape == reference.q_error.shape == (len(reference.times), len(problem.features))
    allowed = AGREEMENT if name in HARD else 1e-10  # none is written above; for tests at 1e-8
    assert max(reference.q_error.max(), reference.r_error.max()) < allowed


@pytest.mark.parametrize("name", HARD)
def test_errors_of_hard_references_are_the_differences_of_two_schemes(name):
    columns = np.loadtxt(density_problems.reference_path(name), delimiter=",").T[1:]
    ours, errors, second = np.split(columns, 3)
    np.testing.assert_allclose(errors, abs(ours - second), rtol=0.06, atol=2e-14)  # two digits; and the last one


@pytest.mark.parametrize("name", quick_or_slow(NAMES, []))
def test_references_are_found_again(name):
    stored, problem = density_problems.load_reference(name), density_problems.accuracy_problem(name)
    found = reference_solution(problem, density_problems.resolution_of(name))
    # machines round differently: by up to 1e-11, seen where the norm of the weights is unstable
    assert np.all(abs(found.q - stored.q) <= stored.q_error + 1e-11)
    assert np.all(abs(found.r - stored.r) <= stored.r_error + 1e-11)


@pytest.mark.parametrize("name", quick_or_slow(HARD, QUICK))
def test_the_density_is_right_in_every_regime(name):
    stored, found = (
        density_problems.load_reference(name),
        meanfield.solve_density(density_problems.accuracy_problem(name)),
    )
    assert found.attrs["status"] == "complete"
    for moment in ("q", "r"):
        error = abs(found[moment].values - getattr(stored, moment))
        known = getattr(stored, f"{moment}_error")
        assert np.all(error <= found[f"{moment}_error"].values.max() + known)  # the estimate bounds it
        assert error.max() <= 1e-6 + known.max()  # the tolerance
