"""The service: a federation in the world, with a server, a durable store, and devices that are elsewhere.

Its rooms are server/, helper/, device/, fleet/ and web/. Server and device import nothing of each other; a helper
shares the server's plumbing alone; a fleet is made of devices; neighbourhood.py alone puts a server and a fleet
together, for someone who wants to look.
"""
