"""Literature behind a result, as BibTeX: the papers and software that its family declares for it, and this version."""

from meanfield.citation.citation import cite

__all__ = ["cite"]
