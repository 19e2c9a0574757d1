"""Equations that problems with an importance print, evaluated by SymPy, against losses, fields and drifts."""

import numpy as np
import pytest

import meanfield
from meanfield.explanation.equations import equations_of
from meanfield.families.alpha_contrastive.equations import LOSSES
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.fields import mixture_field
from meanfield.families.alpha_contrastive.limit.pairs import of_views
from meanfield.families.alpha_contrastive.particles.network import BatchNetwork
from meanfield.families.alpha_contrastive.particles.pairs import BatchPairs
from meanfield.families.alpha_contrastive.particles.samples import sampler_of
from meanfield.families.alpha_contrastive.population.drift import PointDrift
from meanfield.families.alpha_contrastive.population.inputs import places_of
from meanfield.families.alpha_contrastive.population.places import PlaceDrift
from meanfield.families.alpha_contrastive.population.solver import check_population
from tests.printed_equations import counted, evaluate, lines_of, section, unsaid

ROUNDING = 1e-12
"""Largest error of a formula, relative to the largest value: sums of some hundred terms in double precision."""

POINTS = {"law": "points", "points": [[1.5, 0.0], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9]]}
POINTS |= {"probabilities": [0.3, 0.25, 0.2, 0.15, 0.1]}
VIEWS = POINTS | {"sample": [0, 0, 1, 1, 2]}
MIXTURE = {
    "law": "gaussian_mixture",
    "probabilities": [0.6, 0.4],
    "means": [[1.0, 0.2], [-0.5, 0.8]],
    "covariance": 0.3,
}


def half_squares(f):
    """Half the squared distances of all samples."""
    return 0.5 * ((f[:, None] - f[None]) ** 2).sum(axis=-1)


def problem(kind="quadratic", data=POINTS, activation="quadratic", **tables):
    model = {"activation": activation} | tables.pop("model", {})
    importance = {"kind": kind} | tables.pop("importance", {})
    return meanfield.Problem(family="alpha_contrastive", model=model, importance=importance, data=data, **tables)


@pytest.mark.parametrize("diagonal", ["exclude", "include"])
@pytest.mark.parametrize("kind", LOSSES)
def test_importance_and_energy_are_those_of_the_code(kind, diagonal):
    numbers = {"temperature": 0.7} if kind in ("infonce", "soft_triplet", "modified_triplet") else {}
    numbers |= {"epsilon": 0.2} if kind in ("infonce", "triplet", "soft_triplet", "lifted") else {}
    given = problem(kind, importance=numbers | {"diagonal": diagonal}, training={"batch_size": 5})
    f, view = np.random.default_rng(0).normal(size=(2, 100, 5, 3))
    s = 0.5 * (((f - view) ** 2).sum(axis=-1)[:, :, None] - ((f[:, :, None] - f[:, None]) ** 2).sum(axis=-1))
    counts = 1.0 - np.eye(5) if diagonal == "exclude" else np.ones((5, 5))
    lines, functions, values = section(given, "Step"), {}, {"s": counted(s.transpose(1, 2, 0), "ij")}
    values |= {"c": counted(counts[..., None], "ij")}
    evaluate(lines_of(lines, "phi", "psi", "phi_slope", "psi_slope"), {}, functions)
    found = evaluate(lines_of(lines, "xi[i]", "alpha[i, j]", "E"), values, functions, {"i": 5, "j": 5})
    right = BatchPairs(given.importance, 5).weigh(f, view)
    alpha, energy = right.alpha.transpose(1, 2, 0), right.energy(f, view)
    assert np.abs(found["alpha"][0] - alpha).max() <= ROUNDING * np.abs(alpha).max()
    assert np.abs(found["E"][0] - energy).max() <= ROUNDING * np.abs(energy).max()
    assert not unsaid(given)


