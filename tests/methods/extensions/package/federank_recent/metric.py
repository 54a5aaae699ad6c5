"""Whether the very first item of a list is right."""


def first_place(hits, relevant, n):
    """1 where the first position holds a test item."""
    return hits[:, 0].astype(float)
