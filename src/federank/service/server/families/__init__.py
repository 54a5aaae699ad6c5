"""Families: what a server must know of each method that it can serve, one file for each.

A family calls the protocol's maths and codec of its own folder; the rest of the server calls families through the
record in family.py and never asks which one it has. registry.py lists them.
"""
