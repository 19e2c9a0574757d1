"""Kills, full disks, damaged files and interrupts for everything that writes a file."""
