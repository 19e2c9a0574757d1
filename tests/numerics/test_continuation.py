"""Roots and branches of toys whose answers are known."""

import numpy as np
import pytest

from meanfield.numerics.continuation import CachedEquations, all_branches, diagram, find_roots, follow, newton
from meanfield.process.progress import interrupted_after

ROOT_ERROR = 1e-11
"""Roots are found to 1e-12 in F, and the slopes of these toys are of order one."""


class Toy:
    """F(x, p) of one unknown from its formula and its derivatives."""

    def __init__(self, value, by_x, by_p):
        self._value, self._by_x, self._by_p = value, by_x, by_p

    def equations(self, x, p):
        return np.array([self._value(x[0], p)]), np.array([[self._by_x(x[0], p)]])

    def by_parameter(self, x, p, values):
        return np.array([self._by_p(x[0], p)])


CUBIC = Toy(lambda x, p: x**3 - x - p, lambda x, p: 3 * x**2 - 1, lambda x, p: -1.0)
CIRCLE = Toy(lambda x, p: x**2 + (p - 0.5) ** 2 - 0.09, lambda x, p: 2 * x, lambda x, p: 2 * (p - 0.5))
PITCHFORK = Toy(lambda x, p: x * (p - 0.3 - x**2), lambda x, p: p - 0.3 - 3 * x**2, lambda x, p: x)
ENDING = Toy(
    lambda x, p: x - np.sqrt(0.5 - p) if p < 0.5 else np.nan,
    lambda x, p: 1.0,
    lambda x, p: 0.5 / np.sqrt(0.5 - p) if p < 0.5 else np.nan,
)


def two_cubics(x):
    return x**3 - x, np.diag(3 * x**2 - 1)


def test_branch_passes_both_turning_points_and_hits_the_limits():
    branch = follow(CUBIC, newton(lambda x: CUBIC.equations(x, -1.0), np.array([-1.0])), -1.0, (-1.0, 1.0))
    assert branch.ends == ("limit", "limit")
    assert branch.p[[0, -1]].tolist() == [-1.0, 1.0]
    fold = 2 / 3**1.5
    assert branch.p[branch.turning] == pytest.approx([fold, -fold], abs=ROOT_ERROR)  # stated there
    assert np.abs(branch.x[:, 0] ** 3 - branch.x[:, 0] - branch.p).max() < ROOT_ERROR  # stated there
    assert np.linalg.norm(np.diff(branch.x, axis=0), axis=1).max() < 0.0251  # the longest step


def test_a_branch_can_be_stopped_at_any_point():
    with interrupted_after(5), pytest.raises(KeyboardInterrupt):
        follow(CUBIC, np.zeros(1), 0.0, (-1.0, 1.0))


def test_turning_points_are_found_from_a_start_anywhere():
    branch = follow(CUBIC, np.zeros(1), 0.0, (-1.0, 1.0))
    assert branch.turning.sum() == 2
    assert sorted(branch.p[[0, -1]]) == [-1.0, 1.0]


def test_closed_branch_ends_where_it_began():
    branch = follow(CIRCLE, np.array([0.3]), 0.5, (0.0, 1.0))
    assert branch.ends == ("closed", "closed")
    assert branch.p[branch.turning] == pytest.approx([0.8, 0.2], abs=ROOT_ERROR)  # stated there
    assert branch.x[0] == branch.x[-1]


def test_branch_passes_a_pitchfork_along_itself():
    branch = follow(PITCHFORK, np.array([np.sqrt(0.7)]), 1.0, (0.0, 1.0))
    assert sorted(branch.x[[0, -1], 0]) == pytest.approx([-np.sqrt(0.7), np.sqrt(0.7)], abs=ROOT_ERROR)  # stated there
    assert branch.p[branch.turning] == pytest.approx([0.3], abs=1e-8)  # flat there: the square of the error of x
    straight = follow(PITCHFORK, np.zeros(1), 1.0, (0.0, 1.0))
    assert np.all(straight.x == 0)
    assert not straight.turning.any()


class Subcritical(Toy):
    """An unstable pair that ends at p = 0.4, where 0 loses its stability: F = x (SLOPE (p - 0.4) + x^2)."""

    SLOPE = 0.08
    limits = (0.0, 1.0)

    def __init__(self):
        value = lambda x, p: x * (self.SLOPE * (p - 0.4) + x**2)  # noqa: E731
        super().__init__(value, lambda x, p: self.SLOPE * (p - 0.4) + 3 * x**2, lambda x, p: self.SLOPE * x)

    def search(self, p, known=()):
        pair = np.sqrt(max(self.SLOPE * (0.4 - p), 0.0))
        return [np.array([x]) for x in {-pair, 0.0, pair}]

    def images(self, x):
        return [x]


@pytest.mark.parametrize("longest", [0.05, 0.5, 1.0])
def test_long_steps_do_not_jump_to_another_branch(longest):
    """In one long step either of the pair went on along 0, so that three branches led to one root and none turned."""
    branches = all_branches(Subcritical(), (0.0, 1.0), longest)
    assert len(branches) == 2
    (pair,) = (branch for branch in branches if branch.turning.any())
    assert pair.p[pair.turning] == pytest.approx([0.4], abs=1e-5)  # flat there: the square of the error of x
    end = (0.4 * Subcritical.SLOPE) ** 0.5
    assert sorted(pair.x[[0, -1], 0]) == pytest.approx([-end, end], abs=1e-9)  # ROOT_ERROR over the slope


