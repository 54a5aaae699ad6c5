"""The audit of pair-wise learning: who is followed, what their Updates or sums show, views of it, and attacks.

Observers call engines/pairs and protocol/pairs, and no other family; attacks import views, messages and arrays only.
"""
