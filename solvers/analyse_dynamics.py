"""Analyse what the reduced ODEs of a problem do: the command `meanfield dynamics` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("dynamics")
