"""The address of a store as it may be shown: without a password."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def without_password(address: str) -> str:
    """The same address; a password in it becomes dots."""
    if not address.startswith(("postgresql://", "postgres://")):
        return address
    parts = urlsplit(address)
    names, _, place = parts.netloc.rpartition("@")
    user, colon, _ = names.partition(":")
    shown = f"{user}{':…' if colon else ''}@{place}" if names else place
    # A password may stand among the options too.
    query = "" if "password" in parts.query else parts.query
    return urlunsplit((parts.scheme, shown, parts.path, query, ""))
