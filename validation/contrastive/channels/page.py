"""Writes docs/several_channels_study.md: every study of several channels, from its file."""

from __future__ import annotations

from pathlib import Path

from meanfield.cli import run
from validation import ROOT
from validation.contrastive.channels import FOLDER
from validation.pages import write_page

STUDIES = "collapse", "phase_diagram", "random_starts", "mixtures", "three_channels", "shared_noise", "chains"
"""In the order of the page."""

PAGE = ROOT / "docs" / "several_channels_study.md"

HEAD = """# Studies of several channels

What the penalty on covariances does to several channels, and what chance does: thresholds and regions of the
[theory](theory/several_channels.md#6-what-it-predicts) against the ODE from many starts and SGD at finite N. `make
figures` makes this page, the figures, and a netCDF file of the numbers behind each in data/runs/several_channels;
`python -m validation contrastive.channels.collapse` makes one of them.

**In short.** Without a penalty channels that start alike become one, and random starts do so ever more often as N
grows. Above a small strength of the penalty channels part, and each learns a feature of its own, as a single channel
does. Above a second strength, which grows with the batch size, every channel is a mixture: that only single features
can be learnt is true of one channel, and of several between the two strengths.

Statements *of the paper* are about one channel, which is all that it analyses; here some are carried over to several.
"""


if __name__ == "__main__":
    files = [FOLDER / f"{name}.nc" for name in STUDIES]
    run(lambda: write_page(PAGE, HEAD, files, Path(__file__).resolve().parent))
