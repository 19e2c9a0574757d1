"""Several channels: the start of a problem, averages over batches, and the order parameters q and M."""
