"""Methods: what a device must know of each method that it can take part in, one file for each.

They call the protocol's maths and codec, and know nothing of requests or of the disk. method.py has the record that the
rest of the device calls, registry.py lists them.
"""
