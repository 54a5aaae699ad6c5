"""The service: a federation in the world, with a server, a durable store, and devices that are elsewhere."""
