"""What a federation is, and the model that it publishes.

The charter and the catalogue are written once and read by every worker; opening a store goes on with what is in it. It
calls the store and the families, and is called by the whole server.
"""
