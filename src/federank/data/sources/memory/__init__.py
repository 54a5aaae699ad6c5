"""Data that is in memory already: pandas and Polars frames, plain arrays, and columns whose types are known.

They answer with `Columns` like the readers of files; `loading.py` is who calls them, and Parquet goes this way too.
"""
