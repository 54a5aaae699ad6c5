"""Learning ratings, FedRec's PMF and SVD++: the four steps, recipes, messages, and virtual ratings.

Calls what all families share in protocol/, and models; no other family.
"""
