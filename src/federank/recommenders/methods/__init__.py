"""One file per method, each with its settings record (or that of its recipe in protocol/) and its class.

A method learns (`_learn`), scores (`_score_users`) and says what a server and what devices hold of it; all else is
written once in recommender.py.
"""
