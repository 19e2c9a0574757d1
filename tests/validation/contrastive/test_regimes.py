"""The judge of random problems: outcomes, causes, true errors, and the exact solutions that it judges by."""

import argparse
import itertools
import json
import math

import numpy as np
import pytest
import xarray as xr
from mpmath import mp
from scipy.integrate import quad_vec
from scipy.special import log_ndtr, ndtr
from scipy.stats import laplace, norm

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.stationary.coordinates import Coordinates
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import polished
from meanfield.problems.file import parse_problem
from tests.example_problems import features, make_problem
from validation.bounded_calls import Outcome
from validation.contrastive import regimes
from validation.contrastive.exact_marginal import exact_marginal
from validation.contrastive.random_problems import random_problem
from validation.contrastive.regime_runs import Run, run_one, solvers_of
from validation.contrastive.regime_table import cause_of, compare, statements, summary, table
from validation.contrastive.stationary_residual import ACCURACY, LAWS, TiltLaw, stationary_residual

HALF = Run("complete", 1.0, [[0.5, 0.0]], [[1e-6, 1e-6]])


def run_of(q, claimed=1e-6, status="complete", seconds=0.1):
    return Run(status, seconds, [[q, 0.0]], [[claimed, 0.0]])


def test_an_error_is_held_against_what_was_claimed():
    truth = compare(run_of(0.5 + 3e-6), Run("complete", 0.0, [[0.5, 0.0]], [[5e-7, 0.0]]))
    assert truth.error == pytest.approx(3e-6)
    assert truth.excess == pytest.approx(2.0, rel=1e-3)  # 1e-10 of 1.5e-6 is that of any reference
    assert truth.reference_error == 5e-7


def test_what_a_method_does_not_give_is_not_compared():
    truth = compare(Run("complete", 0.0, [[0.5, None]], []), HALF)
    assert truth.error == 0.0
    assert math.isnan(truth.claimed)


def test_a_miss_is_told_from_an_honest_estimate_and_from_a_failure():
    reference = Run("complete", 0.0, [[0.5, 0.0]], [])  # of a linear prior: exact
    runs = {
        (1, "density"): run_of(0.5 + 1e-7),
        (2, "density"): run_of(0.5 + 3e-6),
        (8, "density"): run_of(0.5, status="failed: the error 1e-3 is too large; raise it"),
        (14, "density"): Run("broken: Traceback\n...\nValueError: 3 things", 60.0, [], []),
    }
    runs |= {(seed, "exact"): reference for seed, _ in [*runs]}
    data = table(runs, ["density"])
    found = summary(data, "density", 1e-6)
    assert found.counts == {"complete": 2, "refused": 0, "failed": 1, "time limit": 0, "broken": 1}
    assert (found.judged, found.honest, found.missed) == (2, 1, 1)
    assert data.cause.values[2:, 0].tolist() == ["the error # is too large", "ValueError: # things"]
    assert not any(one.holds for one in statements(data, 1e-6)[:4])


def test_a_reference_that_missed_its_tolerance_still_tells_errors():
    runs = {
        (3, "density"): run_of(0.5 + 3e-6),
        (3, "refined"): run_of(0.5, 2e-7, "failed: the error is 2e-7; raise it"),
    }
    assert summary(table(runs, ["density"]), "density", 1e-6).missed == 1
    runs[3, "refined"] = Run("failed: at t = 1: no", 0.1, [[None, None]], [[1e-7, 1e-7]])
    assert summary(table(runs, ["density"]), "density", 1e-6).judged == 0


def test_the_limit_is_on_methods_and_not_on_checks_of_them():
    slow = run_of(0.5, seconds=61.0)
    assert regimes.as_run(Outcome((1, "stationary"), slow, ""), 60.0).status == "time limit"
    assert regimes.as_run(Outcome((1, "exact"), slow, ""), 60.0) == slow
    assert regimes.as_run(Outcome((1, "stationary"), HALF, ""), 60.0) == HALF  # whatever its check took
    assert regimes.as_run(Outcome((1, "density"), None, "hangs"), 60.0).status == "broken: hangs"


