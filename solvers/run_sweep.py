"""Solve many problems at once: the command `meanfield sweep` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("sweep")
