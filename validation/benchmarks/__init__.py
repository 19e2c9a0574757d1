"""Speed of the library beside the limits of the machine and beside other software."""