def test_causes_have_no_numbers():
    assert cause_of(run_of(0.5, status="failed: at t = 1.5: 3e-7 is left; do this")) == "at t = #: # is left"
    assert cause_of(HALF) == ""


def test_a_marginal_is_the_law_of_its_parts():
    laws = (
        f'{{ hidden = {{ law = "rademacher" }}, coordinate = {{ law = "{law}" }}, initial_overlap = 0.0 }}'
        for law in ("laplace", "uniform")
    )
    problem = make_problem(features(*laws))
    q, edges = np.array([0.6, -0.75]), np.array([-0.3, 0.1, 0.4, 3.0])
    spread = math.sqrt(1 - q @ q)

    def below(u):
        return laplace.pdf(u, scale=math.sqrt(0.5)) * uniform_below(edges - 0.6 * u, 0.75 * math.sqrt(3), spread)

    total = sum(quad_vec(below, *ends, epsabs=1e-12)[0] for ends in ((-20, 0), (0, 20)))
    # both quadratures to 1e-12 or better, over cells no narrower than 0.3
    np.testing.assert_allclose(exact_marginal(problem, q, edges), np.diff(total) / np.diff(edges), atol=1e-11)


@pytest.mark.parametrize("q", [0.5, 0.99, 0.9999, 0.99999])
@pytest.mark.parametrize("law", ["uniform", "laplace"])
def test_a_marginal_is_right_however_narrow_its_gaussians_are(law, q):
    problem = make_problem(
        features(f'{{ hidden = {{ law = "rademacher" }}, coordinate = {{ law = "{law}" }}, initial_overlap = 0.0 }}')
    )
    edges, spread = np.linspace(-4.0, 4.0, 41), math.sqrt(1 - q * q)
    below = uniform_below(edges, q * math.sqrt(3), spread) if law == "uniform" else laplace_below(edges, q, spread)
    found = exact_marginal(problem, np.array([q]), edges)
    exact = np.diff(below) / np.diff(edges)
    np.testing.assert_allclose(found, exact, atol=2e-11)  # 5e-13 beyond the cut, and rounding of 2e4 terms, over 0.2


def uniform_below(w, end, spread):
    """Distribution function of a uniform variable on (-end, end) plus a Gaussian of that spread."""
    low, high = ((w + side * end) / spread for side in (-1, 1))
    inner = [x * ndtr(x) + norm.pdf(x) for x in (low, high)]
    return (inner[1] - inner[0]) * spread / (2 * end)


def laplace_below(w, scale, spread):
    """Distribution function of a Laplace variable of variance scale^2 plus a Gaussian: that of a normal-Laplace law."""
    rate = math.sqrt(2.0) / scale

    def tail(w):  # of the exponential part on one side
        return np.exp(rate * (0.5 * rate * spread**2 - w) + log_ndtr(w / spread - rate * spread))

    return ndtr(w / spread) - 0.5 * (tail(w) - tail(-w))


def test_residuals_of_states_are_those_of_their_equations():
    problem = random_problem(102)
    states = meanfield.find_stationary_states(problem)
    for k in range(states.sizes["state"]):
        state = states.isel(state=k)
        residual, own_error = stationary_residual(problem, state)
        assert max(residual, own_error) < 1e-9  # what the quadrature over w leaves; states claim 1e-10
        wrong = state.assign(multiplier=state.multiplier + 1e-3 * state.Lambda)
        assert stationary_residual(problem, wrong)[0] > 1e-4


def test_wells_narrower_than_any_fixed_panels_are_found():
    """Between two wells E[w] turns by 2 E[w^2]/Lambda times a tilt, so that what rounds g by 4e-16 tau shows."""
    problem = random_problem(705020)
    states = meanfield.find_stationary_states(problem)
    rounding = 1e-12 + 4e-16 * problem.model.learning_rate * 2.0 * 2.0 / states.Lambda.values  # wells at |w| = sqrt 2
    for k in range(states.sizes["state"]):
        assert stationary_residual(problem, states.isel(state=k))[0] < rounding[k]  # two values of u: rounding alone


