"""Solve a problem for its order parameters: the command `meanfield order-parameters` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("order-parameters")
