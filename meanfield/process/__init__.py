"""Services of the operating system to a run: progress, interrupts, locks, files that are replaced as a whole."""
