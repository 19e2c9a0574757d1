"""Latents whose means are drawn, standardisation, and the measures of Bae and Jeong (2024) against plain NumPy."""

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

import meanfield
from meanfield.ensembles.streams import stream_key
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.discrepancy import discrepancy, latent_divergence
from meanfield.families.hidden_manifold.figures import plot_discrepancy
from meanfield.families.hidden_manifold.particles.latents import draw_latents, mixture_of
from meanfield.families.hidden_manifold.particles.steppers import Plain
from meanfield.numerics.compiled.matrix_products import VECTORS_PER_TILE
from tests.families.hidden_manifold.problems import numbers, problem, solved

MEANS = {"components": 3, "half_width": 4.0, "seed": 5}
PER_LATENT = MEANS | {"each": "latent"}

READINGS = [
    pytest.param({"components_drawn": "coordinate", "random_means": MEANS, "standardise": "latents"}, id="one mean"),
    pytest.param({"components_drawn": "coordinate", "random_means": PER_LATENT, "standardise": "latents"}, id="own"),
    pytest.param({"components_drawn": "sample", "random_means": PER_LATENT, "standardise": "latents"}, id="sample"),
    pytest.param({"components_drawn": "sample", "random_means": PER_LATENT, "centered": False}, id="sample, as it is"),
    pytest.param({"components_drawn": "coordinate", "random_means": MEANS, "centered": False}, id="one mean, as it is"),
    pytest.param(
        {"components_drawn": "coordinate", "random_means": MEANS, "standardise": "inputs", "nonlinearity": "relu"},
        id="inputs",
    ),
    pytest.param(
        {"components_drawn": "sample", "random_means": PER_LATENT, "standardise": "inputs", "nonlinearity": "tanh"},
        id="inputs of samples",
    ),
]


def plain(inputs, **particles):
    return problem(inputs=inputs, particles={"dimension": 300, "replicas": 1, "method": "plain"} | particles)


@pytest.mark.parametrize("inputs", READINGS)
def test_measured_fields_are_those_of_samples(inputs):
    """Q, R and means of fields from the weights against covariances over 4,000 samples that the replica draws itself.

    Covariances of 4,000 samples have standard errors of 1.5 to 3 % of their variances, components of a third of them
    more; five of them, and 2 % for N = 300, where fields are not quite Gaussian.
    """
    given = plain(inputs)
    stepper = Plain(given, range(1))
    fresh, rows = stepper._fresh, stepper.rows
    own = fresh.inputs @ stepper._W.T / np.sqrt(300)
    weight = np.array([chance for chance, _ in given.inputs.gaussians])
    mean = rows["field_mean"][0]
    between = np.einsum("q,qk,ql->kl", weight, mean - weight @ mean, mean - weight @ mean)
    size = np.sqrt(np.outer(own.var(axis=0), own.var(axis=0)))
    assert np.abs(np.cov(own.T) - rows["Q"][0] - between).max() < (5 * 0.03 + 0.02) * size.max()
    assert np.abs(own.mean(axis=0) - weight @ mean).max() < 5 * own.std(axis=0).max() / np.sqrt(4000) + 0.02


VALUES = np.array([-1.0, 0.5, 0.5, 4.0, 7.25])
FROM_FILE = {"components_drawn": "coordinate", "standardise": "latents"}


def of_file(folder, **inputs):
    """Inputs whose latents are values in a file."""
    np.save(folder / "values.npy", VALUES)
    return FROM_FILE | {"latents": {"file": str(folder / "values.npy")}} | inputs


@pytest.mark.parametrize("how", [{}, {"standardise": "nothing", "centered": False}])
def test_latents_are_values_of_a_file(how, tmp_path):
    """Each with its frequency, and fields are those of samples; five standard errors of 300,000 latents."""
    given = plain(of_file(tmp_path, **how), dimension=300)
    drawn = np.array([stepper_latents(given, sample) for sample in range(4)]).ravel()
    values = (VALUES - VALUES.mean()) / VALUES.std() if not how else VALUES
    for value in np.unique(values):
        share = np.mean(values == value)
        assert abs(np.mean(np.isclose(drawn, value, rtol=1e-12)) - share) < 5 * np.sqrt(share / drawn.size)
    test_measured_fields_are_those_of_samples(of_file(tmp_path, **how))