def test_states_whose_nodes_all_miss_a_layer_say_their_error():
    """Between opposite wells E[w|u] turns over a width of 2e-4, while 70 and 106 nodes agree to 1e-10."""
    problem = random_problem(705030)
    limit = limit_of(problem)
    coarse = StationaryEquations(limit, Coordinates(limit.coordinates, 1))
    rough = coarse.state(polished(coarse, [np.array([0.81])])[0])
    resolving = StationaryEquations(limit, coarse.layers([rough]))
    fine = resolving.state(polished(resolving, [rough.q])[0])
    parts = {"q": ("feature", rough.q), "g": ("feature", rough.coefficients.g)}
    numbers = {"multiplier": rough.G, "Lambda": rough.coefficients.diffusion}
    residual, own_error = stationary_residual(problem, xr.Dataset(parts | numbers))
    found = coarse.check(rough)
    assert residual > 1e-7
    assert found.residual == pytest.approx(residual, abs=own_error + 1e-11)  # the other quadrature, and its aim
    assert resolving.check(fine).residual < 1e-12  # the tolerance of roots
    # one Newton step tells an error up to its square
    assert found.error == pytest.approx(abs(fine.q - rough.q)[0], rel=1e-3)


def test_layers_far_narrower_than_the_law_are_found():
    """E[exp(-|u|/width)] by integration; a rule that began with the whole law saw none of it."""
    width, rate = 1e-6, 2**0.5
    law = TiltLaw(["laplace"], np.array([1.0]))
    found, _ = law.integral(lambda s: np.array([law(s)[0] * np.exp(-abs(s) / width)]), 0.0)
    assert found[0] == pytest.approx(rate / (rate + 1.0 / width), abs=2 * ACCURACY)  # on both sides of the layer


def under_a_weak_elastic_net():
    """A problem, its equations, and a state whose weights grow from |u| = 13.75 on."""
    problem = random_problem(850292)
    limit = limit_of(problem)
    coarse = StationaryEquations(limit, Coordinates(limit.coordinates, 2))
    rough = coarse.state(polished(coarse, [np.array([0.01173, 0.0])])[0])
    resolving = StationaryEquations(limit, coarse.layers([rough]))
    return problem, resolving, resolving.state(polished(resolving, [rough.q])[0])


def test_weights_beyond_1e5_count_where_rare_u_carry_the_norm():
    """Half-line Gaussians give E[w^2|u] in closed form."""
    _, resolving, state = under_a_weak_elastic_net()
    c = state.coefficients
    # E = -k w^2/2 - (2/Lambda) u g w - l |w| on each half of the line
    k, l1 = (2.0 / c.diffusion * x for x in (0.5 * resolving.pull - state.G, 0.5 * resolving.pull))
    assert abs(c.g[1]) < 1e-15  # the other coordinate, with three values, has no part in the tilt but rounding
    ends = np.union1d(np.linspace(0.0, 60.0, 61), 0.5 * resolving.pull / abs(c.g[0]) + np.linspace(-1.0, 1.0, 81))
    x, weight = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(ends)[:, None]
    u, weight = (ends[:-1, None] + half * (x + 1)).ravel(), (half * weight).ravel()
    weight = 2.0 * weight * laplace(0, 0.5**0.5).pdf(u)
    square = weight @ [second_moment(k, l1, 2.0 / c.diffusion * c.g[0] * each) for each in u]
    claimed = resolving.check(state).residual
    assert abs(square - 1.0) < claimed < 1e-7  # the rounding of E, whose terms reach 1e6 where they cancel


@pytest.mark.slow  # 3 s for a second oracle of the state above
def test_residuals_of_weights_beyond_1e5_are_within_what_is_claimed(monkeypatch):
    problem, resolving, state = under_a_weak_elastic_net()
    c, claimed = state.coefficients, resolving.check(state).residual
    parts = {"q": ("feature", state.q), "g": ("feature", c.g)}
    numbers = {"multiplier": state.G, "Lambda": c.diffusion}
    monkeypatch.setattr("validation.contrastive.stationary_residual.ACCURACY", 1e-9)  # below the rounding it takes 60 s
    residual, own_error = stationary_residual(problem, xr.Dataset(parts | numbers))
    assert residual < claimed + own_error < 1e-6  # claimed below 1e-7, and five times the accuracy that is asked for


