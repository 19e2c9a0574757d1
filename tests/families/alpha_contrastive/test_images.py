"""Images in the format of MNIST: receptive fields, random parts, and SGD on them."""

import numpy as np
import pytest

import meanfield
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.laws.images import cropped, quarters
from tests.families.alpha_contrastive.problems import data, problem_from
from tests.families.alpha_contrastive.test_particles import check_gradient
from tests.ingredients.images.files import write_idx

IMAGES = np.arange(3 * 4 * 6, dtype=np.uint8).reshape(3, 4, 6)


def problem(folder, activation="tanh", **law):
    given = {"law": "images", "file": "images-idx3-ubyte", "rows": 4, "columns": 6} | law
    tables = {
        "filters": {"count": 2},
        "training": {"batch_size": 5},
        "time": {"stop": 0.2, "outputs": 2},
        "particles": {"replicas": 2, "test_batches": 1},
    }
    importance = {"kind": "infonce", "temperature": 0.5, "epsilon": 1.0}
    found = data(law=given, importance=importance, **tables)
    return problem_from(found | {"model": {"activation": activation, "layers": 2, "outputs": 3}}, folder)


def test_problems_with_bad_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        problem(tmp_path)
    write_idx(tmp_path / "images-idx3-ubyte", IMAGES)
    with pytest.raises(InputError, match="has images of 4 x 6 pixels, but rows = 6 and columns = 6"):
        problem(tmp_path, rows=6)


def test_receptive_fields_are_the_quarters():
    fields = quarters(IMAGES.astype(float))
    np.testing.assert_array_equal(fields[1, 0], IMAGES[1, :2, :3].ravel())
    np.testing.assert_array_equal(fields[1, 1], IMAGES[1, :2, 3:].ravel())
    np.testing.assert_array_equal(fields[2, 2], IMAGES[2, 2:, :3].ravel())


def test_parts_of_a_plane_are_planes_within_it():
    """Bilinear interpolation is exact on planes: steps from pixel to pixel are side/size, away from the edges."""
    rows, columns = np.mgrid[:12, :12].astype(float)
    rng = np.random.default_rng(0)
    for axis, plane in ((1, rows), (2, columns)):
        found = cropped(np.tile(plane, (200, 1, 1)), rng)
        step = np.diff(found, axis=axis)[:, 4:7, 4:7]
        assert np.ptp(step, axis=(1, 2)).max() < 1e-13  # rounding
        # sides are sqrt(area/ratio) of 1, at least sqrt(0.5/1.5) and sqrt(0.5 * 0.5), and at most 1
        assert np.sqrt(0.25) <= step.min() < 0.62
        assert 0.98 < step.max() <= 1.0 + 1e-13  # rounding
        assert found.min() >= 0.0
        assert found.max() <= 11.0 + 1e-12  # rounding


@pytest.mark.parametrize("crop", [False, True])
def test_sgd_on_images(tmp_path, crop):
    write_idx(tmp_path / "images-idx3-ubyte", IMAGES)
    given = problem(tmp_path, crop=crop)
    check_gradient(given)
    result = meanfield.solve(given, "particles")
    assert result["weights"].shape == (2, 2, 4, 2, 6)
    assert "chi_plus" not in result
