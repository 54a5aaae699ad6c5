"""The observer of a server that sees only sums over a round's devices: it plays the run once more and compares cohorts.

Calls engines/pairs; what it has noted reaches attacks as a `SumsView`.
"""
