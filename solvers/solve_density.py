"""Solve a problem for the density of weights and features: the command `meanfield density` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("density")