def stepper_latents(given, first):
    """Latents of 500 samples."""
    D = 150
    mixture = mixture_of(given, np.zeros((len(given.inputs.mixture), D)))
    tiles = np.zeros((-(-500 // VECTORS_PER_TILE), D, VECTORS_PER_TILE))
    draw_latents(mixture, np.zeros((1, D)), stream_key(0), 0, 500 * first, 500, tiles, np.zeros((500, 1)))
    return tiles.transpose(0, 2, 1).reshape(-1, D)[:500]


def test_order_parameters_of_values_take_their_variance_alone(tmp_path):
    """By the central limit theorem: those of one Gaussian with the variance of the file, which sums give exactly."""
    centred = of_file(tmp_path, standardise="nothing", nonlinearity="linear")
    np.save(tmp_path / "values.npy", VALUES - VALUES.mean())
    component = {"weight": 1.0, "scale": float(VALUES.std())}
    few = {"time": {"stop": 1.0, "outputs": 3}, "training": {"learning_rate": 0.02}}
    found = solved(inputs=centred, **few)
    expected = solved(inputs={"nonlinearity": "linear", "components": [component]}, **few)
    assert np.allclose(found["Q"], expected["Q"], rtol=1e-9)  # sums of five numbers, and the tolerance of the steps
    assert np.allclose(found["generalisation_error"], expected["generalisation_error"], rtol=1e-9)  # the same


def test_results_of_latents_in_a_file_open_no_file(tmp_path):
    given = problem(inputs=of_file(tmp_path), time={"stop": 0.1, "outputs": 2}, particles={"dimension": 60})
    runs = meanfield.solve(given, "particles")
    key = "inputs.latents.file"
    assert runs.attrs["fingerprints"].count(given.fingerprints()[key]["sha256"]) == 1
    (tmp_path / "values.npy").unlink()
    meanfield.save(runs, tmp_path / "runs.nc")
    again = meanfield.load(tmp_path / "runs.nc")
    assert float(abs(meanfield.compare(runs, again)["Q_difference"]).max()) == 0.0
    assert latent_divergence(given) == np.inf


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"components_drawn": "sample"}, "set components_drawn to 'coordinate'"),
        ({"random_means": MEANS}, "is there beside inputs.random_means"),
        ({"standardise": "nothing"}, "set inputs.standardise to 'latents'"),
        ({"standardise": "nothing", "centered": False}, "or solve by particles"),
    ],
)
def test_latents_of_a_file_that_cannot_be(inputs, words, tmp_path):
    with pytest.raises(InputError, match=words):
        meanfield.solve(problem(inputs=of_file(tmp_path, **inputs)), "order_parameters")


@pytest.mark.parametrize("each", ["component", "latent"])
def test_standardised_latents(each):
    given = plain(READINGS[0].values[0] | {"random_means": MEANS | {"each": each}})
    mixture = mixture_of(given, np.zeros((3, 40)))
    square = (mixture.scale**2 + mixture.mean**2).mean(axis=0)
    np.testing.assert_allclose(mixture.mean.mean(axis=0), 0.0, atol=1e-14)  # rounding
    np.testing.assert_allclose(square, 1.0, rtol=1e-14)  # rounding
    given = mixture_of(
        plain({"components_drawn": "sample", "centered": False, "random_means": PER_LATENT}), square[None]
    )
    assert np.ptp(given.mean, axis=0).min() > 0
    assert np.abs(given.mean).max() < 5.0  # 4 and the ones that are given besides


