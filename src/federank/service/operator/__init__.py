"""The operator's end of the wire: asks a running federation's admin address, with the operator's token.

It shares the rules of the device's client for addresses and certificates, and imports no server.
"""
