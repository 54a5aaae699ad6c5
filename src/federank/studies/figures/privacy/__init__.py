"""Figures of privacy: what messages gave away, what it costs to keep it, and what a promise costs.

They read rows as the other figures do, in the same style, and call none of them but for the front of cost.py.
"""
