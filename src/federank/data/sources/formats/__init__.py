"""Formats with a shape of their own: MovieLens in its editions, its published folds, RecBole, files of items.

Each hands its text to `sources/text/` and answers with `Columns`; `sources/detect.py` is who calls them.
"""
