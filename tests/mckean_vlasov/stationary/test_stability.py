"""Growth rates of perturbations against the ODE, against a discretised operator, and against runs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import eigvals

from meanfield import find_stationary_states, solve_density
from meanfield.families.contrastive.limit import limit_of
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.mckean_vlasov.stationary import variables
from meanfield.mckean_vlasov.stationary.coordinates import Tilts
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.line import Line
from meanfield.mckean_vlasov.stationary.search import all_overlaps
from meanfield.mckean_vlasov.stationary.stability import stability
from meanfield.numerics.continuation import newton
from tests.example_problems import feature, features, gaussian, make_problem

HIDDEN = '{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }'

LINEAR = {
    "one": (),
    "l2": ('prior.name = "l2"',),
    "two": (features(feature(0.5), feature(0.3, gaussian(1.4))),),
}


def spectra(*lines, starts=None):
    """The equations, state and spectrum of all states, or of those that Newton's method reaches from `starts`."""
    equations = StationaryEquations(limit_of(make_problem(*lines)))
    overlaps = all_overlaps(equations) if starts is None else [newton(equations, np.array(q)) for q in starts]
    for q in overlaps:
        state = equations.state(q)
        yield equations, state, stability(equations, state)


@pytest.mark.parametrize("lines", LINEAR.values(), ids=LINEAR)
def test_eigenvalues_of_the_ode_belong_to_the_spectrum(lines):
    check_linear(spectra(*lines))


def test_three_features_agree_with_the_ode():
    lines = features(feature(0.5), feature(0.3), feature(0.2, coordinate="rademacher"))
    check_linear(spectra(lines, starts=[[0.0, 0.0, 0.0], [0.67, 0.69, 0.01], [0.6, -0.5, 0.55]]))


def check_linear(found_spectra):
    for equations, state, spectrum in found_spectra:
        h, closure = 1e-4, equations.limit.closure
        jacobian = np.array(
            [(rate(closure, state.q + h * e) - rate(closure, state.q - h * e)) / (2 * h) for e in np.eye(len(state.q))]
        ).T
        expected = sorted(np.linalg.eigvals(jacobian).real, reverse=True)
        found = spectrum.eigenvalues.real
        for value in expected[: np.isfinite(found).sum()]:
            assert np.nanmin(np.abs(found - value)) < 3e-7  # differences with step 1e-4, and g with nine digits
        assert spectrum.verdict == (1 if expected[0] < 0 else -1)
        G = state.G - equations.pull * (equations.limit.prior.name == "l2")
        assert spectrum.gap == pytest.approx(-G, rel=1e-8)  # Ornstein-Uhlenbeck: -G' itself, from integrals


def test_a_function_at_nodes_of_negative_weight_alone_adds_nothing():
    """Laws of u.g that are gathered may have such weights."""
    equations = StationaryEquations(limit_of(make_problem()))
    line = Line(equations, equations.state(np.array([0.4])))
    line._weight = np.array([1.0 + 1e-9, -1e-9])
    value, slope = (np.array([0.0, 1.0])[:, None, None] * each for each in line.w)
    assert line.average(value**2) < 0.0
    values, slopes = np.empty((2, 1, *value.shape))
    with np.errstate(all="raise"):
        assert not line._append(values, slopes, 0, (value, slope))


@pytest.fixture(scope="module")
def uniform_coordinates():
    """A state with two uniform coordinates, and its spectrum by all nodes, those of one tilt taken together."""
    uniform = feature(0.5).replace("gaussian", "uniform")
    limit = limit_of(make_problem(features(uniform, uniform), 'prior = { name = "quartic", strength = 0.3 }'))
    equations = StationaryEquations(limit)
    state = equations.state(newton(equations, np.array([0.5, 0.3])))
    tilts, place = np.unique(np.round(state.tilts.tilt, 12), return_inverse=True)
    which = np.eye(len(tilts))[place].T
    sums = which @ state.tilts.weight, which @ state.tilts.mean, np.tensordot(which, state.tilts.second, 1)
    moments, status = equations._moments(state.G, state.coefficients.diffusion, tilts)
    assert status == 0
    together = state._replace(tilts=Tilts(tilts, *sums), moments=moments)
    return equations, state, stability(equations, together)


@pytest.mark.slow  # 2209 nodes, where those of one tilt are 47
def test_nodes_of_one_tilt_may_be_taken_together(uniform_coordinates):
    equations, state, together = uniform_coordinates
    alone = stability(equations, state)
    assert alone.eigenvalues == pytest.approx(together.eigenvalues, rel=1e-9)  # rounding


