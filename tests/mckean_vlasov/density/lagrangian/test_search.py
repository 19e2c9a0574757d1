"""Searches for an accuracy: what ends them, what is said then, and estimates that bound the error."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.extend import DensitySettings
from meanfield.ingredients.laws.coordinate import UniformCoordinate
from meanfield.mckean_vlasov.density import plan
from meanfield.mckean_vlasov.density.lagrangian import (
    assembly,
    budget,
    display,
    level,
    levels,
    node_search,
    preparation,
    search,
)
from meanfield.mckean_vlasov.density.lagrangian.estimate import estimated, extrapolated
from meanfield.mckean_vlasov.density.solver import solve
from tests.mckean_vlasov.density.lagrangian.test_scheme import make_limit as limit_of

PARTS = "points", "steps", "nodes", "norm"


def make_limit(name="quartic", strength=0.3, *numbers, **more):
    return limit_of(name, strength, *numbers, **more)


@pytest.fixture(scope="module")
def exact():
    """q and r to 1e-9."""
    solution = solve(make_limit(), DensitySettings(tolerance=1e-9))
    assert solution.status == "complete"
    return solution.moments[:, :-2]


@pytest.mark.parametrize("most_work", [1e3, 3e5, 1e6])
def test_a_search_ends_with_its_budget_and_says_how_far_it_came(monkeypatch, exact, most_work):
    monkeypatch.setattr(budget, "MOST_WORK", most_work)
    monkeypatch.setattr(level, "WORK_PER_CALL", 1.0)  # one step at a time
    spent = budget.Budget()
    solution = search.Search(make_limit(), DensitySettings(), 1e-10, budget=spent).solve()
    assert spent.left < 0.9 * most_work  # it counts
    assert spent.left > -1e4  # a step of 1200 points in 8 lanes
    assert solution.status.startswith("failed: ")
    assert np.isfinite(solution.moments[0]).all()
    if solution.errors is None:
        assert "more than half a minute of work" in solution.status or "error of q and r is unknown" in solution.status
        assert "raise density.tolerance" in solution.status
        assert most_work < 6e5  # of a trial run and three levels
        return
    assert "more levels would take too long; raise it" in solution.status
    claimed = solution.errors.moments
    assert f"estimated at {claimed.max():.2g}" in solution.status
    assert claimed.max() > 1e-10
    assert (np.abs(solution.moments[:, :-2] - exact) <= claimed + 1e-9).all()  # what both promise


def test_a_failure_names_kinks_that_the_prior_does_not(monkeypatch, tmp_path):
    """Before a step is taken; an interrupted run says nothing, and neither does one whose kinks are named."""
    (tmp_path / "forgetful_prior.py").write_text(
        "from meanfield import Prior\n\ndef pull(w):\n    return 1.0 if w > 0.25 else -1.0\n\n"
        "named = Prior(pull, kinks=(0.25,))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def said(name, strength=0.4, status="failed: for a reason"):
        return search.Search(make_limit(f"forgetful_prior:{name}", strength), DensitySettings(), 1e-6).solution(status)

    hint = "prior.name = 'forgetful_prior:pull': its force jumps from -1 to 1 at w = 0.25, which it does not name"
    assert said("pull").status.startswith(f"failed: for a reason; {hint}")
    assert said("pull", status="interrupted").status == "interrupted"
    assert said("pull", strength=0.0).status == said("named").status == "failed: for a reason"


def test_a_search_for_nodes_leaves_work_for_an_estimate(monkeypatch):
    """Means of w have kinks in u under an l1 prior with hardly any noise, and sums over nodes converge slowly."""
    monkeypatch.setattr(budget, "MOST_WORK", 1e7)
    limit = make_limit("l1", 0.4, noise=1e-5, coordinate=UniformCoordinate())
    solution = search.Search(limit, DensitySettings(), 1e-8).solve()
    assert "is estimated at" in solution.status
    assert "would take too long" in solution.status
    assert solution.errors is not None


def test_a_small_correction_leaves_more_work_for_the_search():
    """Finer levels then have few nodes; otherwise they have all of them."""
    found = search.Search(make_limit(), DensitySettings(), 2e-3, budget=budget.Budget(7.91))._node_search
    corrected, apart = [make_rule(8), make_rule(12)], [make_rule(4), make_rule(8)]  # 0.03 and 1.8; 0.06 is small
    assert found._affords(1.5, corrected)  # (1 + 4/3) 1.5 + 4.4 = 7.9
    assert not found._affords(1.6, corrected)
    assert found._affords(1.7, apart)  # 4.4 * 1.7 = 7.5
    assert not found._affords(1.8, apart)


def test_steps_are_shortened_only_where_they_miss_the_tolerance():
    found = search.Search(make_limit(), DensitySettings(), 1e-6)

    def missed_by(**sizes):
        parts = assembly.Parts(**{name: np.full((2, 2), sizes.get(name, 1e-8)) for name in PARTS})
        return found._steps_miss(assembly.Found([], None, parts, ()))

    assert missed_by(steps=2e-6)
    assert missed_by(norm=2e-6)
    assert not missed_by(steps=2e-6, nodes=1e-3)
    assert not missed_by(steps=2e-6, points=1e-3)
    assert not missed_by(steps=2e-7)


def test_what_does_not_fit_is_refused_before_anything_is_solved(monkeypatch):
    """Arrays of 20 000 outputs; the machine would have half a GiB."""
    monkeypatch.setattr(plan.psutil, "virtual_memory", lambda: SimpleNamespace(available=2.0**29))
    monkeypatch.setattr(preparation, "run", None)
    limit = dataclasses.replace(make_limit(coordinate=UniformCoordinate()), times=np.linspace(0.0, 2.0, 20_001))
    with pytest.raises(InputError, match="20001 outputs of 6 nodes"):
        solve(limit, DensitySettings(feature_nodes=12))


def test_work_is_kept_to_show_what_was_found(monkeypatch):
    kept = budget.Budget(100.0)
    kept.reserve(30.0)
    assert kept.allows(69.0)
    assert not kept.allows(70.0)
    assert kept.spend(69.0)
    assert not kept.spend(1.0)
    limit, spent = make_limit("l1", 0.4, coordinate=UniformCoordinate()), budget.Budget()
    solution = search.Search(limit, DensitySettings(), 1e-5, budget=spent).solve()
    assert solution.status == "complete"
    assert spent.reserved == pytest.approx(display.VALUE_WORK * solution.density.size, rel=0.2)  # of the first level
    monkeypatch.setattr(display, "VALUE_WORK", 1e9)  # as if there were very many output times
    spent = budget.Budget()
    solution = search.Search(limit, DensitySettings(), 1e-5, budget=spent).solve()
    assert solution.status.startswith("failed: ")
    assert spent.left > 0.9 * budget.MOST_WORK


def test_levels_have_the_nodes_that_were_chosen_where_there_are_no_more(monkeypatch):
    """A rule that ends in the middle of the search: steps are measured again for the nodes there are."""
    of = node_search.Nodes.of_limit
    monkeypatch.setattr(node_search.Nodes, "of_limit", lambda limit, nodes, scale: of(limit, nodes, min(scale, 1.4)))
    monkeypatch.setattr(node_search, "NODES_SHARE", 0.0)
    monkeypatch.setattr(node_search.Panels, "start", lambda *_: None)
    monkeypatch.setattr("meanfield.mckean_vlasov.density.lagrangian.estimate.LARGEST_CORRECTION", 0.0)
    limit = make_limit("l1", 0.4, coordinate=UniformCoordinate())
    found = search.Search(limit, DensitySettings(), 1e-5).solve()
    assert len(found.grid.u_weight) > len(of(limit, None, 0.7).u_weight)
    assert np.isfinite(found.errors.density).all()


@pytest.mark.parametrize(("name", "strength"), [("quartic", 0.3), ("smooth_l1", 1.0)])
def test_more_nodes_for_the_density_of_w_alone_leave_q_and_r_as_they_are(monkeypatch, name, strength):
    """Laws at the same output of fewer points and more nodes are those of the search within both errors."""
    limit, settings = make_limit(name, strength, coordinate=UniformCoordinate()), DensitySettings(tolerance=1e-4)
    few = search.Search(limit, settings, 1e-4).solve()
    monkeypatch.setattr("meanfield.mckean_vlasov.density.solution.Solution.error_between_nodes", lambda *_: 1.0)
    many = solve(limit, settings)
    assert many.status == few.status == "complete"
    assert len(many.grid.u_weight) > 2 * len(few.grid.u_weight)
    assert (many.moments[:, :-1] == few.moments[:, :-1]).all()
    assert (many.errors.moments == few.errors.moments).all()
    assert np.abs(many.moments[:, -1] - 1.0).max() < 1e-12  # the mass of P, rounding
    u, w = many.grid.u[:, 0], 0.5 * (many.grid.edges[1:] + many.grid.edges[:-1])
    means = many.density @ (w * np.diff(many.grid.edges))
    deviation = np.abs(means @ (u * many.grid.u_weight) - few.moments[:, 0])
    assert deviation.max() < 1e-4  # the tolerance


def test_searches_for_nodes_bound_what_is_left():
    """Two wells and little noise; against four times as many nodes."""
    limit = make_limit("quartic", 3.0, noise=1e-4, coordinate=UniformCoordinate())
    ours = search.Search(limit, DensitySettings(), 1e-5).solve()
    others = search.Search(limit, DensitySettings(feature_nodes=60), 1e-5).solve()
    assert ours.status == others.status == "complete"
    difference = np.abs(ours.moments - others.moments)[:, :-2]
    assert (difference <= ours.errors.moments + others.errors.moments).all()  # what both promise


def test_points_gather_in_a_narrow_core_whose_potential_rises_as_slowly_as_a_logarithm():
    """Without grading 2000 points leave 5e-6: those between core and tails are far apart."""
    found = solve(make_limit("cauchy", 6.0, 0.36, 16.0), DensitySettings(tolerance=1e-6))
    assert found.status == "complete"
    assert found.effort["points"][-1] < 800  # 555


def make_rule(nodes, mixed=0.0, second=True):
    """A rule whose error is that of the spacing squared, 100 exp(-nodes) by the nodes, and a part by both."""

    def made(points):
        square = (points - 1.0) ** -2
        error = square + 100 * np.exp(-nodes) + mixed * np.exp(-nodes) * square
        return SimpleNamespace(points=points, moments=np.full((2, 4), error), work=1.0, limit=SimpleNamespace(judged=2))

    return node_search.Rule(
        1.0, SimpleNamespace(nodes=SimpleNamespace(u_weight=np.ones(nodes))), None, made(30), second and made(40)
    )


@pytest.mark.parametrize("tolerance", [2e-3, 1e-4])
def test_levels_of_few_nodes_are_corrected_for_more(tolerance):
    series = [make_rule(8), make_rule(12), make_rule(16), make_rule(20, second=None)]
    base, correction = node_search.fewest_nodes(series, np.array([1e-7, 1e-7]), tolerance)
    exact = 100 * np.exp(-20.0)
    assert base is series[0 if tolerance == 2e-3 else 1]  # 100 exp(-8) = 0.03, 100 exp(-12) = 6e-4
    assert np.abs(base.moments(2) + correction.moments - exact).max() < 1e-15  # rounding
    assert correction.error == pytest.approx(1e-7)  # the last change alone


@pytest.mark.parametrize(("last", "left"), [(4e-4, 4e-4), (8e-4, 16e-4)])
def test_the_last_rule_has_the_error_of_the_last_change_where_changes_fall(monkeypatch, last, left):
    """By half or more from 1e-3 on, as the safety presumes for the rule before; otherwise the safety stays."""
    found = search.Search(make_limit(coordinate=UniformCoordinate()), DensitySettings(), 1e-3)._node_search
    changes = iter([(np.array([1e-3, 0.0]), False), (np.array([0.0, last]), True)])
    monkeypatch.setattr(found, "_change", lambda _: next(changes))

    def made(_, scale, nodes):
        return dataclasses.replace(make_rule(len(nodes.u_weight)), scale=scale)

    monkeypatch.setattr(found, "_with_more", made)
    monkeypatch.setattr(node_search, "fewest_nodes", lambda *_: None)
    rule, correction = found.choose(make_rule(16))
    assert rule.size > 40  # the last one
    assert correction.error.max() == pytest.approx(left)


def test_panels_that_had_too_many_nodes_are_taken_once_there_are_more_without_them(monkeypatch):
    """They were refused for good, and a search ended with its tolerance missed and most of its budget left."""
    found = search.Search(make_limit(coordinate=UniformCoordinate()), DensitySettings(), 1e-3)._node_search
    asked = []
    monkeypatch.setattr(found, "_affordable", lambda panels, known: asked.append(known.size) or len(asked) == 3)
    monkeypatch.setattr(found, "_change", lambda _: (np.ones(2), False))
    monkeypatch.setattr(found, "_affords", lambda *_: True)
    monkeypatch.setattr(
        found, "_with_more", lambda _, scale, nodes: dataclasses.replace(make_rule(len(nodes.u_weight)), scale=scale)
    )

    def taken(panels, known):
        raise InterruptedError(known.size)

    monkeypatch.setattr(found, "_on", taken)
    with pytest.raises(InterruptedError):
        found.choose(make_rule(16))
    assert asked == sorted(set(asked))  # with more nodes each time
    assert len(asked) == 3


def test_a_norm_that_nodes_seem_to_change_tells_that_points_do():
    """Errors of points that differ from node to node, in E[w^2] alone: the change of two levels decides."""
    series = [make_rule(12), make_rule(16), make_rule(20, second=None)]
    series[1].first.moments[:, -2] += 1e-3
    assert node_search.mixed_change(series[:2])[-1] > 1e-4
    assert np.abs(node_search.mixed_change(series[:2])[:-1]).max() < 1e-15  # rounding
    found = search.Search(make_limit(), DensitySettings(), 1e-3)._node_search
    asked = []
    found.second_levels = lambda *rules: asked.append(rules)
    by_first, _ = found._change(series)
    assert by_first.max() < 2e-5  # 100 exp(-16), which is small
    assert asked


def test_no_panels_are_tried_twice(monkeypatch):
    """Of panels that need no cut, more nodes tell the error; the change by the same ones was 0, and was claimed."""
    found = search.Search(make_limit(coordinate=UniformCoordinate()), DensitySettings(), 1e-3)._node_search
    monkeypatch.setattr(found, "_change", lambda _: (np.ones(2), False))
    monkeypatch.setattr(found, "_affords", lambda *_: True)
    monkeypatch.setattr(found, "_affordable", lambda *_: True)
    nothing = lambda panels, *_: [np.zeros(len(panels.edges[0]) - 1)]  # noqa: E731
    monkeypatch.setattr(node_search.Panels, "errors", nothing)
    monkeypatch.setattr(node_search.Panels, "changes", nothing)
    tried = []

    def on(panels, _):
        tried.append((panels.order, *panels.edges[0]))
        return make_rule(4 + len(tried))

    monkeypatch.setattr(found, "_on", on)
    _, correction = found._on_panels([make_rule(16)])
    assert len(set(tried)) == len(tried) > 2
    assert correction.error.max() > 0.0


def test_corrections_that_depend_on_the_points_are_refused():
    series = [make_rule(8, 1e4), make_rule(12, 1e4)]
    assert node_search.fewest_nodes(series, np.zeros(2), 1e-3) is None


def test_changes_of_the_first_level_do_not_count_once_points_have_mixed_with_nodes(monkeypatch):
    """The last change vanishes in the first level by chance, while that of two levels, with other points, does not."""
    series = [make_rule(8, 1e4), make_rule(12, 1e4), make_rule(16, 1e4, second=None)]
    series[2].first.moments[:] = series[1].first.moments
    second = make_rule(16, 1e4).second
    found = search.Search(make_limit(), DensitySettings(), 1e-3)._node_search
    monkeypatch.setattr(found, "second_levels", lambda _, better: setattr(better, "second", second) or True)
    changed, enough = found._change(series)
    assert not enough
    assert changed.max() == np.abs(series[2].moments(2) - series[1].moments(2)).max() > 1e-3
    series[2].second = None
    monkeypatch.setattr(found, "second_levels", lambda *_: False)
    changed, enough = found._change(series)
    assert not enough
    assert changed.max() > 1e-3  # where second levels are too much work, what mixed before counts


@pytest.mark.parametrize("place", [preparation, levels])
def test_points_out_of_order_are_a_failure_with_its_cause(monkeypatch, place):
    def stuck(begun, _):
        begun.reach(0)
        raise begun._stuck()

    monkeypatch.setattr(place, "run", stuck)
    solution = solve(make_limit(), DensitySettings(tolerance=1e-5))
    assert solution.status.startswith("failed: at t = 0: no time step however short keeps ")
    assert "take density.scheme = 'eulerian'" in solution.status
    assert np.isfinite(solution.moments[0]).all()
    assert np.isnan(solution.moments[1:, :-1]).all()
    assert solution.errors is None


def test_points_that_are_out_of_order_at_the_start_are_a_failure_too(monkeypatch):
    def stuck(begun, _):
        raise begun._stuck()

    monkeypatch.setattr(preparation, "run", stuck)
    solution = solve(make_limit("l1"), DensitySettings(tolerance=1e-5))
    assert solution.status.startswith("failed: at t = 0: no time step however short keeps ")


def test_where_longer_steps_fail_shorter_ones_are_compared(monkeypatch, exact):
    longest = 2 * search.STEP_SHARE * 1e-5

    def run(begun, label):
        if begun.tolerance > longest:
            begun.reach(0)
            raise begun._stuck()
        preparation.run(begun, label)

    monkeypatch.setattr(levels, "run", run)
    monkeypatch.setattr(levels, "prepare", lambda *of: (preparation.prepare(*of)[0], None))  # no trial run to compare
    solution = solve(make_limit(), DensitySettings(tolerance=1e-5))
    assert solution.status == "complete"
    assert (np.abs(solution.moments[:, :-2] - exact) <= solution.errors.moments + 1e-9).all()  # what both promise


@pytest.mark.parametrize(("name", "strength"), [("log_cosh", 1.0), ("smooth_l1", 1.0)])
def test_both_schemes_agree_within_their_estimates(name, strength):
    limit = make_limit(name, strength)
    settings = (DensitySettings(tolerance=1e-6, scheme=scheme) for scheme in ("lagrangian", "eulerian"))
    ours, other = (solve(limit, each) for each in settings)
    assert ours.status == other.status == "complete"
    difference = np.abs(ours.moments - other.moments)[:, :-2]
    assert np.abs(ours.moments[-1] - ours.moments[0]).max() > 0.05  # there is something to agree on
    assert (difference <= ours.errors.moments + other.errors.moments).all()  # what both promise


def missed(series_of, trials=300):
    """Share of random series whose extrapolation has an error above its estimate at any output.

    `series_of(generator, h)` gives errors of levels with spacings h, shape (levels, outputs).
    """
    generator, counts = np.random.default_rng(5), [100, 150, 200, 300]
    wrong = 0
    for _ in range(trials):
        errors = 1e-3 * series_of(generator, 100.0 / (np.array(counts)[:, None] - 1.0))
        levels = [
            SimpleNamespace(points=n, moments=np.stack([e, e, e, e], axis=1), limit=SimpleNamespace(judged=2))
            for n, e in zip(counts, errors, strict=True)
        ]
        wrong += bool((np.abs(extrapolated(levels)[:, :2]) > estimated(levels, 1e-6)).any())
    return wrong / trials


def test_the_estimate_of_smooth_series_bounds_their_error():
    share = missed(lambda draw, h: sum(draw.normal() * (0.3 * h) ** p for p in (2, 4, 6, 8, 10)))
    assert share <= 0.01  # of estimates; 0.3 % here, 2 % without the factor on changes


def test_the_estimate_of_errors_that_look_random_bounds_them():
    """Errors of second order in size that are independent from level to level, at ten output times."""
    assert missed(lambda draw, h: draw.uniform(-1, 1, (4, 10)) * h**2) <= 0.01  # of estimates
