"""The norm check: a proof that a message which nobody can read is no longer than it may be (docs/norm-check.md).

Plain functions on bytes and arrays, for the device and for both servers. It knows no service and no family of methods.
"""
