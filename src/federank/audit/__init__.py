"""The audit: an honest-but-curious server that sees only what clients send, guesses their histories, and is scored.

Here is what all audits share (guesses, judging, marks, findings); each family has a folder with its observers, its
views and its attacks. Observers call engines; attacks see a view and nothing else.
"""
