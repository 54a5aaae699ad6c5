"""The store: all that must survive, in SQLite or PostgreSQL, as functions on a connection.

SQL stands here and nowhere else in the server. It calls nothing of the server but records of what is kept: tickets, and
versions of the model.
"""
