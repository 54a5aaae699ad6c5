"""A synthetic city, for whoever has no data at hand: the ground, the names, the visits, and draws that never change.

Only `city` is called from outside; it calls nothing but the types of `data/`.
"""
