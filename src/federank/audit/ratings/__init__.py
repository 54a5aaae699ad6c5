"""The audit of learning ratings: which items somebody has rated, and how.

Observers call engines/ratings and protocol/ratings, and no other family; attacks import views and arrays only.
"""
