"""Solve a problem of any family by one of its methods: the command `meanfield solve` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("solve")
