"""One person's device in Python: it learns at home from a history that stays there, and sends what its owner allows.

It calls the protocol, and a server over HTTPS; it imports nothing of the server, and fleets may import it. Read life.py
first.

    client         the HTTP end: retries with backoff, what comes back read up to a limit
    federation     every request, and the record that its answer becomes
    state          who the device is, its vector, its policy, as values
    store          all of it in one SQLite file; private_file keeps that file its owner's alone
    history        the owner's items, from a CSV
    round          computation, transmission, ledger: one round, with nothing sent yet
    enrolment      joining, settling in a federation that was begun anew, leaving
    life           taking part, round after round
    recommending   the best items, offline; export has everything as plain values
"""
