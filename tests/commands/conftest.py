import sys

import pytest

from meanfield.commands import entry


@pytest.fixture
def call(monkeypatch, capsys):
    """A function from the words behind `meanfield` to exit code, output and messages."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["/somewhere/bin/meanfield", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return ended.value.code, *capsys.readouterr()

    return run
