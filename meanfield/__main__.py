"""`python -m meanfield` is the command `meanfield`."""

from meanfield.commands.entry import main

if __name__ == "__main__":
    main()