def test_components_are_standardised():
    """The same problem with components that were standardised by hand, and with those that were not."""
    given = [{"weight": 0.3, "mean": [2.0, 1.0], "scale": 0.5}, {"weight": 0.7, "mean": [1.0, 0.0], "scale": 2.0}]
    deviation = np.sqrt(0.3 * 0.25 + 0.7 * 4.0)
    by_hand = [
        {"weight": 0.3, "mean": (np.array([0.7, 0.7]) / deviation).tolist(), "scale": 0.5 / deviation},
        {"weight": 0.7, "mean": (np.array([-0.3, -0.3]) / deviation).tolist(), "scale": 2.0 / deviation},
    ]
    rest = {"time": {"stop": 5.0, "outputs": 3}, "order_parameters": {"tolerance": 1e-4}}  # the same steps of both
    both = [{"components": given, "standardise": "latents"}, {"components": by_hand}]
    ends = [numbers(meanfield.solve(problem(inputs=inputs, **rest), "order_parameters"), 5.0) for inputs in both]
    np.testing.assert_allclose(*ends, rtol=1e-9)  # rounding that steps of the ODEs amplify


def test_standardised_inputs_are_the_same_for_every_multiple_of_f():
    ends = []
    for f in ("step", "sign"):  # 2 step - 1 is the sign
        given = problem(inputs={"nonlinearity": f, "standardise": "inputs"}, time={"stop": 5.0, "outputs": 3})
        ends.append(numbers(meanfield.solve(given, "order_parameters"), 5.0))
    np.testing.assert_allclose(*ends, rtol=1e-8)  # moments of f to 1e-10, and steps of the ODEs


def test_a_mixture_for_each_latent_learns_as_one_gaussian_does():
    time = {"stop": 5.0, "outputs": 3}
    mixture, gaussian = (
        numbers(meanfield.solve(problem(inputs=inputs, time=time), "order_parameters"), 5.0)
        for inputs in (READINGS[1].values[0], {})
    )
    np.testing.assert_array_equal(mixture, gaussian)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"random_means": MEANS, "components": [{"weight": 1.0}]}, "inputs.random_means: is there beside"),
        ({"random_means": MEANS}, "inputs.random_means: a mean that all latents of a sample share"),
        ({"random_means": PER_LATENT}, "set inputs.standardise to 'latents', or centered to false"),
        ({"standardise": "inputs", "centered": False}, "'inputs' subtracts their mean; set inputs.centered to true"),
        (
            {"standardise": "latents", "components": [{"weight": 1.0, "mean_elsewhere": 1.0}]},
            "mean_elsewhere is not 0",
        ),
        (
            {
                "standardise": "latents",
                "components": [{"weight": 0.5, "scale": 0.001}, {"weight": 0.5, "scale": 1000.0}],
            },
            "falls below 0.001; give scales",
        ),
    ],
)
def test_what_cannot_be_standardised_is_refused(inputs, words):
    with pytest.raises(InputError, match=words):
        problem(inputs=inputs)


def test_theory_refuses_means_of_each_latent_in_samples():
    given = problem(inputs=READINGS[2].values[0])
    for method in ("order_parameters", "density", "fixed_points"):
        with pytest.raises(InputError, match="set them to 'coordinate' and 'latents'"):
            meanfield.solve(given, method)


@pytest.mark.parametrize("standardise", ["nothing", "latents"])
def test_divergence_of_latents(standardise):
    """Against adaptive quadrature of the definition."""
    components = [{"weight": 0.2, "mean": -3.0, "scale": 0.1}, {"weight": 0.8, "mean": 0.75, "scale": 1.5}]
    given = problem(inputs={"components": components, "components_drawn": "coordinate", "standardise": standardise})
    p = [(c.weight, norm(c.mean, c.scale)) for c in given.inputs.mixture]

    def integrand(x):
        density = sum(weight * law.pdf(x) for weight, law in p)
        return density * np.log(density / norm.pdf(x)) if density > 0 else 0.0

    points = sorted(c.mean + s * c.scale for c in given.inputs.mixture for s in (-3, -1, 0, 1, 3))
    right, error = quad(integrand, -15, 15, points=points, limit=500, epsabs=1e-11)  # it states what it reached
    found = meanfield.hidden_manifold.latent_divergence(given)
    assert found == pytest.approx(right, abs=1e-10 + error)  # panels to 1e-10, and what the quadrature states