@pytest.mark.parametrize("kind", ["infonce", "gaussian"])
@pytest.mark.parametrize("argument", ["source", "views"])
def test_importances_are_of_what_is_said_where_views_differ(kind, argument):
    """SGD takes a third sample in place of both views, or the first view where a kernel looks at views."""
    given = problem(kind, VIEWS, importance={"temperature": 0.7, "argument": argument}, training={"batch_size": 5})
    rng, sampler, h = np.random.default_rng(0), sampler_of(given.data), Filter(given.model.activation_functions)
    network = BatchNetwork(given.model, sampler.layer(h), BatchPairs(given.importance, 5))
    batch, (w, *_) = sampler.draw(rng, 5, argument == "source"), filters()
    source = None if batch.source is None else batch.source[None]
    right = network.forward(Weights(w[None, None], np.zeros((1, 0, 5))), batch.views[None], source)
    inputs = batch.views if source is None else np.concatenate(batch)
    f, view, *third = h.value(inputs[:, :, 0] @ w.T) / np.sqrt(5)
    text, lines = given.latex(), section(given, "Step")
    of = (third * 2 if third else [f, view])[:2]
    x, y = half_squares(of[0]), half_squares(f)
    s = 0.5 * ((of[0] - of[1]) ** 2).sum(axis=-1)[:, None] - x
    functions, known = {}, {"c": counted(1.0 - np.eye(5), "ij"), "s": counted(s, "ij"), "D": counted(x, "ij")}
    evaluate(lines_of(lines, "phi", "psi", "phi_slope", "psi_slope", "kernel"), {}, functions)
    alpha = evaluate(lines_of(lines, "xi[i]", "alpha[i, j]"), known, functions, {"i": 5, "j": 5})["alpha"][0]
    s = 0.5 * ((f - view) ** 2).sum(axis=-1)[:, None] - y
    known = {"alpha": counted(alpha, "ij"), "s": counted(s, "ij")}
    (energy,) = evaluate(lines_of(lines, "E"), known)["E"]
    assert energy == pytest.approx(right.energy[0], rel=ROUNDING)  # of the sum over pairs
    assert ("a third sample of the same generator" in text) == (argument == "source")
    assert ("of the first view" in text) == (argument == "views" and kind == "gaussian")


@pytest.mark.parametrize(
    ("kind", "data", "tables"),
    [
        ("gaussian", VIEWS, {}),
        ("infonce", VIEWS, {}),
        ("infonce", POINTS, {"population": {"finite_batch": True}}),
        ("quadratic", VIEWS, {"population": {"finite_batch": True}, "importance": {"diagonal": "include"}}),
        ("lifted", POINTS, {}),
    ],
)
def test_a_flow_that_solvers_refuse_is_not_printed(kind, data, tables):
    given = problem(kind, data, **tables)
    with pytest.raises(meanfield.InputError):
        check_population(given)
    assert section(given, "Flow") == ["No exact flow is known: only SGD is followed."]


def test_fields_of_mixtures_that_densities_have_are_printed():
    lines = section(problem("gaussian", MIXTURE, activation="linear", importance={"temperature": 2.0}), "Flow")
    assert lines_of(lines, "F")


def test_velocities_that_last_leave_no_law_of_filters_alone():
    given = problem(training={"momentum_rate": 0.5})
    assert "partial P" not in given.latex()
    assert "partial P" in problem().latex()


def test_a_start_from_a_file_has_the_row_of_weights(tmp_path):
    """The law of starts that are drawn is not that of a run that goes on."""
    path = tmp_path / "start.npz"
    np.savez(path, weights=filters(1, 4)[0])
    given = problem(filters={"count": 4}, initial={"from": str(path)})
    rows = {symbol: (key, words) for symbol, key, words in equations_of(given, True).symbols}
    assert rows["w(0)"] == ("initial", "from start.npz")


def filters(count=20, each=5):
    """Filters of some networks, shape (networks, filters, 2)."""
    w = np.random.default_rng(0).normal(size=(count, each, 2))
    return w / np.linalg.norm(w, axis=-1, keepdims=True)


FLOWS = {
    "uniform": ("quadratic", POINTS, {}),
    "uniform, finite batch": ("quadratic", POINTS, {"population": {"finite_batch": True}}),
    "uniform, views": ("quadratic", VIEWS, {}),
    "infonce": ("infonce", POINTS, {"importance": {"temperature": 0.6}}),
    "infonce, views": ("infonce", VIEWS, {"importance": {"temperature": 0.6, "argument": "views"}}),
    "gaussian": ("gaussian", POINTS, {"importance": {"temperature": 0.6}}),
    "modified triplet": ("modified_triplet", POINTS, {"importance": {"temperature": 0.6}}),
    "tuplet": ("tuplet", POINTS, {}),
}


