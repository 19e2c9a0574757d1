"""Reports on assumptions: against quadrature over the random directions, against compiled rates, and on samples."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.assumptions.laws import kurtosis
from meanfield.families.hidden_manifold.assumptions.report import follow_gaussian, gaussian_rates, matched
from meanfield.families.hidden_manifold.assumptions.wording import describe
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import make_system, packed, start_of, unpacked
from tests.families.hidden_manifold.problems import problem, solved

SCALES = [{"weight": 0.5, "scale": 0.4}, {"weight": 0.5, "scale": 1.84**0.5}]
NOT_CENTRED = [{"weight": 1.0, "mean": 0.5}]
TWO_MEANS = [{"weight": 0.3, "mean": [2.0, 0.0]}, {"weight": 0.7, "mean": [-6 / 7, 0.0]}]
QUICK = {"time": {"stop": 20.0, "outputs": 6}, "order_parameters": {"tolerance": 1e-6}}


def report(**inputs):
    return solved("assumptions", **QUICK | {"inputs": inputs})


def test_rates_of_one_gaussian_with_a_mean():
    """The compiled rates of one component, in a state that no path has: equal to rounding."""
    component = {"weight": 1.0, "mean": [0.5, 0.2], "scale": 0.8, "mean_elsewhere": 0.4}
    one = problem(inputs={"centered": False, "components": [component]}, training={"output_learning_rate": 0.1})
    nodes = one.inputs.eigenvalues.nodes(4)
    system, law = make_system(one, nodes, 10), matched(one, nodes, 10)
    y = start_of(one, system) + 0.05 * np.random.default_rng(0).standard_normal(len(start_of(one, system)))
    state = unpacked(system, y)
    y = packed(state._replace(sigma=state.sigma + state.sigma.swapaxes(1, 2), Omega=state.Omega + state.Omega.T))
    expected = np.empty(len(y))
    error = rates(y, system, expected)
    found, again = gaussian_rates(law, y)
    assert np.abs(found - expected).max() < 1e-14
    assert again == pytest.approx(error, abs=1e-14)  # rounding


def test_the_matched_gaussian_is_a_mixture_over_its_random_direction():
    """Components at the points of a trapezoidal rule for the direction: exponentially close (2e-11 with 25 points)."""
    nodes = problem().inputs.eigenvalues.nodes(4)
    two = problem(inputs={"components": [c | {"mean_elsewhere": 0.0} for c in TWO_MEANS]})
    times = np.array([0.0, 3.0, 10.0])
    path = follow_gaussian(two, matched(two, nodes, 10), times, 1e-10, "")
    x = np.linspace(-6.0, 6.0, 25)
    weight = np.exp(-0.5 * x * x)
    spread = np.sqrt(0.3 * 4.0 + 0.7 * 36 / 49)
    points = [{"weight": w, "mean": [spread * at, 0.0]} for w, at in zip(weight / weight.sum(), x, strict=True)]
    many = problem(
        inputs={"components": points, "spectrum": {"law": "atoms", **_atoms(nodes)}},
        time={"stop": 10.0, "outputs": 11},
        order_parameters={"tolerance": 1e-8},
    )
    result = meanfield.solve(many, "order_parameters")
    assert path.errors == pytest.approx(result["generalisation_error"].values[[0, 3, 10]], abs=3e-8)  # its tolerance
    assert path.state.Omega == pytest.approx(result["Omega"].values[[0, 3, 10]], abs=3e-8)  # the same


def _atoms(nodes):
    return {"eigenvalues": list(nodes.rho), "weights": list(nodes.weight)}


def test_scales_leave_the_conventional_theory_wrong_and_the_matched_gaussian_no_better():
    """Theory page, case II(ii), whose single theory is off by .06 in R'11; Q and R of the two Gaussians are equal."""
    found = report(components=SCALES)
    assert found["regime"].item() == "II"
    exact = meanfield.solve(problem(inputs={"components": SCALES}, **QUICK), "order_parameters")
    single = solved(**QUICK)
    for name in ("Q", "R", "generalisation_error"):
        assert np.array_equal(found[name], exact[name])
        assert found[f"{name}_conventional"].values == pytest.approx(single[name].values, abs=2e-6)  # two tolerances
        assert found[f"{name}_matched"].values == pytest.approx(single[name].values, abs=2e-6)  # the same
    assert float(found["R_conventional"][-1, 0, 0] - found["R"][-1, 0, 0]) > 0.05
    variance = 0.5 * 0.16**2 + 0.5 * 1.84**2 - 1.0
    assert float(found["radius_variance"]) == pytest.approx(variance, abs=1e-14)  # rounding
    text = describe(found)
    assert "standard deviation is 0.84" in text
    assert "the conventional theory is off at t = 20" in text


