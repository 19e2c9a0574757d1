"""Random starts against closed forms, the other way to find the separatrix, and SGD."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.stats import kstest

import meanfield
from meanfield import InputError
from meanfield.families.contrastive.order_parameters.table import TABLE_TOLERANCE, BallTable
from meanfield.families.contrastive.random_starts.outcomes import langevin_outcomes, limit_outcomes, uniform_overlaps
from meanfield.families.contrastive.random_starts.separatrix import find_separatrix, selection_probability
from meanfield.families.contrastive.random_starts.start import escape_law, random_start
from tests.example_problems import feature, features, gaussian, make_problem

TAU, M = 0.2, 10
MODEL = f"model = {{ learning_rate = {TAU}, batch_size = {M} }}"
MOMENTS = np.array([[4.0, 60.0], [3.0, 60.0]])


def three_point(second, fourth):
    return f'{{ law = "three_point", second_moment = {second}, fourth_moment = {fourth} }}'


def problem_with(*hidden, more=()):
    return make_problem(MODEL, features(*[feature("random", law) for law in hidden]), *more)


TWO = [three_point(*pair) for pair in MOMENTS]


@pytest.fixture(scope="module")
def two():
    return random_start(problem_with(*TWO))


@pytest.fixture(scope="module")
def separatrix(two):
    return find_separatrix(two)


def closed_form(q, moments=MOMENTS):
    """Theory.md, section 8: the ODE of one or two three-point features, quadratic activation, no noise."""
    second, fourth = moments.T
    nu, kappa, beta = second - 1, fourth - 3, fourth**2 / second - 15
    Q, rest = q**2, 1 - (q**2).sum()
    others = (nu * Q).sum() - nu * Q
    g = -4 * TAU * q * (kappa * Q + 3 * nu * (1 - 2 * Q) + 3 * nu * others)
    sixth = 15 + np.sum(beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2)
    if len(q) == 2:
        other = Q[::-1]
        sixth += 15 * (kappa * nu[::-1] * Q**2 * other).sum() + 90 * nu.prod() * Q.prod() * rest
    return q * (q @ g - 8 * TAU**2 / M * sixth) - g


def test_growth_rates_and_amplitudes_are_those_of_the_closed_form(two):
    """j = 12 tau (m2 - 1) - 120 tau^2/m; S(0) = (tau^2/m) 16 <e^6> m2, as alpha + beta = 4 e^3 there."""
    second = MOMENTS[:, 0]
    rates = 12 * TAU * (second - 1) - 120 * TAU**2 / M
    assert two.growth_rates == pytest.approx(rates, rel=1e-9)  # differences of the field
    assert two.covariance == pytest.approx(np.diag(1 + TAU**2 / M * 240 * second / (2 * rates)), abs=1e-9)  # the same


def test_views_with_noise_add_to_the_amplitudes():
    """S(0) = (tau^2/m) [<(alpha + beta)^2> m2 + <alpha^2> v11 + <beta^2> v22], as v12 = 0, by Isserlis' theorem.

    alpha = 2 y^2 x and beta = 2 x^2 y with Gaussian x and y of variances 1 + v11, 1 + v22 and covariance 1.
    """
    start = random_start(problem_with(TWO[0], more=("augmentation.variance = [0.5, 0.3]",)))
    x, y = 1.5, 1.3
    alpha, beta, both = 4 * (3 * y**2 * x + 12 * y), 4 * (3 * x**2 * y + 12 * x), 4 * (9 * x * y + 6)
    noise = TAU**2 / M * (4.0 * (alpha + beta + 2 * both) + 0.5 * alpha + 0.3 * beta)
    # differences of the field
    assert start.covariance[0, 0] - 1 == pytest.approx(noise / (2 * start.growth_rates[0]), rel=1e-8)


def test_hidden_variables_that_depend_on_each_other_grow_along_their_principal_axes():
    """J0 = 12 tau (C - 1) - 120 tau^2/m for covariance C: theory.md, section 8, turned."""
    values = np.array([[2.0, 1.5], [-2.0, -1.5], [1.0, -2.0], [-1.0, 2.0]])
    problem = make_problem(
        MODEL,
        'features = [{ initial_overlap = "random" }, { initial_overlap = "random" }]',
        f'hidden = {{ law = "discrete", values = {values.tolist()}, probabilities = [0.3, 0.3, 0.2, 0.2] }}',
    )
    second, vectors = np.linalg.eigh((values.T * [0.3, 0.3, 0.2, 0.2]) @ values)
    start = random_start(problem)
    assert start.growth_rates == pytest.approx(12 * TAU * (second[::-1] - 1) - 120 * TAU**2 / M, rel=1e-9)  # as above
    assert np.abs(start.directions.T @ vectors[:, ::-1]) == pytest.approx(np.eye(2), abs=1e-9)  # as above
    with pytest.raises(InputError, match="sign of an overlap matters"):
        find_separatrix(start)


def test_the_constant_of_the_escape_time_is_an_integral():
    """c = log q_e + int_0^q_e (j/b - 1/q) dq."""
    law = escape_law(random_start(problem_with(three_point(3.0, 20.0))), 0.5)
    moments = np.array([[3.0, 20.0]])

    def excess(q):
        return law.rate / closed_form(np.array([q]), moments)[0] - 1 / q

    right = np.log(0.5) + quad(excess, 1e-4, 0.5, epsabs=1e-10)[0]  # the rest is about 1e-8
    assert law.constants == pytest.approx([right, right], abs=3e-8)  # that, and extrapolation from 5e-5


def test_the_law_of_the_escape_time_is_consistent():
    law = escape_law(random_start(problem_with(three_point(3.0, 20.0))), 0.5)
    for probability in (1e-3, 0.5, 0.999):
        assert law.distribution(law.quantile(probability, 1e5), 1e5) == pytest.approx(
            probability, rel=1e-9
        )  # tolerance
    t = np.linspace(0.0, 6.0, 2001)
    integral = np.trapezoid(law.density(t, 1e3), t)
    assert integral == pytest.approx(law.distribution(6.0, 1e3) - law.distribution(0.0, 1e3), abs=1e-5)  # trapezoids
    shift = law.quantile(0.5, 1e8) - law.quantile(0.5, 1e4)
    assert shift == pytest.approx(np.log(1e4) / (2 * law.rate), rel=1e-9)  # log(N)/(2 j): rounding


def test_escape_times_of_sgd_have_that_law():
    """False alarm once in 1000 times: Kolmogorov and Smirnov; at N = 1000 the limit is off by less than it sees."""
    law = escape_law(random_start(problem_with(three_point(3.0, 20.0))), 0.5)
    particles = 'particles = { method = "chain", dimension = 1000, replicas = 500, escape_overlap = 0.5, seed = 1 }'
    more = ("time = { stop = 2.5, outputs = 2 }", particles)
    run = meanfield.simulate_sgd(problem_with(three_point(3.0, 20.0), more=more))
    assert kstest(run.escape_time.fillna(np.inf), lambda t: law.distribution(t, 1000)).pvalue > 1e-3


def test_K_separates_forward_paths_to_six_digits(separatrix):
    """On the closed form: paths that start beside |q_2| = K |q_1|^p end in different states."""
    p, a = separatrix.exponent, 1e-5  # where log K is off by about |q|^2 = 1.4e-7

    def winner(log_K):
        q = np.array([a, np.exp(log_K) * a**p])
        path = solve_ivp(lambda t, q: closed_form(q), (0, 9), q, "DOP853", rtol=1e-11, atol=1e-14)
        return np.abs(path.y[:, -1]).argmax()

    log_K = np.log(separatrix.K)
    assert (winner(log_K - 5e-7), winner(log_K + 5e-7)) == (0, 1)
    assert separatrix.K_error < 5e-7 * separatrix.K
    assert (separatrix.fast, separatrix.slow) == (0, 1)
    assert closed_form(separatrix.saddle) == pytest.approx([0, 0], abs=1e-10)  # Newton's method


def test_K_does_not_depend_on_the_order_of_features(separatrix):
    swapped = find_separatrix(random_start(problem_with(*TWO[::-1])))
    assert abs(swapped.K - separatrix.K) < 1e-7  # its estimated error
    assert (swapped.fast, swapped.slow) == (1, 0)
    assert swapped.saddle == pytest.approx(separatrix.saddle[::-1], abs=1e-9)  # Newton's method


@pytest.mark.slow  # chances of an analysis, which are of such paths, are held against it in test_dynamics.py
def test_the_formula_is_what_paths_of_the_limit_do(two, separatrix):
    N = 1e3  # the analysis of two features has the chances at others
    outcomes = limit_outcomes(two, N, two.amplitudes(1024), 0.5)
    expected = selection_probability(separatrix, two, N)
    assert (outcomes.winner == 1).mean() == pytest.approx(expected, abs=5e-3)  # five of 1024 Sobol points
    assert np.isfinite(outcomes.escape_time).all()


def test_the_limit_with_one_feature_has_the_closed_form():
    start = random_start(problem_with(three_point(3.0, 20.0)))
    times = limit_outcomes(start, 1e4, start.amplitudes(256), 0.5).escape_time
    law = escape_law(start, 0.5)
    expected = [law.quantile(p, 1e4) for p in (0.25, 0.5, 0.75)]
    assert np.quantile(times, [0.25, 0.5, 0.75]) == pytest.approx(expected, abs=5e-3)  # 256 points of a Sobol sequence


def test_three_features_share_the_wins():
    """Equal ones a third each; the ODE is evaluated directly, as there is no table of three dimensions."""
    start = random_start(problem_with(*[TWO[0]] * 3))
    outcomes = limit_outcomes(start, 1e4, start.amplitudes(16, seed=1), 0.5)
    wins = np.bincount(outcomes.winner, minlength=3)
    assert wins.sum() == 16
    assert wins.min() > 0
    ends = np.sort(np.abs(outcomes.end), axis=1)
    assert ends[:, :2] == pytest.approx(0.0, abs=0.01)  # settled to 1e-4 of the growth rate


def test_sgd_selects_as_predicted(two, separatrix):
    """At N = 300 and 1000: within 3 standard errors of 1000 replicas plus 60/N; false alarms once in 190 times."""
    for N in (300, 1000):
        particles = f'particles = {{ method = "chain", dimension = {N}, replicas = 1000, escape_overlap = 0.5 }}'
        run = meanfield.simulate_sgd(problem_with(*TWO, more=("time = { stop = 1.9, outputs = 2 }", particles)))
        share, predicted = float((run.winner == 1).mean()), selection_probability(separatrix, two, N)
        assert abs(share - predicted) < 3 * np.sqrt(predicted / 1000) + 60 / N * predicted


@pytest.mark.slow
@pytest.mark.parametrize(("N", "replicas"), [(1000, 2000), (10_000, 2000), (100_000, 2000), (1_000_000, 400)])
def test_sgd_selects_as_predicted_at_large_N(two, separatrix, N, replicas):
    """Within 3 standard errors plus 60/N; false alarms once in 370 times."""
    stop = (0.5 * np.log(N) + np.log(200)) / two.growth_rates[1]
    particles = f'particles = {{ method = "chain", dimension = {N}, replicas = {replicas}, escape_overlap = 0.5 }}'
    run = meanfield.simulate_sgd(problem_with(*TWO, more=(f"time = {{ stop = {stop}, outputs = 2 }}", particles)))
    share, predicted = float((run.winner == 1).mean()), selection_probability(separatrix, two, N)
    assert abs(share - predicted) < 3 * np.sqrt(predicted / replicas) + 60 / N * predicted


@pytest.mark.slow
def test_noise_at_finite_N_explains_what_the_formula_misses():
    """j_2/j_1 = 1/3, N = 300: the formula is off by a fifth of itself."""
    more = ("model.learning_rate = 0.05",)
    pair = three_point(3.0, 40.0), three_point(1.7, 40.0)
    start = random_start(problem_with(*pair, more=more))
    predicted = selection_probability(find_separatrix(start), start, 300)
    noisy = float((langevin_outcomes(start, 300, 0.5, 21.0, 8192).winner == 1).mean())
    particles = 'particles = { method = "chain", dimension = 300, replicas = 8000, escape_overlap = 0.5 }'
    run = meanfield.simulate_sgd(problem_with(*pair, more=(*more, "time = { stop = 21.0, outputs = 2 }", particles)))
    share = float((run.winner == 1).mean())
    error = np.sqrt(share / 8000 + share / 8192)
    assert abs(share - noisy) < 3 * error  # false alarms once in 370 times
    assert predicted - share > 3 * error


def test_langevin_paths_at_huge_N_have_the_law_of_the_limit():
    """Noise that acts at the beginning is as large as the start, also at N = 1e8."""
    start = random_start(problem_with(TWO[0]))
    noisy = langevin_outcomes(start, 1e8, 0.5, 3.0, 1000)
    law = escape_law(start, 0.5)
    assert kstest(noisy.escape_time, lambda t: law.distribution(t, 1e8)).pvalue > 1e-3  # false alarms: 1 in 1000


def test_the_start_is_uniform_on_the_sphere():
    q = uniform_overlaps(np.random.default_rng(0), 200_000, 2, 5.0)
    assert (q**2).mean(axis=0) == pytest.approx([0.2, 0.2], abs=0.002)  # four standard errors of the mean
    assert (np.linalg.norm(q, axis=1) < 1).all()


@pytest.mark.parametrize("count", [1, 2])
def test_tables_agree_with_what_they_hold(count):
    field = random_start(problem_with(*TWO[:count])).field
    q = np.random.default_rng(0).normal(size=(200, count)) * 0.3
    q = q[np.linalg.norm(q, axis=1) < 0.95]
    table = BallTable(field, count)
    assert table.error <= TABLE_TOLERANCE
    assert table(q) == pytest.approx(field(q), abs=2 * TABLE_TOLERANCE * np.abs(field(q)).max())  # other points: twice


STABLE = gaussian(1.0)
SKEWED = '{ law = "discrete", values = [-1.0, 2.0], probabilities = [0.5, 0.5] }'


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: escape_law(random_start(problem_with(STABLE)), 0.5), r"q stays at 0.*Raise model\.batch_size"),
        (lambda: find_separatrix(random_start(problem_with(TWO[0], STABLE))), "1 of 2 grow.*use limit_outcomes"),
        (lambda: escape_law(random_start(problem_with(*TWO)), 0.5), "2 directions grow.*use limit_outcomes"),
        (lambda: escape_law(random_start(problem_with(TWO[0])), 0.95), "escape_overlap = 0.95: q settles.*lower it"),
        (lambda: escape_law(random_start(problem_with(TWO[0])), 1.5), r"escape_overlap = 1.5: .*in \(0, 1\]"),
        (
            lambda: random_start(problem_with(SKEWED, more=('model.activation = "relu"',))),
            "q = 0 is no fixed point.*hidden laws with mean 0",
        ),
        (lambda: random_start(problem_with(TWO[0], more=('prior.name = "l1"',))), "prior.name = 'l1'"),
        (lambda: langevin_outcomes(random_start(problem_with(*[TWO[0]] * 3)), 100, 0.5, 1.0), "3 are too many"),
    ],
)
def test_what_cannot_be_predicted_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_equal_features_have_equal_chances():
    start = random_start(problem_with(TWO[0], TWO[0]))
    separatrix = find_separatrix(start)
    assert pytest.approx(1.0, abs=1e-6) == separatrix.K  # the diagonal; six digits are asked for
    chance = selection_probability(separatrix, start, 1e4)
    assert chance == pytest.approx(0.5, abs=1e-6)  # as K above, of which it is a smooth function


def test_features_of_which_one_always_wins_have_no_separatrix():
    assert find_separatrix(random_start(problem_with(three_point(4.0, 40.0), three_point(3.5, 40.0)))) is None


def test_paths_come_to_rest_where_decay_is_far_faster_than_growth():
    """Decay close to |q| = 1 is some 100 times as fast as growth: the error of a step never lets b vanish."""
    hidden = '{ law = "three_point", second_moment = 1.1494, fourth_moment = 5.0822 }'
    model = 'model = { activation = "relu", centering = "population", learning_rate = 0.1479, batch_size = 5000 }'
    prior = 'prior = { name = "l2", strength = 0.1532 }'
    start = random_start(make_problem(model, features(feature("random", hidden, "uniform")), prior))
    drift, evaluations = start.drift, 0

    def counted(q):
        nonlocal evaluations
        evaluations += 1
        return drift(q)

    amplitudes = np.array([[-2.0], [0.1], [1.0]])
    vars(start)["drift"] = counted  # where it is kept once it has been asked for
    outcomes = limit_outcomes(start, 1e4, amplitudes, 0.5)
    assert evaluations < 10_000  # 180 000 if no path arrives
    assert np.isfinite(outcomes.escape_time).all()
    assert outcomes.end.ravel() == pytest.approx([-1.0, 1.0, 1.0], abs=1e-3)  # |q| = 1 - O(tau/m)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model.learning_rate": {"times": [0.0, 20.0], "values": [0.01, 0.02]}}, "model.learning_rate"),
        ({"phases": [{"stop": 1.0}, {"stop": 20.0, "set": {"model.learning_rate": 0.01}}]}, "phases"),
    ],
)
def test_what_changes_in_time_has_a_function_of_its_own(changes, key):
    problem = meanfield.with_values(make_problem(), {"features[0].initial_overlap": "random"} | changes)
    with pytest.raises(meanfield.InputError, match=rf"^{key}: changes in time.*outcomes_in_time.*meanfield\.at_time"):
        random_start(problem)
    assert random_start(meanfield.at_time(problem, 5.0)).growth_rates.shape == (1,)
    assert meanfield.contrastive.outcomes_in_time(problem, 1e3, 0.3, samples=4).end.shape == (4, 1)