@pytest.mark.parametrize("name", FLOWS)
def test_flows_of_filters_are_those_of_the_code(name):
    kind, data, tables = FLOWS[name]
    given, w = problem(kind, data, **tables), filters()
    atoms, p = given.data.atoms, given.data.weights
    V = np.diag(p) if given.data.sample_of is None else of_views(given.data.sample_of, p)
    drift = PointDrift(given)
    right = np.array([drift(Weights(each[None], np.zeros((0, 5)))).slope.filters[0] for each in w])
    z = np.einsum("nfd,id->inf", w, atoms)
    functions = {"h": drift.field.filter.value, "h_slope": drift.field.filter.slope}
    functions["dot"] = lambda a, b: (a * b).sum(axis=0)
    if kind == "quadratic":
        i, j = np.indices(V.shape).reshape(2, -1)
        functions["average_of"] = lambda of: of @ V.ravel()
        values = {"z": z.transpose(1, 2, 0)[..., i], "z'": z.transpose(1, 2, 0)[..., j]}
        values["x"] = atoms.T[:, None, None, i]
    else:
        functions["average_of"] = lambda of: of.mean(axis=-1, keepdims=True)
        values = {"z": counted(z, "i"), "x": counted(atoms[:, :, None, None], "i"), "n": len(p)}
        values |= {"p": counted(p[:, None, None], "i"), "V": counted(V[..., None, None], "ij")}
    values["w"] = w.transpose(2, 0, 1)
    lines = section(given, "Flow")
    evaluate(lines_of(lines, "kernel") or lines_of(section(given, "Step"), "kernel"), {}, functions)
    names = "D[i, j]", "A[i, j]", "M[i, j]", "F", "lambda", r"\frac{\mathrm dw}{\mathrm dt}"
    found = evaluate(lines_of(lines, *names), values, functions, {"i": len(p), "j": len(p)})
    F = found["F"][0].transpose(1, 2, 0)
    assert np.abs(F - right).max() <= ROUNDING * np.abs(right).max()
    moved = right - (w * right).sum(axis=-1, keepdims=True) * w
    assert np.abs(found[names[-1]][0].transpose(1, 2, 0) - moved).max() <= ROUNDING * np.abs(right).max()


@pytest.mark.parametrize("augmentation", [False, True])
def test_the_flow_on_a_mixture_is_that_of_closed_forms(augmentation):
    """Nodes are exact for the averages of a linear filter."""
    given, w = problem(data=MIXTURE | {"augmentation": augmentation}, activation="linear"), filters()
    x, weight = np.polynomial.hermite_e.hermegauss(3)
    grid = np.array(np.meshgrid(x, x, x, x)).reshape(4, -1)
    weights = np.multiply.outer(
        given.data.weights,
        np.multiply.outer(np.multiply.outer(weight, weight), np.multiply.outer(weight, weight)).ravel()
        / weight.sum() ** 4,
    ).ravel()
    root = [np.linalg.cholesky(S) for S in given.data.covariances]
    views = [
        np.concatenate(
            [m[:, None] + S @ grid[k : k + 2] for m, S in zip(given.data.centres, root, strict=True)], axis=1
        )
        for k in (0, 2 * augmentation)
    ]
    values = {"x": views[0][:, None, None], "w": w.transpose(2, 0, 1)}
    values |= {"z": np.einsum("nfd,ds->nfs", w, views[0]), "z'": np.einsum("nfd,ds->nfs", w, views[1])}
    functions = {"h": lambda z: z, "h_slope": np.ones_like, "average_of": lambda of: of @ weights}
    (F,) = evaluate(lines_of(section(given, "Flow"), "F"), values, functions)["F"]
    right = mixture_field(given, given.data).field(w.reshape(-1, 2)).reshape(w.shape)
    assert np.abs(F.transpose(1, 2, 0) - right).max() <= ROUNDING * np.abs(right).max()


