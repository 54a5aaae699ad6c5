"""Pair-wise learning in a simulation: the federation, the reference and compiled engines, the replay of a run's draws.

Calls protocol/pairs and models, and what engines share; no other family. The cluster is opened from here.
"""