def test_branch_ends_where_equations_end():
    branch = follow(ENDING, np.array([np.sqrt(0.5)]), 0.0, (0.0, 1.0))
    assert branch.ends == ("limit", "lost")
    assert branch.p[-1] == pytest.approx(0.5, abs=1e-6)  # the shortest step, in units of the longest
    steps = np.linalg.norm(np.diff(np.column_stack([branch.x, branch.p]), axis=0), axis=1)
    assert steps[:-1].min() >= 0.05 * 0.025  # points do not crowd where it ends


def test_crossings_interpolate():
    branch = follow(CUBIC, np.zeros(1), 0.0, (-1.0, 1.0))
    assert sorted(float(x[0]) for x in branch.crossings(0.0)) == pytest.approx([-1, 0, 1], abs=1e-3)  # chords of 0.025


def test_newton_needs_no_good_start_and_says_where_there_is_no_root():
    assert newton(two_cubics, np.array([3.0, -9.0])) == pytest.approx([1, -1], abs=ROOT_ERROR)  # stated there
    assert newton(lambda x: (x**2 + 1, np.diag(2 * x)), np.array([0.3])) is None
    assert newton(lambda x: (np.full(1, np.nan), np.eye(1)), np.zeros(1)) is None


def test_deflation_finds_another_root_from_the_same_start():
    start = np.array([0.9, 0.9])
    first = newton(two_cubics, start)
    second = newton(two_cubics, start, [first])
    assert second is not None
    assert np.linalg.norm(first - second) > 0.5


def test_all_nine_roots_are_found_once():
    starts = np.random.default_rng(0).uniform(-2, 2, (200, 2))  # deterministic equations: no false alarms
    roots = find_roots(two_cubics, starts)
    assert sorted(np.round(root).tolist() for root in roots) == [[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)]


def test_images_are_looked_at_and_known_roots_are_left_out():
    roots = find_roots(two_cubics, [np.array([0.9, 0.1])], lambda x: [-x, x[::-1]], known=[np.array([0.0, -1.0])])
    assert sorted(np.round(root).tolist() for root in roots) == [[-1, 0], [0, 1], [1, 0]]


def test_no_image_is_looked_at_twice():
    """A root on an axis has images that differ by rounding alone, and images of images are images again."""
    calls = []

    def counted(x):
        calls.append(x)
        return two_cubics(x)

    def images(x):
        return [-x, x[::-1], -x[::-1], x * [1, -1 + ROOT_ERROR], x * [-1, 1]]

    start = np.array([0.9, 0.1])
    newton(counted, start)
    alone = len(calls)
    roots = find_roots(counted, [start], images)
    assert sorted(np.round(root).tolist() for root in roots) == [[-1, 0], [0, -1], [0, 1], [1, 0]]
    assert len(calls) <= 2 * alone + 3 * 3  # the other three begin at their root: a step or two for rounding


class Parabola(CachedEquations[float]):
    """F = x^2 - p, whose "equations" at p are p itself; it counts how often they are made."""

    def __init__(self):
        super().__init__((0.25, 1.0))
        self.made = []

    def make(self, p, latest):
        self.made.append((p, latest))
        return p

    def equations(self, x, p):
        return x**2 - self.at(p), np.diag(2 * x)

    def search(self, p, known=()):
        return find_roots(lambda x: self.equations(x, p), np.linspace(-1, 1, 30)[:, None], known=known)


def test_cached_equations_are_made_once_for_each_value_and_know_the_latest():
    parabola = Parabola()
    assert [parabola.at(p) for p in (0.1, 0.2, 0.1, 0.3)] == [0.1, 0.2, 0.1, 0.3]
    assert parabola.made == [(0.1, None), (0.2, 0.1), (0.3, 0.2)]
    parabola.forget()
    assert parabola.at(0.1) == 0.1
    assert parabola.made[-1] == (0.1, None)


def test_cached_equations_forget_the_oldest(monkeypatch):
    monkeypatch.setattr(diagram, "MOST_KEPT", 2)
    parabola = Parabola()
    for p in (0.1, 0.2, 0.3, 0.2, 0.1):
        parabola.at(p)
    assert [p for p, _ in parabola.made] == [0.1, 0.2, 0.3, 0.1]


def test_cached_equations_are_followed_without_a_derivative_by_the_parameter():
    parabola = Parabola()
    assert parabola.by_parameter(np.array([0.5]), 0.25, np.zeros(1)) == pytest.approx([-1], abs=1e-9)  # linear in p
    branches = all_branches(parabola, (1.0, 0.25), 0.1)
    assert sorted(float(x[0]) for branch in branches for x in branch.crossings(1.0)) == pytest.approx([-1, 1])
    for branch in branches:
        assert np.abs(branch.x[:, 0] ** 2 - branch.p).max() < ROOT_ERROR  # stated there
