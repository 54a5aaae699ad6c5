"""Owner: what passes between a device and its owner, and no network with it.

history.py takes the owner's items in, recommending.py gives the best of the others, export.py hands everything over.
"""
