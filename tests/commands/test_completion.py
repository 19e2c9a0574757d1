"""Completion knows every command and every option, and which arguments are files."""

import subprocess
import sys

import pytest

from meanfield.commands import dispatch
from meanfield.commands.dispatch import COMMANDS
from meanfield.errors import InputError


@pytest.fixture
def bash(capsys):
    """The script for bash."""
    pytest.importorskip("shtab")
    assert dispatch.run_named(["completion", "bash"]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_bash_completes_a_command_an_option_and_a_file(bash, tmp_path):
    (tmp_path / "completion").write_text(bash)
    (tmp_path / "problem.toml").touch()
    for words, expected in (
        *((["meanfield", name], name) for name in COMMANDS),
        (["meanfield", "dens"], "density"),
        (["meanfield", "density", "--back"], "--backend"),
        (["meanfield", "density", "--backend", "fi"], "fipy"),
        (["meanfield", "density", "prob"], "problem.toml"),
    ):
        line = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
        code = f". ./completion; {line}; _shtab_meanfield meanfield {words[-1]}; echo ${{COMPREPLY[@]}}"
        ended = subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
        assert ended.stdout.split() == [expected], ended.stderr


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(
        InputError, match=r"completion is made by shtab: pip install 'meanfield-dynamics\[completion\]'"
    ):
        dispatch.run_named(["completion", "zsh"])
