"""The rules that every client keeps, whatever it is written in; web/client/rules.js has the same (a test compares).

They say how much of a server's answers a client takes, how long it waits, and how often it tries again. What the
protocol itself fixes (draws, steps, messages) is in protocol/.
"""

from __future__ import annotations

from federank.federation.client import MOST_FACTORS as MOST_FACTORS
from federank.federation.client import MOST_PASSES as MOST_PASSES
from federank.federation.client import MOST_SUPPORT as MOST_SUPPORT
from federank.federation.client import MOST_TRIPLES as MOST_TRIPLES
from federank.federation.method import MOST_MESSAGES as MOST_MESSAGES

API = 1
"""Version of the interface."""
METHODS = ("fpl", "frugal", "pmf")
"""The methods that the page has a client of."""
SUMMED_METHODS = ("frugal", "pmf")
"""And under secure aggregation."""

# What an answer may hold.
MOST_ITEMS = 10_000_000
MOST_ROUND = 2**32 - 1
MOST_VERSION = 10**15 - 1
LONGEST_TEXT = 512  # of a ticket, a token, a digest
MOST_SMALL_BYTES = 2**20  # of any answer that is neither a model nor a catalogue
MOST_CATALOGUE_BYTES = 256 * 2**20
MOST_OLDER_OFFERS = 10
"""So often in a row the server may offer a round on an older model than the client has: one of its workers may lag."""

# Seconds.
LONG_POLL = 25
"""How long the server is asked to hold a request for work."""
BETWEEN_POLLS = 1
"""A client that was answered at once waits this long before it asks again."""
FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 60
FIRST_WAIT = 30
"""After its upload was discarded with its round, a client waits this long before it takes part again."""
LONGEST_WAIT = 3600
"""Every further discarded round doubles that wait, up to this."""
MOST_PERIODS = 8
"""Where the federation has an upload period, waits begin with one period, and grow up to this many."""
LONGEST_PERIOD = 366 * 86_400
"""Longest upload period that a client accepts."""
LONGEST_RETRY_AFTER = 3600
"""A server that asks for more patience is asked again after this."""
