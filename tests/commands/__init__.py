"""Commands by name, what they import, and how they end while they do."""