def second_moment(k, l1, tilt):
    """E[w^2] under exp(-k w^2/2 - tilt w - l1 |w|)."""
    with mp.workdps(40):
        mass = square = mp.mpf(0)
        for slope in (mp.mpf(l1) + tilt, mp.mpf(l1) - tilt):
            root = mp.sqrt(2 * mp.mpf(k))
            part = mp.sqrt(mp.pi) / root * mp.exp((slope / root) ** 2) * mp.erfc(slope / root)
            mass += part
            square += (part - slope * (1 - slope * part) / k) / k
        return float(square / mass)


def gaussian_state(laws, g):
    """Without a prior and at G = -1 weights have the mean -u.g and the variance Lambda/2, so that q = -g."""
    feature = '{{ hidden = {{ law = "rademacher" }}, coordinate = {{ law = "{}" }}, initial_overlap = 0.0 }}'
    problem = make_problem(features(", ".join(feature.format(law) for law in laws)), 'prior = { name = "none" }')
    g = np.array(g)
    parts = {"q": ("feature", -g), "g": ("feature", g)}
    return problem, xr.Dataset(parts | {"multiplier": -1.0, "Lambda": 2.0 - 2.0 * g @ g})


PAIRS = list(itertools.combinations_with_replacement([*LAWS, "rademacher"], 2))
GAINS = [(0.3, -0.5), (1e-4, 0.4), (0.0, 0.6), (0.0, 0.0)]


# Every pair of laws meets one g, and every g the same number of pairs, or one more; all of them take fifteen seconds.
@pytest.mark.parametrize(
    ("laws", "g"),
    [
        pytest.param(laws, g, marks=() if (i + j) % len(GAINS) == 0 else pytest.mark.slow)
        for i, laws in enumerate(PAIRS)
        for j, g in enumerate(GAINS)
    ],
)
def test_residuals_vanish_where_weights_are_gaussian(laws, g):
    residual, own_error = stationary_residual(*gaussian_state(laws, g))
    assert max(residual, own_error) < 1e-11  # the accuracy that is asked for


# Both of a kind, continuous or not, are averaged over by the same code; the test above meets all laws.
@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, marks=pytest.mark.slow if law in ("gaussian", "laplace") else ())
        for law in [*LAWS, "rademacher"]
    ],
)
def test_residuals_say_by_how_much_an_overlap_is_wrong(law):
    """At g_1 = 0, where averages are over one coordinate: they do not depend on q, which they are held against."""
    problem, exact = gaussian_state(("rademacher", law), (0.0, 0.6))
    found, _ = stationary_residual(problem, exact.assign(q=("feature", [0.0, 1e-6 - 0.6])))
    assert found == pytest.approx(1e-6, abs=1e-11)  # that accuracy again, beside an error that is 1e-6 by construction


def test_references_follow_the_prior():
    linear, other = (make_problem(f'prior = {{ name = "{name}" }}') for name in ("l2", "quartic"))
    assert solvers_of(linear, ["density", "dynamics"]) == ["density", "dynamics", "exact"]
    assert solvers_of(other, ["density", "dynamics"]) == ["density", "refined"]
    assert solvers_of(other, ["density"], eulerian=True) == ["density", "refined", "eulerian"]
    assert solvers_of(other, ["stationary"]) == ["stationary"]


def test_a_run_is_numbers_that_travel():
    run = run_one(8, "order_parameters", 1e-6)
    reference = run_one(8, "exact", 1e-6)
    assert compare(run, reference).error < 1e-9  # both by integrators at 1e-11 per step or better
    assert run.status == "complete"
    assert "Infinity" not in json.dumps(run.moments)


def test_runs_are_read_again_but_not_those_of_another_tolerance(tmp_path):
    path, identity = tmp_path / "runs.jsonl", {"tolerance": 1e-6, "time_limit": 60.0}
    row = {"seed": 3, "solver": "density"} | vars(HALF)
    path.write_text(f'{json.dumps(identity)}\n{json.dumps(row)}\n{{"seed": 4, "sol')
    assert regimes.read_runs(path, identity) == {(3, "density"): HALF}
    with pytest.raises(InputError, match="leave it out of --resume"):
        regimes.read_runs(path, identity | {"tolerance": 1e-8})
    with pytest.raises(InputError, match="cannot be read as runs"):
        regimes.read_runs(tmp_path, identity)


