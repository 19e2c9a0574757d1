"""Colours and lines that all figures share, which people with colour-blindness can tell apart (Okabe and Ito)."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

LINES = ("-", "--", "-.", ":")
