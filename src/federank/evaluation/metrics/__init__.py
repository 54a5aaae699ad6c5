"""Metrics: how well lists hit, what they show of the catalogue, how far ratings are off, which categories gain.

Each is a small function on arrays, with its formula beside it. They call data and arrays, and know neither models nor
the evaluation that asks for them.
"""
