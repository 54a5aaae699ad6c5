"""The audit of few messages (Frugal, FCF): a server that reads messages, and one that has only sums of them.

Attacks import only the views; the observers call engines/squares and protocol/squares, and no other family.
"""
