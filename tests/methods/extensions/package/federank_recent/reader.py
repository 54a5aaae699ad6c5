"""A reader: orders of a shop, a line each, `user: item item item`."""


def read_orders(path):
    """A list of rows."""
    lines = (line.split(":") for line in path.read_text().splitlines())
    return [(int(user), int(item)) for user, items in lines for item in items.split()]
