"""The data sets that are known by name: where their files lie, whose they are, and how they are fetched whole.

Readers ask here for a path; nothing here opens a table.
"""
