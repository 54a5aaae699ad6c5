"""The server of a federation: HTTPS for devices and browsers, rounds, a durable store, what an operator needs.

It calls the protocol and its own rooms, and imports no device: all that passes between them crosses the wire. Read
service.py first (one worker, all its parts), then rounds.py.

    federation    what a federation is: federation config, catalogue, first model, published versions
    methods       what a server must know of a method
    http          middleware, rate limits, timeouts, TLS
    endpoints     what can be asked, by whom
    store         tables, statements and connections, for SQLite and PostgreSQL
    rounds        the leader, one worker of all, plays rounds; dispatcher hands out tickets
    latest        what a worker has seen of the store
    processes     sockets and workers
"""
