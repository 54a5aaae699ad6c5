"""Pair-wise learning, FPL and FedeRank: the four steps, recipes, noise, and the papers' measures of traffic.

Calls what all families share in protocol/, and models; no other family.
"""
