"""`federank serve`: flags in (flags.py), a federation that is served (command.py).

Decisions live below: what a federation is and how it is opened in service/server/federation/.
"""
