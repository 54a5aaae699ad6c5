"""The server's HTTP: applications and the middleware before them, rate limits, timeouts, TLS, responses.

Whatever is true of every request is in application.py; what is particular to one is in the modules of endpoints (_api).
"""
