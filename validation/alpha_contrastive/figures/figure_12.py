"""Figures 12 and 13 of the paper, on digits in the place of MNIST: filters of the four quarters of an image.

The paper shows filters of 14 x 14 pixels after 50000 batches of eight samples, without augmentation and with crops of
half to all of the image; its filters differ from each other, and are smoother with crops. scikit-learn ships digits of
8 x 8 pixels, so that quarters have 4 x 4; twenty filters each, two for each digit. Smoothness is the squared difference
of neighbouring pixels over that of any two, 1 for white noise.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.process.progress import progress_bar
from validation.alpha_contrastive.figures.figure_4 import CO_LINEAR
from validation.alpha_contrastive.figures.image_sgd import FIELDS, quarters, random_crops, train_on_images
from validation.alpha_contrastive.figures.scores import nothing
from validation.alpha_contrastive.figures.two_layers import Array, Setting, effective_rank
from validation.hidden_manifold.figures.discrepancy import above, with_error
from validation.study import Statement, Study

FILTERS, BATCH, BATCHES, CROPS, SEEDS = 20, 8, 50_000, 16, 3
CASES = "no augmentation", "random crops"

DECAYED_LENGTH = 0.02
"""Length of a filter, relative to the longest of its quarter, below which decay has removed it."""


def unit_filters(w: Array) -> Array:
    """Filters of a quarter that decay has left, divided by their lengths, shape (pixels, filters)."""
    length = np.linalg.norm(w, axis=0)
    return np.asarray((w / np.maximum(length, 1e-300))[:, length > DECAYED_LENGTH * length.max()])


def roughness(kept: Array) -> float:
    """Squared difference of neighbouring pixels over that of any two, of filters of a quarter."""
    side = round(np.sqrt(len(kept)))
    grid = kept.reshape(side, side, -1)
    near = 0.5 * (np.mean(np.diff(grid, axis=0) ** 2, axis=(0, 1)) + np.mean(np.diff(grid, axis=1) ** 2, axis=(0, 1)))
    any_two = 2.0 * kept.var(axis=0, ddof=1)
    return float(np.mean(near / any_two))


def simulate() -> xr.Dataset:
    """Filters after training, by case and seed."""
    from sklearn.datasets import load_digits  # takes a second, which tests of the rest need not wait for

    images = load_digits().images / 16.0
    rng, default = np.random.default_rng(0), Setting()
    plain = quarters(images - images.mean())[:, None]
    crops = np.stack([quarters(random_crops(images, rng) - images.mean()) for _ in range(CROPS)], axis=1)
    w = np.empty((len(CASES), SEEDS, FIELDS, plain.shape[-1], FILTERS))
    with progress_bar(len(CASES) * SEEDS, "SGD on digits", "run") as bar:
        for i, views in enumerate((plain, crops)):
            for seed in range(SEEDS):
                w[i, seed] = train_on_images(views, views, FILTERS, BATCH, BATCHES, default.rate, default.decay, seed)
                bar.update(1)
    return measured(w)


def measured(w: Array) -> xr.Dataset:
    """Filters, shape (cases, seeds, quarters, pixels, filters), with how rough and how diverse they are."""
    units = [[[unit_filters(q) for q in run] for run in case] for case in w]
    found = np.array([[[(roughness(q), effective_rank(q)) for q in run] for run in case] for case in units])
    dims = ("case", "seed", "quarter")
    return xr.Dataset(
        {
            "sgd_w": ((*dims, "pixel", "filter"), w, {"long_name": "filters"}),
            "sgd_roughness": (dims, found[..., 0], {"long_name": "squared difference of neighbours over any two"}),
            "sgd_rank": (
                dims,
                found[..., 1],
                {"long_name": "effective rank of the filters of a quarter, all of length 1"},
            ),
        },
        {"case": list(CASES)},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether filters are diverse, and smoother with crops."""
    if "sgd_rank" not in numbers:
        return []
    ranks, least = numbers["sgd_rank"].mean("seed"), numbers["sgd_rank"].min("quarter").rename(seed="start")
    rough = numbers["sgd_roughness"].stack(start=("seed", "quarter")).reset_index("start", drop=True)
    gain = rough.sel(case=CASES[0]) - rough.sel(case=CASES[1])
    shown = ", ".join(f"{case} {with_error(rough.sel(case=case))}" for case in CASES)
    return [
        *(
            Statement(
                f"filters of each quarter are diverse, {case}: no single direction, of which the effective rank is 1",
                "paper, appendix E.3, figures 12 and 13",
                above(least.sel(case=case), CO_LINEAR),
                "effective ranks " + ", ".join(f"{rank:.1f}" for rank in ranks.sel(case=case).values),
            )
            for case in CASES
        ),
        Statement("crops make filters smoother", "paper, appendix E.3, figure 13", above(gain), f"roughness {shown}"),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Filters of the four quarters of the first seed: a row for each quarter, without and with crops."""
    figure = Figure(figsize=(10.0, 3.9), layout="constrained")
    side = round(np.sqrt(numbers.sizes["pixel"]))
    for axes, case in zip(figure.subplots(len(CASES), 1), CASES, strict=True):
        w = numbers["sgd_w"].sel(case=case, seed=0).values
        sheet = np.full((FIELDS * (side + 1) - 1, FILTERS * (side + 1) - 1), np.nan)
        for q in range(FIELDS):
            for m in range(FILTERS):
                filter_ = w[q, :, m].reshape(side, side)
                sheet[q * (side + 1) :, m * (side + 1) :][:side, :side] = filter_ / np.abs(filter_).max()
        image = axes.imshow(sheet, cmap="RdBu_r", vmin=-1.0, vmax=1.0, interpolation="nearest", aspect="equal")
        places = (side + 1) * np.arange(FIELDS) + 0.5 * (side - 1)
        axes.set_yticks(places, ["upper left", "upper right", "lower left", "lower right"])
        axes.set(xticks=[], title=case)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    figure.colorbar(image, ax=figure.axes, label="filter / its largest entry", shrink=0.8)
    return figure


STUDY = Study(nothing, judge, draw, simulate)
