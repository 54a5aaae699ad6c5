"""The leader of a federation: rounds, a durable store, HTTPS for clients and browsers, and what its operator needs.

It imports no client: everything between the two crosses the wire. Read service.py first (one worker with all its
parts), then rounds.py.

    bootstrap, config     a new federation; its config, catalogue and first model
    secure_config         the same where a helper takes part
    rounds, secure_rounds one worker leads: it opens rounds, closes them and aggregates
    selection, tickets    which clients are invited
    worker_cache          the newest state of the store, in a worker's memory
    store/                tables, queries and connections, for SQLite and PostgreSQL
    http/                 endpoints, limits, TLS
    health, metrics, logs what the operator sees
    processes             sockets and workers
"""
