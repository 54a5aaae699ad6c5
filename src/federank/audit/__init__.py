"""The audit: a honest-but-curious server that sees only what devices send, guesses their histories, and is scored.

Here lives what all audits share (guesses, judging, marks, findings); each family has a folder with its observers, its
views and its attacks. Observers call engines; attacks see a view and nothing else.
"""