def test_gathered_nodes_add_no_rate_that_does_not_exist(uniform_coordinates):
    """Their weights of both signs do, here a second one of -0.128 in the place of -0.159."""
    equations, state, expected = uniform_coordinates
    few = equations.on_a_line(state)
    assert few.tilts.weight.min() < 0.0
    found = variables._stability(equations, state)
    assert found.eigenvalues == pytest.approx(expected.eigenvalues, rel=1e-2)  # digits of merged nodes
    assert not stability(equations, few).agrees_with(expected)


def test_rates_of_gathered_nodes_that_fail_are_those_of_merged_ones(monkeypatch, uniform_coordinates):
    """Weights below 0 of a gathered law may leave functions without a length, which no eigenvalues tell."""
    equations, state, expected = uniform_coordinates
    whole = Tilts.on_a_line
    monkeypatch.setattr(
        Tilts, "on_a_line", lambda t, ends: replace(gathered := whole(t, ends), second=-gathered.second)
    )
    found = variables._stability(equations, state)
    assert found.eigenvalues[0] == pytest.approx(expected.eigenvalues[0], rel=1e-3)  # the digits that are promised
    assert found.gap == pytest.approx(expected.gap, rel=1e-3)  # likewise


@pytest.mark.parametrize("prior", ["none", "l1", "quartic"])
def test_resolvents_solve_their_equation(prior):
    """(rate - L) h = L k in weak form, for a v that is no polynomial."""
    problem = make_problem(f'prior = {{ name = "{prior}", strength = 0.3 }}')
    equations = StationaryEquations(limit_of(problem))
    state = equations.state(np.array([0.4]))
    line, D, rate = Line(equations, state), 0.5 * state.coefficients.diffusion, 0.02
    v, v_slope = np.sin(1.3 * line.points), 1.3 * np.cos(1.3 * line.points)
    functions = [line.w, line.square, line.energy]
    for (k, k_slope), (h, h_slope) in zip(functions, line.resolvents(functions, rate), strict=True):
        source = D * line.average(k_slope * v_slope)
        found = -rate * line.average(h * v) - D * line.average(h_slope * v_slope)
        assert found == pytest.approx(source, abs=1e-6 * np.sqrt(line.average(k**2)))  # DEGREE


def discretised(equations, state, cells, reach=6.0):
    """Eigenvalues of Scharfetter-Gummel cells with the full coupling through q, E[w^2], r and G, for atomic u."""
    c, t, tau = state.by_averages, state.tilts, equations.limit.learning_rate
    edges = np.linspace(-reach, reach, cells + 1)
    w, h, D = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0], 0.5 * c.diffusion
    phi, steps = equations.limit.prior.force(w), equations.limit.prior.potential_steps(w)
    bernoulli = lambda z: np.where(np.abs(z) < 1e-8, 1 - z / 2, z / np.expm1(np.where(z == 0, 1.0, z)))  # noqa: E731

    def flow(G, g, diffusion, u):
        """The matrix of dP/dt for one u."""
        D = 0.5 * diffusion
        z = (0.5 * G * np.diff(w * w) - (u @ g) * h - tau * steps) / D
        up, down = D / h**2 * bernoulli(-z), D / h**2 * bernoulli(z)
        matrix = np.zeros((cells, cells))
        i = np.arange(cells - 1)
        matrix[i, i] -= up
        matrix[i + 1, i] += up
        matrix[i, i + 1] += down
        matrix[i + 1, i + 1] -= down
        return matrix

    nodes = t.mean / t.weight[:, None]
    P = []
    for u in nodes:
        z = (0.5 * state.G * np.diff(w * w) - (u @ c.g) * h - tau * steps) / D
        p = np.exp(np.concatenate([[0], np.cumsum(z)]) - np.cumsum(z).max())
        P.append(p / (p.sum() * h))
    rows_q = np.concatenate([t.weight[n] * h * np.outer(nodes[n], w) for n in range(len(nodes))], axis=1)
    row_r = np.concatenate([t.weight[n] * h * w * phi for n in range(len(nodes))])
    row_norm = np.concatenate([t.weight[n] * h * w * w for n in range(len(nodes))])
    size = len(nodes) * cells
    whole = np.zeros((size, size))
    growth = np.zeros(len(state.x)) if c.growth_slope is None else c.growth_slope
    by_q, by_G = np.zeros((size, len(state.x))), np.zeros(size)
    e = 1e-5
    for n, u in enumerate(nodes):
        block = slice(n * cells, (n + 1) * cells)
        whole[block, block] = flow(state.G, c.g, c.diffusion, u)
        by_G[block] = (flow(state.G + e, c.g, c.diffusion, u) - flow(state.G - e, c.g, c.diffusion, u)) @ P[n] / (2 * e)
        for k in range(len(state.x)):
            dg, dD, dG = e * c.g_slope[:, k], e * c.diffusion_slope[k], e * growth[k]
            ahead = flow(state.G + dG, c.g + dg, c.diffusion + dD, u)
            by_q[block, k] = (ahead - flow(state.G - dG, c.g - dg, c.diffusion - dD, u)) @ P[n] / (2 * e)
    if state.is_free:
        return np.sort(eigvals(whole + by_q @ np.vstack([rows_q, row_norm])).real)[::-1]
    G_by_q = c.g + state.q @ c.g_slope - 0.5 * c.diffusion_slope
    whole += (by_q + np.outer(by_G, G_by_q)) @ rows_q + np.outer(by_G, tau * row_r)
    # move the eigenvalue 2 G of the direction that changes the norm far down, as theory.md allows
    whole -= 20.0 * np.outer(by_G, row_norm)
    return np.sort(eigvals(whole).real)[::-1]


