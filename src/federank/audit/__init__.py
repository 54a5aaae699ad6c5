"""The audit: a curious server that sees only what devices send, guesses their histories, and is scored."""
