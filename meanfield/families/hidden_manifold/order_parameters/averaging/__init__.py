"""Two time scales: overlaps that move by averages over fields that the mean of inputs moves within single steps."""
