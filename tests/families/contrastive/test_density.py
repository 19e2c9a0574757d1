"""The density solver against exact solutions, its order of accuracy, conservation, stationary states and failures."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import root
from scipy.stats import norm

from meanfield.errors import InputError
from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.ingredients.laws import GaussianResidual
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from tests.example_problems import feature, features, gaussian, make_problem

L2 = 'prior.name = "l2"'
FAST = ("model.learning_rate = 0.1", "time.stop = 5.0", "time.outputs = 6")
TWO_FEATURES = features(feature(0.5), feature(0.3))
RADEMACHER = features(feature(0.5), feature(0.3, coordinate="rademacher"))
SMALL = ("density = { cells = 120, feature_nodes = 9, steps = 80 }", "time.stop = 4.0", "time.outputs = 5")


def cell_width(run):
    return float(edges_of(run)[1] - edges_of(run)[0])


def exact_density(run, q):
    """Cell averages of w|u ~ N(u.q, 1 - |q|^2) (theory.md, section 2), shape (time, node, w)."""
    edges, u, gaussian = edges_of(run), nodes_of(run)[0], GaussianResidual()
    return np.array([gaussian.cell_average(edges, u @ p, np.sqrt(1 - p @ p)) for p in q])


def largest_l1_error(run, exact):
    """Largest L1 distance of conditional densities over output times and nodes."""
    return cell_width(run) * np.abs(run.P.values - exact).sum(axis=2).max()


def errors_of_linear_problem(order, cells, steps):
    grid = f"cells = {cells}, steps = {steps}, half_width = 10.0, feature_nodes = 21"
    problem = make_problem(L2, *FAST, f"density = {{ order = {order}, {grid} }}")
    run, q = solve_density(problem), solve_order_parameters(problem).q.values
    assert run.status == "complete"
    return np.array([np.abs(run.q.values - q).max(), largest_l1_error(run, exact_density(run, q))])


def test_default_settings_reproduce_the_exact_solution():
    problem = make_problem(L2)
    run, exact = solve_density(problem), solve_order_parameters(problem)
    assert run.status == "complete"
    assert np.abs(run.q - exact.q).max() <= 1e-6  # the default tolerance
    assert run.norm.values == pytest.approx(1.0, abs=1e-6)  # E[w^2] is as accurate as q
    cells = np.diff(edges_of(run))
    distance = (np.abs(run.P.values - exact_density(run, exact.q.values)) @ cells) @ run.u_weight.values
    assert (distance <= run.P_error + 1e-12).all()  # what it promises, and rounding
    assert run.P_error.max() < 1e-4  # cells of 0.05, where the conditional density is as narrow as 0.25


def test_order_two_in_the_cell_width():
    errors = [errors_of_linear_problem(2, cells, 2000) for cells in (160, 320)]
    orders = np.log2(errors[0] / errors[1])
    assert orders == pytest.approx([2.0, 2.0], abs=0.1)  # asked for; dt is so small that its error is below 0.1 %


def test_order_two_in_the_time_step():
    def solve(steps):
        settings = f"density = {{ order = 2, cells = 200, steps = {steps}, half_width = 10.0, feature_nodes = 21 }}"
        return solve_density(make_problem(L2, *FAST, settings))

    limit = solve(5120)  # the same cells; its own error is 1/1000 of the finer one below
    errors = [
        np.array([np.abs(run.q - limit.q).max(), largest_l1_error(run, limit.P.values)])
        for run in (solve(80), solve(160))
    ]
    orders = np.log2(errors[0] / errors[1])
    assert orders == pytest.approx([2.0, 2.0], abs=0.1)  # asked for


def test_order_four_when_cells_and_steps_are_refined_together():
    errors = [errors_of_linear_problem(4, 4 * steps, steps) for steps in (40, 80, 160)]
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders.min() > 3.5  # 4 in the limit of fine cells and steps; 3 would mean an error odd in dt


def test_kink_on_a_face_keeps_order_two():
    q = [
        solve_density(
            make_problem(
                'prior = { name = "l1", strength = 3.0 }',
                *FAST,
                f"density = {{ order = 2, cells = {cells}, steps = 500, half_width = 14.0, feature_nodes = 31 }}",
            )
        ).q.values[-1, 0]
        for cells in (200, 400, 800, 1600)
    ]
    first, second, third = np.diff(q)
    assert np.log2(first / second) == pytest.approx(2.0, abs=0.2)  # differences of an error c h^2 + O(h^4)
    assert np.log2(second / third) == pytest.approx(2.0, abs=0.1)  # the same, with a quarter of O(h^4)


@pytest.mark.parametrize("coordinates", [TWO_FEATURES, RADEMACHER], ids=["gaussian", "rademacher"])
def test_two_features_without_prior_stay_gaussian(coordinates):
    problem = make_problem(
        coordinates, "time.stop = 4.0", "time.outputs = 5", "density = { cells = 800, feature_nodes = 7, steps = 160 }"
    )
    run, exact = solve_density(problem), solve_order_parameters(problem)
    assert np.abs(run.q - exact.q).max() < 2e-6  # order 4 at about the default cell width and time step
    assert largest_l1_error(run, exact_density(run, exact.q.values)) < 1e-4  # the same
    assert run.r.values == pytest.approx(0.0, abs=0)  # no prior, no work: exactly


@pytest.mark.parametrize("prior", ["none", "l1", "l2", "quartic"])
def test_mass_and_positivity_at_default_settings(prior):
    problem = make_problem(f'prior.name = "{prior}"', "time = { stop = 5.0, outputs = 11 }")
    check_conservation(solve_density(problem), norm_error=1e-5)


@pytest.mark.parametrize("prior", ["none", "l1", "l2", "quartic"])
@pytest.mark.parametrize("coordinates", [TWO_FEATURES, RADEMACHER], ids=["gaussian", "rademacher"])
def test_mass_and_positivity_with_two_features(coordinates, prior):
    check_conservation(solve_density(make_problem(f'prior.name = "{prior}"', coordinates, *SMALL)), norm_error=5e-3)


def check_conservation(run, norm_error):
    assert run.status == "complete"
    assert run.mass.values == pytest.approx(1.0, abs=1e-12)  # fluxes cancel: rounding over all steps
    cell_mass = run.P.values.sum(axis=2) * cell_width(run)
    assert cell_mass == pytest.approx(1.0, abs=1e-12)  # each node is normalised: rounding
    assert run.P.values.min() >= -1e-14  # rounding
    assert np.abs(run.norm.values - 1).max() < norm_error  # the error indicator of theory.md, section 2
    q_of_density = np.einsum("tnw,n,nf,w->tf", run.P.values, run.u_weight, nodes_of(run)[0], run.w) * cell_width(run)
    assert run.q.values == pytest.approx(q_of_density, abs=norm_error)  # P and q are extrapolated separately


@pytest.mark.parametrize("nodes", range(2, 10))
def test_few_feature_nodes_suffice_for_the_linear_problem(nodes):
    problem = make_problem(L2, *FAST, f"density.feature_nodes = {nodes}")
    run = solve_density(problem)
    assert run.sizes["u"] == nodes
    # conditional means are linear in u, and the second moment of u is exact: the default 1e-6 holds for any number
    assert np.abs(run.q - solve_order_parameters(problem).q).max() < 1e-6


def test_mirrored_problem_has_the_mirrored_density():
    """(w, u) -> (-w, -u) leaves the dynamics unchanged."""
    run = solve_density(make_problem(RADEMACHER, 'prior = { name = "l1", strength = 2.0 }', *SMALL))
    assert run.u.values == pytest.approx(-run.u.values[::-1], abs=1e-14)  # nodes are symmetric up to rounding
    assert run.P.values == pytest.approx(run.P.values[:, ::-1, ::-1], abs=1e-11)  # elimination runs backwards: rounding


def test_drift_gain_and_diffusion_are_those_of_the_closed_form():
    run = solve_density(make_problem(*SMALL))
    g, diffusion = quadratic_closure(run.q.values[:, 0], 0.02, 10)
    assert run.g.values[:, 0] == pytest.approx(g, rel=1e-12)  # the same formula at the same q: rounding
    assert run.Lambda.values == pytest.approx(diffusion, rel=1e-12)  # the same formula at the same q: rounding


def quadratic_closure(q, tau, m, m2=1.1, m4=6.05):
    """g and Lambda of one three-point feature (theory.md, section 8)."""
    nu, kappa, beta = m2 - 1, m4 - 3, m4**2 / m2 - 15
    sixth = beta * q**6 + 15 * kappa * q**4 * (1 - q**2) + 45 * nu * q**2 * (1 - q**2) ** 2 + 15
    return -4 * tau * q * (kappa * q**2 + 3 * nu * (1 - 2 * q**2)), 16 * tau**2 / m * sixth


@pytest.mark.parametrize(
    ("strength", "potential", "force", "prior"),
    [(2.0, np.abs, np.sign, "l1"), (0.5, lambda w: w**4 / 4, lambda w: w**3, "quartic")],
    ids=["l1", "quartic"],
)
def test_long_run_reaches_the_explicit_stationary_state(strength, potential, force, prior):
    """P(w|u) ~ exp((2/Lambda)(G w^2/2 - u g w - tau Phi)) with E[u w] = q and E[w^2] = 1 (theory.md, section 6)."""
    tau = 0.1
    x, weight = np.polynomial.legendre.leggauss(300)
    w, dw = np.concatenate([7 * x - 7, 7 * x + 7]), np.tile(7 * weight, 2)  # two panels that meet at the kink
    u = np.linspace(-7, 7, 141)
    probability = norm.pdf(u) / norm.pdf(u).sum()

    def density(q, G):
        g, diffusion = quadratic_closure(q, tau, 10)
        exponent = 2 / diffusion * (G * w**2 / 2 - u[:, None] * g * w - tau * strength * potential(w))
        P = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        return P / (P @ dw)[:, None]

    def excess(unknowns):
        P = density(*unknowns)
        return (probability * u) @ P @ (w * dw) - unknowns[0], probability @ P @ (w**2 * dw) - 1

    run = solve_density(
        make_problem(
            f'prior = {{ name = "{prior}", strength = {strength} }}',
            "model.learning_rate = 0.1",
            "time = { stop = 150.0, outputs = 4 }",
            "density = { steps = 1800, cells = 500, half_width = 12.0, feature_nodes = 61 }",
        )
    )
    assert run.status == "complete"
    assert abs(run.q[-1] - run.q[-2]).max() < 1e-9  # 50 time units on, it has stopped moving
    q_end, r_end = float(run.q[-1, 0]), float(run.r[-1])
    g, diffusion = quadratic_closure(q_end, tau, 10)
    solution = root(excess, [0.99 * q_end, q_end * g + tau * r_end - diffusion / 2], tol=1e-13)
    assert solution.success
    q = solution.x[0]
    r = strength * probability @ density(*solution.x) @ (w * force(w) * dw)
    assert q_end == pytest.approx(q, abs=1e-6)  # order 4 at twice the default cell width; no error of the time step
    assert r_end == pytest.approx(r, abs=1e-6)  # the same


def test_failure_of_narrow_cells_names_time_quantity_and_remedy():
    run = solve_density(make_problem("density.half_width = 5.0"))
    assert run.status.startswith("failed: at t = 0: a conditional probability of")
    assert "outermost cells at |w| = 5" in run.status
    assert "raise density.half_width" in run.status
    assert np.isnan(run.q).all()


def test_cells_that_cannot_hold_the_start_give_no_number():
    """Cells a hundred times as wide as the law of the weights."""
    result = solve_density(make_problem("density = { cells = 20, half_width = 1e3 }"))
    assert result.status.startswith("failed: at t = 0: E[w^2] = 2500 in the density")
    assert np.isnan(result.q).all()


def test_outputs_before_a_failure_are_kept_and_later_ones_are_nan():
    settings = ('prior = { name = "l1", strength = 10.0 }', "density = { half_width = 10.0, cells = 200, order = 2 }")
    run = solve_density(make_problem(*settings))
    reached = int(np.isfinite(run.q[:, 0]).sum())
    assert 1 < reached < run.sizes["time"]
    assert run.status.startswith(f"failed: at t = {float(run.time[reached]):.6g}: ")
    for name in ("q", "r", "norm", "mass", "P", "g", "Lambda"):
        assert np.isfinite(run[name].values[:reached]).all()
        assert np.isnan(run[name].values[reached:]).all()


@pytest.mark.parametrize("strength", [3.0, 10.0])
def test_default_cells_widen_until_they_hold_the_tails(strength):
    lines = ("time = { stop = 10.0, outputs = 6 }", "density = { order = 2, steps = 200 }")
    narrow = solve_density(make_problem(*lines))
    wide = solve_density(make_problem(*lines, f'prior = {{ name = "l1", strength = {strength} }}'))
    assert wide.status == "complete"
    assert edges_of(wide)[-1] > 1.4 * edges_of(narrow)[-1]
    edges = wide.P.values[:, :, [0, -1]].max() * cell_width(wide)
    assert edges < 1e-9  # the largest probability that the solver leaves in an outermost cell
    assert cell_width(wide) == pytest.approx(cell_width(narrow), rel=0.01)  # more cells, not wider ones; even number


@pytest.mark.parametrize("settings", ['{ scheme = "eulerian" }', "{ steps = 50 }", "{ steps = 2000, order = 2 }"])
@pytest.mark.parametrize("learning_rate", [1e3, pytest.param(1e5, marks=pytest.mark.slow), 1e6])
def test_learning_rates_too_large_for_the_time_step_fail(learning_rate, settings):
    run = solve_density(make_problem(f"model.learning_rate = {learning_rate}", f"density = {settings}"))
    assert run.status.startswith("failed: at t = ")
    assert "lower model.learning_rate" in run.status
    assert np.isnan(run.q.values[-1]).all()
    assert np.isnan(run.P.values[-1]).all()


def test_too_few_steps_are_noticed_even_if_the_density_swings_back():
    """Midpoint steps far too long mirror the density at its stationary state; after two of them it is back."""
    lines = ("model.learning_rate = 16.0", "time.outputs = 2", "density = { order = 2, steps = 2 }")
    run = solve_density(make_problem(*lines))
    assert run.status != "complete" or abs(run.q[-1, 0]) < 0.1  # the exact overlap is zero at once


def test_strong_prior_does_not_blow_up_the_norm():
    settings = "density = { cells = 400, half_width = 9.6, steps = 1600 }"
    run = solve_density(
        make_problem('prior = { name = "quartic", strength = 10.0 }', "time = { stop = 10.0, outputs = 11 }", settings)
    )
    assert run.status == "complete"
    assert np.abs(run.norm - 1).max() < 2e-3  # order 4 in cells twice as wide as the default, at a steep start
    assert float(run.r[-1]) == pytest.approx(11.4196, abs=1e-3)  # 800 and 1600 cells; SGD at N = 1500 has 11.411(17)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (features(feature("random")), "random"),
        (features(*[feature(0.3)] * 4), "4 of them"),
    ],
)
def test_what_the_density_cannot_do_is_refused(lines, message):
    with pytest.raises(InputError, match=message):
        solve_density(make_problem(lines))


def test_unknown_backend_is_refused():
    with pytest.raises(InputError, match="numba, fipy"):
        solve_density(make_problem(), backend="fenics")


def test_a_feature_that_can_be_learnt_grows():
    """The sign of the drift: with the printed one q would decay (theory.md, section 2)."""
    problem = make_problem(
        features(feature(0.1, gaussian(1.2))),
        "model = { learning_rate = 0.01, batch_size = 100 }",
    )
    q = solve_density(problem).q.values[:, 0]
    m2, nu = 1.2, 0.2

    def rate(_, Q):  # theory.md, section 8, with the moments 1, 3, 15 times powers of m2
        kappa, beta = 3 * m2**2 - 3, 15 * m2**3 - 15
        sixth = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
        return 0.08 * (1 - Q) * (kappa * Q**2 + 3 * nu * Q * (1 - 2 * Q)) - 16e-6 * Q * sixth

    Q = solve_ivp(rate, (0, 20), [0.01], method="DOP853", rtol=1e-12, atol=1e-14).y[0, -1]  # a reference: rounding
    assert q[-1] > 0.15
    assert q[-1] == pytest.approx(np.sqrt(Q), abs=1e-6)  # default accuracy
