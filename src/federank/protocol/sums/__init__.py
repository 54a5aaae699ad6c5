"""Sums that no single server can open: what a message becomes before it is split, and the noise that hides a sum.

Knows no family of methods: a message here is a vector of numbers. The simulation and the service call the same
functions; only the randomness handed in differs (named draws there, the operating system's here).
"""
