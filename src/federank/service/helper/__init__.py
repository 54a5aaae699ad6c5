"""The helper: the second server of sums. It opens seeds, adds masks up, and never sees an upload, an item or a title.

A leader asks it, and signs what it asks; clients fetch its identity and nothing else. It calls the protocol of sums and
the plumbing of the server's http/ and store/ (sockets, TLS, limits, the layer over two databases); it knows nothing of
the leader's rounds, methods or clients, and no other package imports it.
"""
