"""`federank study`: list, run, status, report; what they say is in told.py.

Everything they do is in studies/.
"""
