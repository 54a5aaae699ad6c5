"""`federank client`, as its owner types it."""

from tests.commands import refused, succeeded


def told(*words):
    """What came of a command that must succeed."""
    return succeeded("client", *words)


def complaint(*words):
    """The sentence of a command that must be refused."""
    return str(refused("client", *words))
