"""The study on handwritten digits: its data, and its verdicts."""

import numpy as np
import pytest

from tests import ROOT
from validation.contrastive import digits


def test_the_file_of_components_holds_the_sphered_principal_components():
    images, directions, variances = digits.principal_components()
    assert directions.shape == (64, 61)
    components = np.loadtxt(ROOT / "data/reference/digits_components.csv", delimiter=",", skiprows=1)
    right = images @ directions[:, :3] / np.sqrt(variances[:3])
    np.testing.assert_allclose(components, right, rtol=0, atol=6e-7)  # the file has six decimals
    covariance = np.cov(components.T, bias=True)
    np.testing.assert_allclose(covariance, np.eye(3), rtol=0, atol=3e-6)  # six decimals of values up to 3


@pytest.mark.slow
def test_the_prediction_holds_for_model_data_only(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(digits, "OUTPUT", tmp_path)
    assert digits.main() == 0
    verdicts = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()[1:5]]
    assert verdicts == ["holds", "holds", "does not hold", "does not hold"]
    assert (tmp_path / "digits.png").stat().st_size > 10_000
