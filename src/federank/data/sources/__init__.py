"""Readers: one file per format, each answering with `Columns`; nothing after them knows where data came from.

`federank.data.loading` chooses the reader. The way of a text file is: `contents` unpacks it, `layout` finds its
delimiter and header, `roles` says which column is what, `delimited` reads the columns whole, and `faults` names
the line where one of them breaks.
"""
