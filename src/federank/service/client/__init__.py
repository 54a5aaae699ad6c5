"""A client of a federation: its rounds, its owner's choices, its files."""
