"""Federations in one process or on a Ray cluster."""