def test_aligned_means_are_mostly_explained_by_the_covariance():
    """Theory page, case II(i): SGD - theory of eg is -.0403(27) for one Gaussian, -.0194(11) for the matched one."""
    found = report(components=[{"weight": 0.5, "mean": [m, 0.0]} for m in (3.0, -3.0)]).isel(time=-1)
    exact = float(found["generalisation_error"])
    for theory, off, error in (("conventional", 0.0403, 0.0027), ("matched", 0.0194, 0.0011)):
        difference = float(found[f"generalisation_error_{theory}"]) - exact
        assert difference == pytest.approx(off, abs=3.5 * error)  # standard errors of SGD
    assert found["teacher_kurtosis"].values == pytest.approx([1.38, 3.0])  # (3 + 6 9 + 81)/10^2
    assert float(found["component_mean_norm"][0]) == pytest.approx(3.0)


def test_kurtosis_of_a_mixture_of_samples():
    rng = np.random.default_rng(5)
    chance, mean, deviation = np.array([0.3, 0.7]), np.array([[2.0], [-1.0]]), np.array([[0.5], [1.5]])
    which = rng.choice(2, size=400_000, p=chance)
    h = mean[which, 0] + deviation[which, 0] * rng.standard_normal(len(which))
    sampled = np.mean((h - h.mean()) ** 4) / h.var() ** 2
    assert kurtosis(chance, mean, deviation**2)[0] == pytest.approx(sampled, abs=0.03)  # 4 standard errors


@pytest.mark.parametrize(
    ("inputs", "regime", "words"),
    [
        ({}, "Gaussian", "the conventional theory is right"),
        (
            {
                "components_drawn": "coordinate",
                "components": [{"weight": 0.5, "mean": m, "scale": 0.8} for m in (0.6, -0.6)],
            },
            "I",
            "central limit theorem",
        ),
        (
            {"components": [{"weight": 0.5, "mean_elsewhere": 2.0}, {"weight": 0.5}], "centered": False},
            "II",
            "is right",
        ),
        ({"components_drawn": "coordinate", "centered": False, "components": NOT_CENTRED}, "III", "fast moves"),
    ],
)
def test_regimes(inputs, regime, words):
    found = report(**inputs)
    assert found["regime"].item() == regime
    assert words in describe(found)
    if regime == "III":
        assert "Q" not in found
        assert float(found["input_mean"][0]) == pytest.approx(
            np.sqrt(2 / np.pi * np.arcsin(0.2)), abs=1e-8
        )  # of the trapezoidal rule over means, which are normal with the variance .25


N, D = 1500, 100
RNG = np.random.default_rng(3)
NORMAL, HALF = RNG.standard_normal((N, D)), RNG.random(N) < 0.5
TEACHER = RNG.standard_normal((D, 1))
SIDES = np.where(HALF, 1.0, -1.0)
SAMPLES = {
    "Gaussian": NORMAL,
    "I": 0.8 * np.sign(RNG.standard_normal((N, D))) + 0.6 * NORMAL,
    "II": NORMAL * np.where(HALF, 0.4, 1.84**0.5)[:, None],
    "II IV": NORMAL + np.outer(1.5 * SIDES, TEACHER[:, 0]) / D**0.5,
    "III II IV": NORMAL + np.outer(SIDES, RNG.uniform(-1, 1, D)),
    "III": NORMAL + 0.5,
    "IV": NORMAL * np.linspace(0.5, 1.5, D),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name):
    """Latents of every regime; a seed is fixed, and by chance fewer than 1 in 100 others would be taken for another."""
    found = meanfield.hidden_manifold.examine_samples(SAMPLES[name], teacher=TEACHER)
    assert " ".join(found.regimes) == name
    assert all(f"  {regime}: " in str(found) for regime in found.regimes)
    if name == "II":
        allowed = 5 * found.radius_error + 0.05  # standard errors, and the factor that coordinates take away
        assert found.radius_spread == pytest.approx(0.7056, abs=allowed)  # Var(s^2)


