"""Interactions and splits on disk: Parquet inside a model's folder, tables of text for everybody else.

Models, commands and users call these. What is written appears whole or not at all (files.py) and is read back equal.
"""
