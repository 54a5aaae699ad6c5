"""What can be asked of the server: by anybody, by devices, by the operator.

Each endpoint is a function of the service and a request; routes.py lists them all. They call the service's parts and
the store, and are called by the middleware.
"""
