"""Problem files of any family: reading, checking and changing them."""