TOKENS = {"law": "tokens", "places": 3, "vocabulary": 4, "patterns": [[0, 1, -1], [0, -1, 2], [-1, 1, 3], [2, -1, 2]]}
TWO_LAYERS = {
    "views": ({}, {}),
    "batch normalisation": ({}, {"model": {"batch_norm": {"active": True}}}),
    "the same views": ({"augmentation": False}, {}),
    "the same views, batch normalisation": ({"augmentation": False}, {"model": {"batch_norm": {"active": True}}}),
    "fixed variances": (
        {"augmentation": False},
        {"model": {"batch_norm": {"active": True, "differentiate_variance": False}}},
    ),
    "a sample with itself": ({}, {"importance": {"diagonal": "include"}, "population": {"finite_batch": True}}),
}


@pytest.mark.parametrize("name", TWO_LAYERS)
def test_flows_of_two_layers_are_those_of_the_code(name):
    data, tables = TWO_LAYERS[name]
    layers = {"layers": 2, "outputs": 3} | tables.get("model", {})
    tables = tables | {"model": layers, "filters": {"count": 2}, "training": {"batch_size": 8, "weight_decay": 0.3}}
    given = problem(data=TOKENS | data, **tables)
    rng, law, lines = np.random.default_rng(0), places_of(given.data), section(given, "Flow")
    h, chance, p = Filter(given.model.activation_functions), law.chance, law.probability
    drift = PlaceDrift(given)
    for _ in range(2):  # of 18 numbers of V and 24 of w each
        w, top = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 6))
        right = drift(Weights(w, top)).slope
        values = h.value(w)  # (places, filters, tokens): tokens are unit vectors
        slopes = h.slope(w)[..., None] * np.eye(4)  # (places, filters, tokens, coordinates)
        if given.model.batch_norm.active:
            alone = np.einsum("g,kga->ka", p, chance)[:, None]
            values = values - (alone * values).sum(axis=-1, keepdims=True)
            gain = 1.0 / np.sqrt((alone * values**2).sum(axis=-1, keepdims=True) + given.model.batch_norm.epsilon)
            values, slopes = gain * values, gain[..., None] * slopes
        F, X = np.einsum("kga,kma->kmg", chance, values), np.einsum("kga,kmad->kmdg", chance, slopes)
        own = np.einsum("kga,kma,kla,g->kml", chance, values, values, p) - np.einsum("kmg,klg,g->kml", F, F, p)
        Y = np.einsum("kga,kmad,kla,g->kmld", chance, slopes, values, p) - np.einsum("kmdg,klg,g->kmld", X, F, p)
        if given.model.batch_norm.active and given.model.batch_norm.differentiate_variance:
            both = np.einsum("kma,kmad,ka->kmd", values, slopes, alone[:, 0])
            X, Y = X - np.einsum("kmg,kmd->kmdg", F, both), Y - np.einsum("kml,kmd->kmld", own, both)
        V = top.reshape(3, 3, 2)
        known = {"F": counted(F, "km"), "X": counted(X, "km"), "V": counted(V[..., None], "okm"), "w": counted(w, "km")}
        known |= {"O": counted(own, "kml"), "Y": counted(Y, "kml")}
        functions = {"average_of": lambda of: of @ p}
        found = evaluate(lines_of(lines, "y[o]"), known, functions, {"o": 3})
        known["y"] = counted(found["y"][0], "o")
        for k, m in np.ndindex(3, 2):
            at = known | {"k": k + 1, "m": m + 1}
            (moved,) = evaluate(lines_of(lines, r"\dot w_{km}"), at, functions)[r"\dot w_{km}"]
            assert np.abs(moved - (right.filters[k, m] - 0.3 * w[k, m])).max() <= ROUNDING * np.abs(right.filters).max()
            for o in range(3):
                (moved,) = evaluate(lines_of(lines, r"\dot V_{okm}"), at | {"o": o + 1}, functions)[r"\dot V_{okm}"]
                assert (
                    abs(moved - (right.top.reshape(V.shape)[o, k, m] - 0.3 * V[o, k, m]))
                    <= ROUNDING * np.abs(right.top).max()
                )
    assert not unsaid(given)


@pytest.mark.parametrize(
    ("kind", "text"), [("triplet", "only SGD is followed"), ("gaussian", "averaged over large batches")]
)
def test_what_has_no_shorter_form_is_said(kind, text):
    layers = {} if kind == "triplet" else {"model": {"layers": 2, "outputs": 3}, "data": TOKENS}
    assert text in problem(kind, **layers).latex()
