"""What an operating system does to a run: progress, interrupts, locks, files that are replaced as a whole."""
