"""The folder in which a study keeps what it has found: lines of runs, and the rows they are gathered into.

Everybody reads it; it calls nobody else in studies/.
"""
