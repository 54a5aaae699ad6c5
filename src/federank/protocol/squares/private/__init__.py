"""Frugal with a promise: messages of length 1, sums with the noise of two servers, and one epsilon for a life.

plan.py divides the promise over the messages, message.py is the device's part, fold.py the server's. In the world,
single.py makes one device's message, and cohorts.py plays the plan again with whoever comes later.
"""
