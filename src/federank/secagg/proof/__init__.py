"""Proof that the norm of an upload is bounded, without showing the upload."""
