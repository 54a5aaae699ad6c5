"""The service: a networked federation with a server, a durable store and remote clients.

Its packages are server/, helper/, client/, simulated_clients/ and web/. Server and client import nothing of each
other. The helper shares only the server's plumbing. Simulated clients are made of clients. Only demo.py runs a server
together with simulated clients.
"""
