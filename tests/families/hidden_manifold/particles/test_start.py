"""Features, teacher and student at t = 0: spectra and overlaps are exactly those of the problem."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.particles.features import blocks_of, draw_features
from meanfield.families.hidden_manifold.particles.steppers import Chain, Plain
from meanfield.numerics.compiled.matrix_products import unpack
from tests.families.hidden_manifold.particles.problems import LINEAR, MEANS, RANDOM, TWO_BLOCKS, make_problem

SUM_ERROR = 1e-12  # some hundred sums of a hundred numbers of order 1
SINGULAR = "teacher.overlap = [[1.0, 1.0], [1.0, 1.0]]"
UPPER = 'inputs.spectrum = { law = "atoms", eigenvalues = [0.4, 1.6], teacher = [0.0, 2.0] }'
WIDE_MIXTURE = (
    'inputs.spectrum = { law = "atoms", eigenvalues = [0.0, 1.5], weights = [0.33333333333, 0.66666666667] }\n'
    "inputs.aspect_ratio = 1.5"
)
WIDER_MIXTURE = WIDE_MIXTURE.replace("1.5], weights = [0.33333333333, 0.66666666667]", "0.75, 2.25]")


def features_of(plain):
    panels = plain._inputs.panels
    return np.sqrt(panels.shape[1]) * unpack(panels, plain._W.shape[1])


def test_prescribed_eigenvalues_are_those_of_the_features():
    problem = make_problem(
        'inputs.spectrum = { law = "atoms", eigenvalues = [1.75, 0.25, 1.0], weights = [0.4, 0.4, 0.2] }'
    )
    blocks = blocks_of(problem)
    assert blocks.rho.tolist() == [0.25, 1.0, 1.75]
    assert blocks.size.tolist() == [40, 20, 40]
    F = draw_features(problem, blocks, np.random.default_rng(0))
    rho = np.repeat(blocks.rho, blocks.size)
    assert np.linalg.eigvalsh(F @ F.T / 200) == pytest.approx(rho, abs=SUM_ERROR)  # rounding of sums


def test_directions_of_prescribed_features_are_uniform():
    """Entries of a random orthonormal row, scaled to variance 1, have the law of a uniform direction."""
    settings = 'particles = { dimension = 6, column_lengths = "random" }'
    problem = make_problem('inputs.spectrum = { law = "atoms", eigenvalues = [1.0] }', settings)
    rng = np.random.default_rng(0)
    entries = np.concatenate([draw_features(problem, blocks_of(problem), rng)[:, :2] for _ in range(1000)])
    directions = rng.standard_normal((3000, 6))
    directions *= np.sqrt(6) / np.linalg.norm(directions, axis=1, keepdims=True)
    p = [ks_2samp(entries[:, i], directions[:, i]).pvalue for i in range(2)]
    assert min(p) > 0.01 / 2  # 1 % of false alarms, had the seed not been fixed


@pytest.mark.parametrize(
    "lines", [(), (TWO_BLOCKS,), (UPPER,), (WIDER_MIXTURE,), ("inputs.aspect_ratio = 1.5",)], ids=str
)
def test_columns_are_of_one_length_unless_asked_otherwise(lines):
    equal, drawn = (
        draw_features(problem, blocks_of(problem), np.random.default_rng(0))
        for problem in (make_problem(*lines, f'particles.column_lengths = "{kind}"') for kind in ("equal", "random"))
    )
    assert np.sum(equal**2, axis=0) == pytest.approx(len(equal), rel=SUM_ERROR * 100)  # 1e-12 is what rotations leave
    assert np.sum(drawn**2, axis=0).std() / len(drawn) > 0.05
    if lines and "spectrum" in lines[0]:
        assert equal @ equal.T == pytest.approx(drawn @ drawn.T, abs=SUM_ERROR * 1000)  # products of up to 300
    assert np.abs(equal).max() < 1.3 * np.abs(drawn).max()  # as spread out as before


def test_independent_entries_have_the_moments_of_the_marchenko_pastur_law():
    problem = make_problem("particles.dimension = 400")
    F = draw_features(problem, blocks_of(problem), np.random.default_rng(0))
    gram = F @ F.T / 400
    assert np.trace(gram) / 200 == pytest.approx(1, abs=4 * np.sqrt(2 / (400 * 200)))  # four standard deviations
    assert np.sum(gram**2) / 200 == pytest.approx(1.5, abs=4 * 0.017)  # standard deviation of 200 runs: .0166


@pytest.mark.parametrize("lines", [(), (TWO_BLOCKS,), (UPPER,), (SINGULAR,), (WIDE_MIXTURE,)], ids=str)
def test_an_informed_start_has_its_overlaps_exactly(lines):
    problem = make_problem(*lines)
    plain = Plain(problem, range(3, 4))
    F, Wt, W, N = features_of(plain), plain._teacher, plain._W, 200
    D = len(Wt)
    T, X, G = problem.teacher_overlap, problem.initial_on_teacher, problem.student.rest
    features = F.T @ Wt / np.sqrt(N)
    rest = W.T - features @ X.T
    assert Wt.T @ Wt / D == pytest.approx(T, abs=SUM_ERROR)  # rounding of sums
    assert rest.T @ rest / N == pytest.approx(G, abs=SUM_ERROR)  # rounding of sums
    assert rest.T @ features == pytest.approx(0, abs=100 * SUM_ERROR)  # products of vectors of length sqrt(N)
    rows = plain.rows
    S = W @ F.T / np.sqrt(N)
    assert rows["Omega"][0] == pytest.approx(W @ W.T / N, abs=SUM_ERROR)  # rounding of sums
    assert rows["Sigma"][0] == pytest.approx(S @ S.T / D, abs=SUM_ERROR)  # rounding of sums
    slope = problem.inputs.moments[0].slope
    assert rows["R"][0] == pytest.approx(slope * S @ Wt / D, abs=SUM_ERROR)  # rounding of sums


@pytest.mark.parametrize("lines", [(TWO_BLOCKS,), (UPPER,), (WIDE_MIXTURE,)], ids=str)
def test_the_chain_starts_with_the_same_overlaps(lines):
    problem = make_problem(LINEAR, *lines, 'particles.method = "chain"')
    T, X, G = problem.teacher_overlap, problem.initial_on_teacher, problem.student.rest
    chain = Chain(problem, range(3))
    blocks = blocks_of(problem)
    rho, size = blocks.rho, blocks.size * blocks.teacher
    D = int(blocks.size.sum())
    gram = chain._gram
    assert gram[:, : len(rho), 2:, 2:] == pytest.approx(
        np.tile(size[:, None, None] * T, (3, 1, 1, 1)),
        abs=100 * SUM_ERROR,  # sums of many products
    )
    rows = chain.rows
    average = X @ T @ X.T * (rho @ size) / D
    assert rows["Omega"] == pytest.approx(np.tile(0.5 * average * D / 100 + G, (3, 1, 1)), abs=SUM_ERROR)  # rounding
    assert rows["R"] == pytest.approx(np.tile(X @ T * (rho @ size) / D, (3, 1, 1)), abs=SUM_ERROR)  # rounding of sums


@pytest.mark.parametrize("lines", [(TWO_BLOCKS, MEANS), (TWO_BLOCKS, *RANDOM)], ids=["informed", "random"])
def test_both_starts_have_the_same_law(lines):
    problem = make_problem(LINEAR, *lines, "particles.dimension = 24", "particles.seed = 5")
    plain = [Plain(problem, range(i, i + 1)).rows for i in range(150)]
    chain = Chain(problem, range(150, 650)).rows
    p = []
    for name in ("Omega", "Sigma", "R", "field_mean"):
        ours = np.concatenate([rows[name] for rows in plain]).reshape(150, -1)
        theirs = chain[name].reshape(500, -1)
        for i in range(ours.shape[1]):
            if ours[:, i].std() > 1e-9:  # else it is exact
                p.append(ks_2samp(ours[:, i], theirs[:, i], method="asymp").pvalue)
    assert len(p) > 5
    assert min(p) > 0.01 / len(p)  # 1 % of false alarms, had the seeds not been fixed


def test_small_spaces_are_refused():
    with pytest.raises(
        InputError, match=r"particles.dimension = 3 with inputs.aspect_ratio = 0.5: 3 inputs have no room"
    ):
        Plain(make_problem("particles.dimension = 3"), range(1))
    with pytest.raises(InputError, match=r"no room for 4 vectors.*raise particles.dimension"):
        Chain(make_problem(LINEAR, TWO_BLOCKS, "particles.dimension = 16"), range(1))
