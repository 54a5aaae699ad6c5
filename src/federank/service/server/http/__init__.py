"""The server's HTTP: applications and the middleware before them, rate limits, timeouts, TLS, responses.

Whatever is true of every request is here; what is particular to one is in endpoints/.
"""
