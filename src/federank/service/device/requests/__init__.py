"""Requests: all that a device says over the network, and all that it lets a server tell it.

client.py is the HTTP end, federation.py has every request and the record that its answer becomes, answers.py checks
values one by one, and sums.py speaks to the two servers of which neither can read an upload. They know methods and
rules, and nothing of the disk.
"""