def test_ctrl_c_keeps_the_runs_that_ended_and_the_rest_is_done_later(tmp_path, monkeypatch, capsys):
    begun = []

    def calls(_, tasks, *others):
        begun.append(tasks)
        yield Outcome(tasks[0], HALF, "")
        raise KeyboardInterrupt

    monkeypatch.setattr(regimes, "bounded_calls", calls)
    monkeypatch.setattr(regimes, "warm_up", lambda *_: None)
    settings = {"seed": 3, "methods": ["density"], "eulerian": False, "tolerance": 1e-6, "time_limit": 60.0}
    settings |= {"output": tmp_path / "table.nc", "workers": 1, "merge": []}
    first = argparse.Namespace(**settings, problems=3, resume=False)
    assert regimes.run_all(first) == {(3, "density"): HALF}
    assert "interrupted after 1 of 6 runs" in capsys.readouterr().err
    assert [name == "density" for _, name in begun[0]] == [True] * 3 + [False] * 3  # references come last
    again = regimes.run_all(argparse.Namespace(**settings, problems=2, resume=True))
    assert sorted(again) == [(3, "density"), (4, "density")]
    kept = regimes.read_runs(tmp_path / "table.jsonl", {"tolerance": 1e-6, "time_limit": 60.0})
    assert kept == again


def test_ctrl_c_ends_the_warm_up_at_once(monkeypatch, capsys):
    begun = []

    def interrupted(*task):
        begun.append(task)
        return Run("interrupted", 0.1, [], [])

    monkeypatch.setattr(regimes, "run_one", interrupted)
    monkeypatch.delattr(regimes.os, "sched_setaffinity", raising=False)  # other tests keep their cores
    with pytest.raises(KeyboardInterrupt):
        regimes.warm_up(regimes.usable_cores()[0], ["density", "stationary"])
    assert len(begun) == 1
    assert "compiling by 6 runs" in capsys.readouterr().err


def test_blocks_of_seeds_are_put_together_and_nothing_runs_twice(tmp_path, monkeypatch):
    begun = []

    def calls(_, tasks, *others):
        begun.extend(tasks)
        return (Outcome(task, HALF, "") for task in tasks)

    monkeypatch.setattr(regimes, "bounded_calls", calls)
    monkeypatch.setattr(regimes, "warm_up", lambda *_: None)
    settings = {"methods": ["density"], "eulerian": False, "tolerance": 1e-6, "time_limit": 60.0, "workers": 1}
    blocks = [tmp_path / f"block_{seed}.nc" for seed in (3, 5)]
    for seed, output in zip((3, 5), blocks, strict=True):
        one = argparse.Namespace(**settings, seed=seed, problems=2, output=output, resume=False, merge=[])
        regimes.run_all(one)
    before = len(begun)
    rows = [path.with_suffix(".jsonl") for path in blocks]
    settings |= {"seed": 3, "output": tmp_path / "all.nc", "resume": False, "merge": rows}
    runs = regimes.run_all(argparse.Namespace(**settings, problems=5))
    assert {seed for seed, _ in begun[before:]} == {7}  # the others are known
    assert {seed for seed, _ in runs} == set(range(3, 8))
    assert table(runs, ["density"]).attrs["processor_time"] == len(runs)  # a second each


def test_the_page_says_what_became_of_all():
    runs = {(8, "density"): run_of(0.5), (8, "exact"): HALF, (3, "density"): run_of(0.5, status="failed: at t = 3: no")}
    data = table(runs, ["density"])
    arguments = argparse.Namespace(problems=2, seed=3, tolerance=1e-6, time_limit=60.0, methods=["density"])
    text = regimes.page(data, arguments, statements(data, 1e-6))
    assert "| density | failed | at t = #: no | 1 |" in text
    assert "| density | 2 | 1 | 0 | 1 | 0 | 0 |" in text


def test_a_seed_is_shown_as_a_problem_file(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["regimes", "--show", "7"])
    assert regimes.main() == 0
    assert parse_problem(capsys.readouterr().out).title == "Random problem 7"
