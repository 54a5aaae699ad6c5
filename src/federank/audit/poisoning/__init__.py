"""The other enemy: devices that lie. A rehearsal of poisoned federations, with the defences and without.

    world       honest people, liars, and a cold item that the liars want to see on everybody's list
    measure     what honest people get: exposure of the item, its median rank, precision
    pairs       rounds of FPL with liars in them, and what they send
    squares     the same for Frugal
    checked     the same where only sums are read, of messages whose norm was checked
    private     the same for sums with noise
    rehearsal   the same federation honest, attacked without defences, and attacked with them

It calls engines and protocol; the defences are the protocol's own (protocol/defences.py), as a server uses them.
"""
