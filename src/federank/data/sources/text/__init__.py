"""Tables of text: unpacked, their layout found, read whole by columns, or line by line to name the one at fault.

The readers of `sources/` call these; they know of bytes, lines and columns, and of no data set.
"""
