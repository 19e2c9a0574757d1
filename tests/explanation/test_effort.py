"""What an explanation takes itself: memory is limited, and work that would cost is counted or estimated."""

import math
import subprocess
import sys

import pytest

import meanfield
from meanfield.families.alpha_contrastive.explanation import costs
from meanfield.families.alpha_contrastive.limit.fields import scale_of_angles
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.problems.file import parse_problem
from tests import ROOT

PROBLEMS = ROOT / "data" / "problems"

LIMITED = """
import resource, sys
from pathlib import Path
import meanfield
from meanfield.problems.file import parse_problem
text = Path(sys.argv[1]).read_text()
meanfield.explain(parse_problem(text))  # imports and loads what is compiled
mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + 200_000_000,) * 2)
for old, new in zip(sys.argv[2::2], sys.argv[3::2]):
    assert old in text
    text = text.replace(old, new)
particles = meanfield.explain(parse_problem(text)).predictions[-1]
print(particles.method, particles.reason)
"""
"""Explanation of a problem with other values than in its file, in 200 MB more than that of the file takes."""


@pytest.mark.skipif(sys.platform != "linux", reason="needs the memory that a process has, as Linux says it")
@pytest.mark.parametrize(
    "changes",
    [
        ["depth = 3 ", "depth = 16 "],  # 65,536 leaves, a thousand samples and 64 anchors: 4 GB
        ["depth = 3 ", "depth = 1 ", "children = 2", "children = 16", "latent = 2", "latent = 64"],  # tables of 4e6
    ],
)
def test_large_trees_are_explained_in_little_memory(changes):
    command = [sys.executable, "-c", LIMITED, str(PROBLEMS / "latent_tree.toml"), *changes]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "particles \n"), ended.stderr


def test_averages_of_channels_are_prepared_once(monkeypatch):
    """Those of |C| take seconds: a Fourier series is tried, and random batches are drawn."""
    made, prepare = [], ChannelClosure.__init__
    monkeypatch.setattr(ChannelClosure, "__init__", lambda self, problem: (made.append(1), prepare(self, problem))[1])
    explained = meanfield.explain(meanfield.load_problem(PROBLEMS / "two_channels.toml"))
    assert {p.method for p in explained.predictions if p.applies} >= {"density", "order parameters", "dynamics"}
    assert len(made) == 1


def test_critical_points_are_searched_once_on_few_arcs(monkeypatch):
    """The enumeration at the least temperature takes ten seconds and half a gigabyte."""
    tried, search = [], costs.find_critical_points
    monkeypatch.setattr(costs, "find_critical_points", lambda problem: (tried.append(problem), search(problem))[1])
    text = (PROBLEMS / "nine_points.toml").read_text()
    cold = parse_problem(text.replace("temperature = 0.1", "temperature = 1e-6"))
    seconds = {p.method: p.seconds for p in meanfield.explain(cold).predictions}
    assert [round(2.0 * math.pi / scale_of_angles(problem)) for problem in tried] == [costs.ARCS]
    assert seconds["optimal filters"] > seconds["critical points"] > 3.0  # START, and some seconds more
