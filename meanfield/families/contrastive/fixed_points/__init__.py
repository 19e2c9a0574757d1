"""Fixed points of the reduced ODEs: all of them, their branches, regions of attraction, and phase portraits."""
