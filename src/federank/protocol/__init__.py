"""The protocol: what happens in a round, in four steps, and what may cross the wire.

Here lives what all families of methods share (the round, draws, messages, policies/, the ledger, the accountant); each
family's maths of the four steps is a folder of its own. Calls models and data; knows no engine and no network.
"""
