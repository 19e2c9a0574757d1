"""Panels in u: exact moments of the law, kinks that are found, and errors that bound what is left."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.extend import DensitySettings, Limit, PriorSettings
from meanfield.ingredients.laws import GaussianResidual
from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    ThreePointCoordinate,
    UniformCoordinate,
)
from meanfield.mckean_vlasov.density.lagrangian import node_search
from meanfield.mckean_vlasov.density.lagrangian.panels import Panels
from meanfield.mckean_vlasov.density.lagrangian.search import Search

FOURTH = {"gaussian": 3.0, "uniform": 1.8, "laplace": 6.0, "rademacher": 1.0}
GAUSSIAN, UNIFORM, LAPLACE = GaussianCoordinate(), UniformCoordinate(), LaplaceCoordinate()
RADEMACHER = RademacherCoordinate()
PULL = np.array([0.6, -0.35])


def make_limit(*coordinates, name="l1", strength=0.4, noise=0.2, stop=2.0):
    d1 = len(coordinates)
    return Limit(
        closure=lambda q: (-0.5 * q, noise),
        learning_rate=0.5,
        prior=PriorSettings(name=name, strength=strength),
        coordinates=coordinates,
        initial_overlap=np.array([0.3, -0.2][:d1]),
        initial_residual=GaussianResidual(),
        times=np.linspace(0.0, stop, 5),
    )


@pytest.mark.parametrize(
    "laws",
    [
        *((law,) for law in (GAUSSIAN, UNIFORM, LAPLACE)),
        *itertools.combinations_with_replacement((GAUSSIAN, UNIFORM, LAPLACE), 2),
        (RADEMACHER, GAUSSIAN),
        (UNIFORM, ThreePointCoordinate(fourth_moment=4.0), RADEMACHER),
    ],
)
def test_moments_of_the_law_are_exact(laws):
    pull = np.array([0.6, -0.35, 0.2])[: len(laws)]
    nodes = Panels.start(laws, pull, 10, 9).nodes(make_limit(*laws[:2]))
    u, weight = nodes.u, nodes.u_weight
    assert nodes.mirrored
    assert abs(weight.sum() - 1.0) < 1e-14  # rounding
    assert np.abs(np.einsum("n,ni,nj->ij", weight, u, u) - np.eye(len(laws))).max() < 1e-9  # Laplace, cut: 2e-10
    fourth = [FOURTH.get(law.law, 4.0) for law in laws]
    assert weight @ u**4 == pytest.approx(fourth, rel=3e-7)  # Laplace, cut at 20: 1e-7
    cosine = np.prod([mean_cosine(*each) for each in zip(laws, pull, strict=True)])
    assert weight @ np.cos(u @ pull) == pytest.approx(cosine, abs=1e-9)  # five times what cut Laplace laws leave


def mean_cosine(law, k):
    """Characteristic function of a coordinate."""
    values = {
        "gaussian": np.exp(-0.5 * k * k),
        "uniform": np.sinc(np.sqrt(3) * k / np.pi),
        "laplace": 1 / (1 + 0.5 * k * k),
        "rademacher": np.cos(k),
        "three_point": 1 + (np.cos(2 * k) - 1) / 4,
    }
    return values[law.law]


def distance_of_uniforms(a, b, c):
    """E|a u1 + b u2 - c| for uniform coordinates: |x|^3/6 has the second derivative |x|."""
    corners = itertools.product((1, -1), repeat=2)
    return sum(i * j * abs(np.sqrt(3) * (a * i + b * j) - c) ** 3 / 6 for i, j in corners) / (12 * a * b)


@pytest.mark.parametrize(
    ("laws", "exact"),
    [
        ((GAUSSIAN,), lambda c: 2 * norm.pdf(c) + c * (2 * norm.cdf(c) - 1)),
        ((UNIFORM, UNIFORM), lambda c: distance_of_uniforms(*PULL, c)),
    ],
)
def test_panels_find_a_kink_and_their_errors_have_the_size_of_what_is_left(laws, exact):
    """Averages given u with a kink at u.g = +-c and slightly rotated ones, as if at an earlier time."""
    pull = np.array([1.0]) if len(laws) == 1 else PULL
    limit, c = make_limit(*laws), 0.65
    panels = Panels.start(laws, pull, 8, 7)
    seen = []
    for _ in range(12):
        level = kinked(panels, limit, c)
        nodes = level.frames.nodes
        claimed, true = (
            sum(each.sum() for each in panels.errors(level)),
            abs(nodes.solved[1] @ level.given_u[1, 0] - exact(c)),
        )
        seen.append((len(nodes.u), claimed, true))
        assert true <= 30 * claimed + 1e-12  # sizes, not bounds: up to 15 here; and rounding
        if claimed < 1e-7:
            break
        panels = panels.halved(panels.errors(level), 1e-7)
    assert seen[0][2] > 1e-4  # there is something to find
    assert seen[-1][1] < 1e-7  # what was asked for
    assert seen[-1][0] < 5 * seen[0][0]  # nodes: a product of rules needs 100 times as many


def test_panels_stay_mirror_images_of_each_other():
    limit = make_limit(UNIFORM, LAPLACE)
    panels = Panels.start((UNIFORM, LAPLACE), PULL, 5, 5)
    rng = np.random.default_rng(3)
    for _ in range(3):
        errors = panels.errors(level_of(panels, limit, rng))
        panels = panels.halved(errors, np.median(errors[0]) * len(errors[0]))
        assert np.abs(panels.edges[0] + panels.edges[0][::-1]).max() < 1e-15  # rounding
        assert panels.nodes(limit).mirrored


def level_of(panels, limit, rng):
    """A level with random averages given u."""
    nodes = panels.nodes(limit)
    given_u = rng.normal(size=(3, 2, len(nodes.solved[1])))
    return SimpleNamespace(given_u=given_u, frames=SimpleNamespace(nodes=nodes))


def test_there_are_no_lines_where_no_coordinate_or_three_are_continuous():
    assert Panels.start((RADEMACHER,), np.ones(1), 8, 7) is None
    assert Panels.start((GAUSSIAN,) * 3, np.ones(3), 8, 7) is None


def test_kinks_between_the_outermost_node_and_the_end_of_a_panel_are_seen_with_more_nodes():
    limit = make_limit(UNIFORM)
    panels = Panels.start((UNIFORM,), np.ones(1), 8, 7)
    ends = panels.edges[0][len(panels.edges[0]) // 2 :]
    c = ends[1] - 0.018 * (ends[1] - ends[0])  # nodes nearest to the end: 0.020 away, of ten 0.013
    claimed = [
        sum(each.sum() for each in some.errors(kinked(some, limit, c))) for some in (panels, panels.with_more_nodes())
    ]
    assert claimed[0] < 1e-12  # nothing is seen
    assert claimed[1] > 1e-6
    more = panels.with_more_nodes()
    (changes,) = panels.changes(kinked(panels, limit, c), more, kinked(more, limit, c))
    middle = 0.5 * (panels.edges[0][1:] + panels.edges[0][:-1])
    with_kink = np.abs(np.abs(middle) - 0.5 * (ends[0] + ends[1])) < 0.25 * (ends[1] - ends[0])
    assert changes[with_kink].min() > 1e-5  # Gauss rules of 8 and 10 nodes differ by 2e-5 in |s - c| there
    assert changes[~with_kink].max(initial=0.0) < 1e-12  # polynomials, but for rounding


def kinked(panels, limit, c):
    """A level whose averages have kinks at u.g = +-c."""
    nodes = panels.nodes(limit)
    along = nodes.solved[0] @ (PULL if nodes.u.shape[1] == 2 else np.ones(1))
    kink = 0.5 * (np.abs(along - c) + np.abs(along + c))
    return SimpleNamespace(given_u=np.array([0 * kink, kink, 0 * kink])[:, None], frames=SimpleNamespace(nodes=nodes))


@pytest.mark.parametrize(
    "coordinates",
    [
        pytest.param((UNIFORM,), marks=pytest.mark.slow),
        (RADEMACHER, UNIFORM),
        pytest.param((UNIFORM, GAUSSIAN), marks=pytest.mark.slow),
    ],
)
def test_searches_on_panels_and_on_products_agree(monkeypatch, coordinates):
    limit, tolerance = make_limit(*coordinates, name="quartic"), 1e-5
    products = Search(limit, DensitySettings(), tolerance).solve()
    monkeypatch.setattr(node_search, "SLOW_TRIALS", 0)
    monkeypatch.setattr(node_search, "MOST_GROWTH", (100.0, 100.0))
    search = Search(limit, DensitySettings(), tolerance)
    panels = search.solve()
    assert search._node_search.product is not None  # there were panels
    assert panels.status == products.status == "complete"
    difference = np.abs(panels.moments - products.moments)[:, :-2]
    assert (difference <= panels.errors.moments + products.errors.moments).all()  # what both promise
    lines = {tuple(row) for row in panels.grid.u[:, 1:]}
    assert len(panels.grid.u) >= 2 * len(lines)  # of two features, densities are shown at products of nodes


@pytest.mark.slow
def test_searches_on_panels_bound_their_error():
    """Kinks in u under an l1 prior with hardly any noise; against many more nodes."""
    limit = make_limit(UNIFORM, noise=1e-5, stop=4.0)
    search = Search(limit, DensitySettings(), 1e-6)
    ours = search.solve()
    assert ours.status == "complete"
    assert search._node_search.product is not None  # there were panels
    assert len(search._found.levels[0].frames.nodes.u_weight) < 200
    other = Search(limit, DensitySettings(feature_nodes=300), 1e-6).solve()
    difference = np.abs(ours.moments - other.moments)[:, :-2]
    assert (difference <= ours.errors.moments + 1e-6).all()  # what is promised, and what many nodes leave
