"""A reader who does what a page says, from top to bottom.

A block under a caption is a file of that name. Blocks of Python share one namespace. Scripts run in this process, as
`__main__`, and commands of `meanfield` as they are installed. A session (`console`) is not run, and neither is what
sets up an environment; what they name must exist.
"""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pydantic import ValidationError

from meanfield.commands.dispatch import COMMANDS
from meanfield.commands.entry import main
from meanfield.errors import InputError
from meanfield.extend import Part
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.file import parse_problem
from meanfield.sweep import Sweep, parse_sweep
from meanfield.sweep.definition import Axis
from tests.documentation.outputs import assert_same
from tests.documentation.pages import ROOT, Block

SET_UP = (
    r"\. \.venv/bin/activate",
    r"git clone \S+",
    r"cd meanfield",
    r"pip install .+",
    r"make( [\w-]+)*",
    r"dask (scheduler|worker .+)",
)
SMALL_TOOLS = ("cat", "cp", "echo", "ls", "mkdir", "printf", "rm", "sed")


def lay_out(folder: Path) -> None:
    """Make a folder look like the root of a clone; what is written there stays there."""
    for name in ("problems", "reference", "sweeps"):
        shutil.copytree(ROOT / "data" / name, folder / "data" / name)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("solvers", "validation"):
        shutil.copytree(ROOT / name, folder / name, copy_function=os.symlink, ignore=ignored)


class Reader:
    """One reader of one page, in the working directory."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}

    def follow(self, block: Block) -> None:
        """Do what a block says, and compare what it prints with what the page shows."""
        if block.caption is not None:
            Path(block.caption).parent.mkdir(parents=True, exist_ok=True)
            Path(block.caption).write_text(block.text)
        shown = getattr(self, block.language)(block)
        if block.output is not None:
            assert shown is not None, f"a block of {block.language} prints nothing, and the page shows {block.output}"
            assert_same(block.output, shown)

    def python(self, block: Block) -> str | None:
        """Run a block; one that is a file is only compiled, since another block imports it."""
        # Line numbers of errors are those of the page.
        code = compile("\n" * block.begin + block.text, block.caption or "page", "exec")
        if block.caption is not None:
            return None
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(code, self.namespace)
        return shown.getvalue()

    def sh(self, block: Block) -> str:
        """Run commands one after another."""
        commands = block.text.replace("\\\n", " ").splitlines()
        return "".join(self.command(line) for line in commands if line.strip() and not line.startswith("#"))

    def console(self, block: Block) -> None:
        """Check the commands of a session."""
        for line in block.text.splitlines():
            if line.startswith("$ ") and not is_set_up(line[2:]):
                known = script(line[2:]) or is_installed(line[2:]) or study(line[2:])
                assert known, f"nothing is known about the command '{line}'"

    def toml(self, block: Block) -> None:
        """Check a problem or a sweep, or a part of one: known keys with values that are allowed."""
        data = tomllib.loads(block.text)
        if {"model", "family"} & set(data) or {"axes", "problem"} <= set(data):
            folder = Path(block.caption or "page").resolve().parent
            (parse_sweep if "axes" in data else parse_problem)(block.text, folder)
            return
        faults = [list(wrong(model, data)) for model in (Problem, Sweep, Axis)]
        assert not all(faults), faults

    def text(self, block: Block) -> None:
        """Output is compared with what prints it."""

    def command(self, line: str) -> str:
        """Run a command of a kind that is known, and return what it prints."""
        if is_set_up(line):
            return ""
        path = script(line)
        if path is not None:
            return run_script(path, shlex.split(line, comments=True)[2:])
        if is_installed(line):
            return run_installed(line)
        assert shlex.split(line)[0] in SMALL_TOOLS, f"nothing is known about the command '{line}'"
        return subprocess.run(["sh", "-euc", line], capture_output=True, text=True, check=True).stdout


def wrong(model: type[Part], data: dict[str, Any]) -> Iterator[str]:
    """What a part of a file says that is not allowed; it may leave out what it wants."""
    try:
        model.model_validate(data, context={"folder": Path.cwd()})
    except (ValidationError, InputError) as error:
        found = error.__cause__ if isinstance(error, InputError) else error
        assert isinstance(found, ValidationError)
        yield from (f"{item['loc']}: {item['msg']}" for item in found.errors() if item["type"] != "missing")


def is_set_up(line: str) -> bool:
    """Whether a command sets up an environment; its targets of make and extras of pip must exist."""
    words = shlex.join(shlex.split(line, comments=True))
    if not any(re.fullmatch(pattern, words.replace("'", "")) for pattern in SET_UP):
        return False
    if words.startswith("make"):
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words.split()[1:]) <= set(targets), f"'{line}': there is no such target"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    if re.search(r"pip install .*meanfield(?!-)", words):
        assert project["name"] == "meanfield", f"'{line}': the distribution is called {project['name']}"
    for named in re.findall(r"\[([\w,]+)\]", words):
        assert set(named.split(",")) <= set(extras), f"'{line}': there is no such extra"
    return True


def script(line: str) -> Path | None:
    """The script that a command runs."""
    found = re.match(r"python (solvers/\w+\.py)\b", line)
    return ROOT / found[1] if found and (ROOT / found[1]).exists() else None


def is_installed(line: str) -> bool:
    """Whether a command is `meanfield` with one of its commands."""
    words = shlex.split(line, comments=True)
    return words[:1] == ["meanfield"] and words[1:2] != [] and words[1] in (*COMMANDS, "--help", "--version")


def study(line: str) -> Path | None:
    """The module of `validation` that a command runs."""
    found = re.match(r"\.venv/bin/python -m (validation[. ][\w.]+)( |$)", line)
    path = ROOT.joinpath(*re.split("[. ]", found[1])).with_suffix(".py") if found else None
    return path if path is not None and path.exists() else None


def run_script(path: Path, arguments: list[str]) -> str:
    """What a script prints; it must end well."""
    return shown_by(lambda: runpy.run_path(str(path), run_name="__main__"), [str(path), *arguments])


def run_installed(line: str) -> str:
    """What a command of `meanfield` prints, where its output goes into no file; it must end well."""
    words = shlex.split(line, comments=True)
    if words[-2:-1] == [">"]:
        Path(words[-1]).write_text(shown_by(main, words[:-2]))
        return ""
    return shown_by(main, words)


def shown_by(run: Callable[[], object], words: list[str]) -> str:
    """What is printed by a program, which must end well, for the words of a command line."""
    shown = io.StringIO()
    with (
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(shown),
        pytest.raises(SystemExit) as ended,
    ):
        run()
    assert ended.value.code == 0, f"{words}: {shown.getvalue()}"
    return shown.getvalue()
