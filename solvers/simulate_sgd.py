"""Simulate a problem by SGD at finite N: the command `meanfield sgd` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("sgd")