def test_divergence_of_a_gaussian_is_zero():
    assert meanfield.hidden_manifold.latent_divergence(problem()) == pytest.approx(0.0, abs=1e-14)  # rounding


def test_discrepancies():
    """The root mean square over times by hand, in `log_rmse`, `compare` and what sweeps keep."""
    given = plain(READINGS[0].values[0], replicas=3, snapshots=[0.0])
    given = meanfield.with_values(
        given, {"time.stop": 2.0, "time.outputs": 4, "time.spacing": "log", "particles.dimension": 60}
    )
    run, limit = meanfield.simulate_sgd(given), meanfield.solve_order_parameters(given)
    by_hand = np.sqrt(((run["Q"].values - limit["Q"].values) ** 2).mean(axis=1))
    found = meanfield.hidden_manifold.log_rmse(run, limit)
    np.testing.assert_allclose(found["Q_rmse"].transpose("replica", ...), by_hand, rtol=1e-12)  # rounding
    report = meanfield.compare(limit, run)
    of_means = np.sqrt(((run["R"].mean("replica").values - limit["R"].values) ** 2).mean(axis=0))
    np.testing.assert_allclose(report["R_rmse"].isel(pair=0), of_means, rtol=1e-12)
    kept = discrepancy(run)
    own = [
        meanfield.hidden_manifold.log_rmse(
            run.isel(replica=[i]),
            meanfield.hidden_manifold.solve_from_run(given, run, i),
        )["v_rmse"].mean()
        for i in range(3)
    ]
    assert float(kept["v_discrepancy"]) == pytest.approx(np.mean(own))
    assert float(kept["v_discrepancy_error"]) == pytest.approx(np.std(own, ddof=1) / np.sqrt(3))
    before = meanfield.with_values(given, {"inputs.standardise": "nothing", "inputs.centered": False})
    assert float(kept["latent_divergence"]) == meanfield.hidden_manifold.latent_divergence(before)


def test_sweeps_draw_discrepancies_against_divergences():
    """Means and standard errors over mixtures by hand; the how-to draws those of a sweep by its command."""
    run = meanfield.simulate_sgd(problem(time={"stop": 0.1, "outputs": 2}, particles={"dimension": 20, "replicas": 1}))
    keys = {"alpha": "inputs.random_means.half_width", "mixture": "inputs.random_means.seed"}
    coordinates = {
        "alpha": ("alpha", [6.0, 1.0], {"key": keys["alpha"]}),
        "mixture": ("mixture", [0, 1, 2], {"key": keys["mixture"]}),
    }
    kept = {f"{name}_discrepancy{end}" for name in "QRv" for end in ("", "_error")} | {"latent_divergence"}
    rng = np.random.default_rng(0)
    numbers = {name: (("alpha", "mixture"), rng.uniform(size=(2, 3))) for name in sorted(kept)}
    numbers["latent_divergence"] = (("alpha", "mixture"), [[5.0, 6.0, 7.0], [1.0, 2.0, 3.0]])
    found = xr.Dataset(numbers, coordinates, run.attrs)
    panel = plot_discrepancy(found).axes[1]
    y = found["R_discrepancy"].values[::-1]
    (line,), (band,) = panel.get_lines(), panel.collections
    assert np.allclose(line.get_xydata(), np.column_stack([[2.0, 6.0], y.mean(axis=1)]))
    low, high = (y.mean(axis=1) + sign * y.std(axis=1, ddof=1) / np.sqrt(3) for sign in (-1, 1))
    ends = band.get_paths()[0].vertices[:, 1]
    assert all(np.isclose(ends, end).any() for end in (*low, *high))
    assert panel.get_ylabel() == "RMSE of $R$"


def test_other_times_are_refused():
    given = plain({}, dimension=20, snapshots=[0.0])
    given = meanfield.with_values(given, {"time.stop": 1.0, "time.outputs": 3})
    limit = meanfield.solve_order_parameters(meanfield.with_value(given, "time.outputs", 2))
    with pytest.raises(InputError, match="other output times"):
        meanfield.hidden_manifold.log_rmse(meanfield.simulate_sgd(given), limit)
