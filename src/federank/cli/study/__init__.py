"""`federank study`: list, run, status, report; what they say is in summary.py.

Everything they do is in studies/.
"""
