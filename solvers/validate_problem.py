"""Validate a problem file and explain it in words: the command `meanfield validate` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("validate")
