"""`python -m meanfield` is the command `meanfield`."""

from meanfield.commands.entry import main

main()
