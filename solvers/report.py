"""Put results on one HTML page: the command `meanfield report` as a script."""

from meanfield.commands.entry import run_script

if __name__ == "__main__":
    run_script("report")
