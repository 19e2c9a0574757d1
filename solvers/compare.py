"""Compare results of one problem: the command `meanfield compare` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("compare")
