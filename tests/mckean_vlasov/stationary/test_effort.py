"""What the search for stationary states leaves out is said, and what it saves changes no state."""

import numpy as np
import pytest

from meanfield.extend import PriorSettings
from meanfield.ingredients.laws.coordinate import GaussianCoordinate, RademacherCoordinate, UniformCoordinate
from meanfield.mckean_vlasov.stationary import all_states, equations, search, states
from meanfield.mckean_vlasov.stationary.effort import Effort
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.panels import CROWDED
from meanfield.mckean_vlasov.stationary.search import Orbit, symmetries
from meanfield.numerics.continuation import ball_starts
from tests.mckean_vlasov.stationary.test_hand_written_limit import NOISE, limit_with

ATOM = (RademacherCoordinate(),)
QUARTIC = PriorSettings(name="quartic", strength=0.5)


OUTSIDE_AND_ZERO = [Orbit(np.array([1.0]), [np.eye(1)]), Orbit(np.zeros(1), [np.eye(1)])]


def test_an_overlap_without_a_density_is_counted(monkeypatch):
    monkeypatch.setattr(
        states, "resolved", lambda limit, effort, *_: (StationaryEquations(limit, effort=effort), OUTSIDE_AND_ZERO)
    )
    solved, found = all_states(limit_with(ATOM, QUARTIC))
    assert [state.q.tolist() for state in found] == [[0.0]]
    assert "states may be missing: 1 of the overlaps found" in solved.effort.warning


@pytest.mark.parametrize("all_of_them", [True, False])
def test_too_many_panels_are_no_answer(monkeypatch, all_of_them):
    """Where no multiplier is found beside such densities it is said; one that is found is right all the same."""
    limit, zero = limit_with(ATOM, QUARTIC), np.zeros(1)
    expected, own = StationaryEquations(limit).state(zero).G, equations.tilted_moments
    highest = -np.inf if all_of_them else 2.0 / NOISE * (expected + 0.1)

    def crowded(potential, a, *others):
        moments, status = own(potential, a, *others)
        return moments, CROWDED if a > highest else status

    monkeypatch.setattr(equations, "tilted_moments", crowded)
    one = StationaryEquations(limit)
    one.hint = zero, expected + 1.0, zero
    state = one.state(zero)
    if all_of_them:
        assert state is None
        assert "take more than 600 panels in w" in one.effort.warning
    else:
        assert pytest.approx(expected, abs=1e-12) == state.G  # 1e-13 of the norm
        assert not one.effort.warning


def test_a_search_without_a_budget_left_ends_and_says_so(monkeypatch):
    limit = limit_with((UniformCoordinate(), GaussianCoordinate()), QUARTIC)
    many = StationaryEquations(limit)
    search.all_overlaps(many)
    assert not many.effort.warning
    monkeypatch.setattr(search, "MOST_DENSITIES", 300)
    few = StationaryEquations(limit)
    search.all_overlaps(few)
    assert few.effort.densities < 0.7 * many.effort.densities  # 0.54: images of roots, and checks, are not cut
    assert "the search ended early, after" in few.effort.warning


@pytest.mark.slow  # of time alone; states are those of other tests
def test_the_effort_of_a_search_is_bounded_by_symmetries_and_rough_averages():
    """Overlaps are those of a search that has neither, to what `polished` leaves, and nothing is missing."""
    limit = limit_with((UniformCoordinate(), UniformCoordinate()), QUARTIC, gains=(0.5, 0.5))
    assert len(symmetries(limit)) == 8
    assert len(symmetries(limit_with((UniformCoordinate(), UniformCoordinate()), QUARTIC))) == 4
    one = StationaryEquations(limit, effort=Effort())
    roots = search.all_overlaps(one)
    plain = StationaryEquations(limit)
    expected = search.find_roots(plain, ball_starts(2), search.signed_permutations)
    assert np.array(roots) == pytest.approx(np.array(sorted(expected, key=search.in_order)), abs=1e-11)  # 1e-12 of F
    assert one.effort.densities < plain.effort.densities / 2  # it is 0.37, with wider panels
    assert not one.effort.warning


def test_orbits_that_finer_nodes_join_are_one_and_those_without_a_root_are_counted():
    """Too few nodes in u may split a root into three, of which two are images of each other."""
    one = StationaryEquations(limit_with((UniformCoordinate(), GaussianCoordinate()), QUARTIC))
    flip = np.diag([-1.0, 1.0])
    (root,) = search.polished(one, [np.array([0.0, 0.8])])
    found_before = [Orbit(root + 1e-4, [np.eye(2), flip]), Orbit(root, [np.eye(2)]), Orbit(np.ones(2), [np.eye(2)])]
    (orbit,) = search._polished_orbits(one, found_before)
    assert orbit.q == pytest.approx(root, abs=1e-9)  # 1e-12 of F
    assert len(orbit.maps) == 1
    assert one.effort.lost == 1


def test_a_root_whose_density_is_not_found_again_leaves_the_search_open():
    """The indices of all roots then prove nothing, and no number stands for the missing one."""
    lost = np.array([0.5])

    def slopes(q):
        return q, np.full((1, 1), np.nan if q is lost else -1.0)

    assert search.index_of(slopes, np.zeros(1)) == 1.0
    assert np.isnan(search.index_of(slopes, lost))


def test_a_root_that_takes_too_many_densities_is_given_up_and_counted(monkeypatch):
    one = StationaryEquations(limit_with(ATOM, QUARTIC))
    assert len(search.polished(one, [np.array([0.3])])) == 1
    monkeypatch.setattr(search, "MOST_FOR_A_ROOT", 1)  # the first evaluation takes more
    assert search._polished_orbits(one, [Orbit(np.array([0.3]), [np.eye(1)])]) == []
    assert one.effort.lost == 1