@pytest.mark.parametrize(
    ("prior", "strength"),
    [
        ("l1", 0.3),
        pytest.param("none", 1.0, marks=pytest.mark.slow),  # its rates are those of the ODE, see above
        pytest.param("quartic", 0.5, marks=pytest.mark.slow),
        pytest.param("smooth_l1", 0.5, marks=pytest.mark.slow),
    ],
)
def test_eigenvalues_agree_with_a_discretised_operator(prior, strength):
    lines = (
        features(feature(0.5, coordinate="rademacher")),
        "model = { learning_rate = 0.2, batch_size = 4 }",
        f'prior = {{ name = "{prior}", strength = {strength} }}',
    )
    for equations, state, spectrum in spectra(*lines):
        coarse, fine = (discretised(equations, state, cells) for cells in (160, 320))
        # each node has an eigenvalue 0, that of its mass
        leading = [rates[np.abs(rates) > 1e-7][0] for rates in (coarse, fine)]
        extrapolated = (4 * leading[1] - leading[0]) / 3
        error = abs(leading[1] - extrapolated)
        assert spectrum.growth_rate == pytest.approx(extrapolated, abs=0.1 * error + 1e-7)  # order 4 is left


@pytest.mark.slow  # rates are held against a discretised operator above, and a run against its states below
@pytest.mark.parametrize(
    ("prior", "strength"),
    [("quartic", 0.5), ("l1", 0.3)],
)
def test_runs_that_start_beside_a_state_grow_or_decay_at_its_rate(prior, strength):
    lines = (
        "model = { learning_rate = 0.05, batch_size = 10 }",
        f'prior = {{ name = "{prior}", strength = {strength} }}',
        "density = { cells = 400, feature_nodes = 47, half_width = 11.0 }",
    )
    states = find_stationary_states(make_problem(*lines))
    assert states["stability"].values.tolist() == [1, -1, 1]
    growth = float(states["growth_rate"][1])
    assert states["q"].values[1, 0] == pytest.approx(0, abs=1e-12)  # by symmetry
    stop = 5.0 / growth
    run = solve_density(
        make_problem(features(feature(1e-4, HIDDEN)), *lines, f"time = {{ stop = {stop}, outputs = 51 }}")
    )
    q = run["q"].values[:, 0]
    # after 4 e-foldings other perturbations have died out, and q is still below 0.02
    assert np.log(q[50] / q[40]) / (stop / 5) == pytest.approx(growth, rel=3e-3)  # of order q^2, and the second rate
    start = 0.98 * float(states["q"][2, 0])
    near = solve_density(make_problem(features(feature(start, HIDDEN)), *lines, "time = { stop = 60.0, outputs = 3 }"))
    assert float(near["q"][-1, 0]) == pytest.approx(float(states["q"][2, 0]), abs=1e-6)  # the density's own accuracy


def test_a_run_beside_the_middle_state_of_a_bistable_problem_leaves_it_at_its_rate():
    """Second moment 1: q = 0 and |q| near 1 are stable, and what lies between is not."""
    lines = (
        "model = { learning_rate = 0.05, batch_size = 10 }",
        'prior = { name = "quartic", strength = 0.5 }',
        "density = { cells = 300, feature_nodes = 31, half_width = 11.0, order = 2 }",
    )
    hidden = '{ law = "three_point", second_moment = 1.0, fourth_moment = 6.05 }'
    states = find_stationary_states(make_problem(features(feature(0.3, hidden)), *lines))
    assert states["stability"].values.tolist() == [1, -1, 1, -1, 1]
    middle = float(states["q"][3, 0])
    for factor, end in ((0.9, 0.0), (1.1, float(states["q"][4, 0]))):
        table = feature(factor * middle, hidden)
        run = solve_density(make_problem(features(table), *lines, "time = { stop = 200.0, outputs = 3 }"))
        # Towards q = 0 at 0.026 per unit of time, from about t = 30.
        assert float(run["q"][-1, 0]) == pytest.approx(end, abs=1e-2)  # see the line above
