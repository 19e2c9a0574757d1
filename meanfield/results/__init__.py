"""Results of methods: Datasets of one schema, and the files that store them."""
