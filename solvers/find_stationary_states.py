"""Find all stationary states of a problem, and their branches: the command `meanfield stationary` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("stationary")
