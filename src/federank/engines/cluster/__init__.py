"""One population over many machines: devices on Ray actors, the driver in the place of the server.

Calls engines/pairs, whose rounds it plays; `machines.py` knows Ray and no family, and is used by studies too.
"""
