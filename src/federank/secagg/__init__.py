"""Two-server secure aggregation. Nothing else knows cryptography."""
