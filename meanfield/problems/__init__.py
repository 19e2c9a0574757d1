"""Problem files: reading, checking and changing what they say, for any family."""
