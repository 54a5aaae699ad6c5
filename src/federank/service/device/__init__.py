"""One person's device in Python: it learns at home from a history that stays there, and sends what its owner allows.

It calls the protocol, and a server over HTTPS; it imports nothing of the server, and fleets may import it. Read life.py
first.

    life        taking part, round after round
    enrolment   joining, settling in a federation that was begun anew, leaving
    round       computation, transmission, ledger: one round, with nothing sent yet
    state       who the device is, its policy, the Update on its way, as values
    rules       how much of an answer is read, how long is waited: the same in the browser
    requests/   all that goes over the network; store/ all that is on the disk
    methods/    what differs between the methods; owner/ the history, recommendations, the export
"""
