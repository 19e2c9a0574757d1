"""Augmentations: views show what they say, with the frequencies that they say."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.ndimage import shift
from scipy.stats import chi2

from meanfield.ingredients.images.part import Augmentation

IMAGE = np.random.default_rng(0).uniform(0.5, 1.0, (5, 4, 2))
COUNT = 4000


def views(seed=1, image=IMAGE, count=COUNT, **keys):
    return Augmentation(**keys).views(np.repeat(image[None], count, axis=0), np.random.default_rng(seed))


def test_without_keys_a_view_is_the_image():
    assert np.array_equal(views(), np.repeat(IMAGE[None], COUNT, axis=0))


def test_shifts_are_uniform_and_bring_in_zeros():
    found = views(shift=1)
    counts = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            wanted = shift(IMAGE, (-down, -right, 0), order=0)
            counts.append(int((np.abs(found - wanted).max(axis=(1, 2, 3)) < 1e-14).sum()))  # rounding of places
    assert sum(counts) == COUNT
    deviation = ((np.array(counts) - COUNT / 9) ** 2).sum() / (COUNT / 9)
    assert deviation < chi2.isf(1e-4, 8)  # the seed is fixed; another one fails once in 1e4


def test_half_of_all_views_are_flipped():
    found = views(flip=True)
    flipped = np.abs(found - IMAGE[:, ::-1]).max(axis=(1, 2, 3)) < 1e-14  # rounding of places
    same = np.abs(found - IMAGE).max(axis=(1, 2, 3)) < 1e-14  # rounding of places
    assert np.all(flipped ^ same)
    assert abs(flipped.mean() - 0.5) < 4.0 * 0.5 / np.sqrt(COUNT)  # 4 standard errors, and the seed is fixed


def test_parts_of_an_image_are_enlarged():
    """A ramp stays a ramp where no edge is near, with a slope from the least side to 1, uniformly."""
    ramp = np.repeat(np.arange(64.0)[:, None, None], 64, axis=1)
    found = views(image=ramp, count=400, crop=0.5)[:, 8:-8]
    slopes = np.diff(found, axis=1)
    middle = slopes[:, 20, 32, 0]
    assert np.allclose(slopes[:, 10:30, 32, 0], middle[:, None], atol=1e-11)  # rounding of places times 64
    assert middle.min() >= 0.5
    assert middle.max() <= 1.0
    assert abs(middle.mean() - 0.75) < 4.0 * 0.5 / np.sqrt(12 * 400)  # 4 standard errors, and the seed is fixed
    first = found[:, 20, 32, 0] - (28 + 0.5) * middle + 0.5
    assert first.min() > -1e-11  # rounding: the part lies within the image
    assert np.all(first + 64 * middle < 64 + 1e-11)  # rounding, likewise


def test_intensity_and_noise_have_their_sizes():
    factor = views(intensity=0.3)[:, 0, 0, 0] / IMAGE[0, 0, 0]
    assert 0.7 <= factor.min() < 0.701
    assert 1.299 < factor.max() <= 1.3
    noise = views(noise=0.2) - IMAGE
    assert noise.std() == pytest.approx(0.2, rel=4.0 / np.sqrt(2 * noise.size))  # 4 standard errors, seed fixed


def test_views_are_drawn_anew():
    found = views(shift=1, noise=0.1)
    assert np.array_equal(found, views(shift=1, noise=0.1))
    assert not np.array_equal(found, views(2, shift=1, noise=0.1))


@pytest.mark.parametrize("keys", [{"crop": 0.0}, {"crop": 1.5}, {"shift": -1}, {"intensity": 1.5}, {"noise": -0.1}])
def test_sizes_without_a_meaning_are_refused(keys):
    with pytest.raises(ValidationError):
        Augmentation(**keys)