def test_inputs_with_a_mean():
    x = np.maximum(NORMAL, 0.0)
    assert meanfield.hidden_manifold.examine_samples(x, "inputs").regimes == ("III",)
    assert meanfield.hidden_manifold.examine_samples(x - x.mean(axis=0), "inputs").regimes == ("I",)


def test_gaussian_samples_are_rarely_taken_for_something_else():
    """At most one of 150 arrays: with a true rate of 1 in 1000 two happen once in 100."""
    rng = np.random.default_rng(11)
    others = [
        meanfield.hidden_manifold.examine_samples(rng.standard_normal((150, 20))).regimes != ("Gaussian",)
        for _ in range(150)
    ]
    assert sum(others) <= 1


def test_a_regime_is_a_matter_of_size():
    """A spread of |C|^2/D by .2 is 15 errors from 0, and moves R by .004: no mixture; in words, with its size."""
    scale = np.sqrt(1.0 + 0.2 * SIDES)
    found = meanfield.hidden_manifold.examine_samples(NORMAL * scale[:, None])
    assert found.radius_spread > 10 * found.radius_error
    assert found.regimes == ("I",)  # coordinates have the kurtosis 3.12, and the conventional theory holds
    assert "beyond chance, and too little to matter, as the conventional theory is off by about 0.004" in str(found)
    problems = [{"weight": 0.5, "scale": float(s)} for s in np.sqrt([0.8, 1.2])]
    exact = report(components=problems)
    assert float(np.abs(exact["R_conventional"] - exact["R"]).max()) == pytest.approx(0.004, abs=1e-3)  # one digit


def test_heavy_tails_with_a_common_radius_are_a_mixture_though_their_spread_has_no_error():
    """Student's t with five degrees of freedom: |C|^2/D has no fourth moment, so that its spread is no evidence."""
    rng = np.random.default_rng(0)
    found = meanfield.hidden_manifold.examine_samples(
        np.sqrt(5 / rng.chisquare(5, 300))[:, None] * rng.standard_normal((300, 100))
    )
    assert found.radius_spread < 5 * found.radius_error
    assert found.field_kurtosis > 5.0
    assert found.regimes == ("II",)
    assert "the kurtosis of random fields is" in str(found)


def test_only_what_is_at_fault_is_named():
    found = str(meanfield.hidden_manifold.examine_samples(SAMPLES["III II IV"]))
    assert "the leading direction has the share 0.239 of the variance" in found
    assert "the mean has" not in found  # its share is -0.00011, of chance


@pytest.mark.parametrize(
    ("samples", "kind", "words"),
    [
        (np.zeros((200, 20)), "latents", "do not vary"),
        (np.zeros((50, 20)), "latents", r"have the shape \(50, 20\)"),
        (np.full((200, 20), np.nan), "latents", r"samples\[\[0, 0\]\] is not finite"),
        ([["a"]], "latents", "no number"),
        (NORMAL, "pixels", "'latents' or 'inputs'"),
    ],
)
def test_samples_that_say_nothing_are_refused(samples, kind, words):
    with pytest.raises(InputError, match=words):
        meanfield.hidden_manifold.examine_samples(samples, kind)
    with pytest.raises(InputError, match=r"teacher: has the shape \(100, 1\); give 100 finite rows, and .* not 0"):
        meanfield.hidden_manifold.examine_samples(NORMAL, teacher=np.zeros(100))


def test_a_blow_up_is_reported_up_to_where_it_happens():
    linear = {"activation": "linear", "output_weights": [1.0]}
    result = solved(
        "assumptions",
        teacher=linear | {"overlap": [[1.0]]},
        student=linear | {"on_teacher": [[0.0]], "elsewhere": [[1.0]]},
        training={"learning_rate": 50.0},
        time={"stop": 20.0, "outputs": 5},
    )
    assert result.attrs["status"].startswith("failed: at t = ")
    assert np.isnan(result["Q"].values[-1]).all()
    assert np.isnan(result["Q_conventional"].values[-1]).all()
    assert "Gaussian latents" in describe(result)
