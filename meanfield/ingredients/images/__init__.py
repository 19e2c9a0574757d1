"""Images from files in their published formats, from arrays of a user, and their augmentations."""
