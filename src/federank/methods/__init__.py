"""The methods: one folder each, with the recommenders that users fit, store and load."""
