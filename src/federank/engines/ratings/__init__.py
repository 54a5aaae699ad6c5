"""Learning ratings in a simulation, federated or not: the federation, the reference and compiled engines.

Calls protocol/ratings and models, and what engines share; no other family.
"""
