"""What the study on digits decides from given numbers, and its identities on the digits themselves."""

import numpy as np
import xarray as xr

from validation.latent_tree import digits


def made_up(**gains):
    """Numbers in which rows of the tables differ by given points, with a spread of 0.2 points between seeds."""
    accuracy = np.full((len(digits.ROWS), len(digits.SEEDS), len(digits.EPOCHS)), 0.9)
    spread = 0.002 * np.linspace(-1.0, 1.0, len(digits.SEEDS))
    for i, row in enumerate(digits.ROWS):
        accuracy[i] += 0.01 * gains.get(row, 0.0) + spread[:, None] * (i % 2)
    along = (2, len(digits.SEEDS), len(digits.EPOCHS), 3)
    falling = np.linspace(0.5, 0.1, len(digits.EPOCHS))[:, None] + 0.01 * spread[:, None, None]
    dims = ("run", "seed", "epoch", "layer")
    return xr.Dataset(
        {
            "identity": (("case", "layer"), np.full((4, 3), 1e-15)),
            "spectrum": ("layer", np.full(3, 1e-14)),
            "strength_residue": (("strength", "layer"), np.outer(digits.STRENGTHS, np.ones(3))),
            "sgd_accuracy": (("row", "seed", "epoch"), accuracy),
            "sgd_residue": (dims, np.broadcast_to(falling[..., None][:, :, 0], along)),
            "sgd_norm": (dims, np.broadcast_to(1.0 / falling[..., None][:, :, 0], along)),
        },
        {
            "case": list(digits.CASES),
            "layer": [1, 2, 3],
            "strength": digits.STRENGTHS,
            "row": list(digits.ROWS),
            "seed": list(digits.SEEDS),
            "epoch": digits.EPOCHS,
            "run": digits.OF_OPERATORS,
        },
    )


def verdicts(numbers):
    return {statement.text: statement.holds for statement in digits.judge(numbers)}


def test_equal_rows_are_equally_good_and_nothing_helps():
    found = verdicts(made_up())
    assert found["exact loss and InfoNCE are equally good, one negative"] is True
    assert found["beta = -0.5 is as good as 0 late"] is True
    assert found["beta = -0.5 is better than 0 early"] is None
    assert found["exact loss: noise in the weights helps early"] is None
    assert found["InfoNCE: the residue shrinks during training"] is True
    assert found["norms of operators grow, though outputs are normalised"] is True


def test_rows_that_differ_are_told_apart():
    found = verdicts(made_up(**{"exact": -5.0, "exact, noise": -8.0, "beta = -0.5": 3.0, "beta = 0.2": 3.0}))
    assert found["exact loss and InfoNCE are equally good, one negative"] is False
    assert found["exact loss and InfoNCE are equally good, eight negatives"] is True
    assert found["exact loss: noise in the weights helps in the end"] is False
    assert found["beta = -0.5 is better than 0 early"] is True
    assert found["beta = 0.2 is worse than 0 late"] is False


def test_the_figure_shows_all_rows():
    figure = digits.draw(made_up())
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == list(digits.ROWS)


def test_runs_of_a_seed_begin_alike():
    first, second = (digits.problem_of(row, 3) for row in ("exact", "InfoNCE"))
    assert np.array_equal(first.initial_weights.vector, second.initial_weights.vector)
    assert first.particles.seed == second.particles.seed == 3
    assert len(first.data.read) == 1797
