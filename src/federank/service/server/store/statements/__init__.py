"""Statements: what a federation's life consists of, functions on a connection: devices, rounds, grants, uploads, facts.

What makes rounds durable and exact is here, and is little:

1. an upload is one row, kept once, while its round is open (uploads.py);
2. closing a round changes its row from `open` to `closed`, and waits for uploads on their way in (rounds.py);
3. folding writes the next version and changes `closed` to `folded` in one transaction: both happened, or neither
   (versions.py, beside this folder).

So a crash leaves a round open, closed or folded, and whoever comes next goes on from there. They call the database and
tickets, and nothing else of the server.
"""
