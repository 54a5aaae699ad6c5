"""The address of a store as it may be shown: without a password.

It is masked as text, from the first colon to the last `@`, before anybody takes it apart: a password with a `/`, `?` or
`#` in it would otherwise be taken for a host, and shown.
"""

from __future__ import annotations

from urllib.parse import unquote


def without_password(address: str) -> str:
    """The same address; a password in it becomes dots."""
    if not address.startswith(("postgresql://", "postgres://")):
        return address
    scheme, _, rest = address.partition("//")
    names, at, host = rest.rpartition("@")
    if _has_password(names.partition("?")[2]):
        return f"{scheme}//…"  # the `@` may be one of a password among the options
    user, colon, _ = names.partition(":")
    host, mark, options = host.partition("?")
    shown = "" if _has_password(options) else mark + options
    return f"{scheme}//{user}{':…' if colon else ''}{at}{host}{shown}"


def may_be_misread(address: str) -> bool:
    """Whether a database could take a part of the password for a host or a port, and complain of it by its name."""
    names = address.partition("//")[2].rpartition("@")[0]
    return "/" in names or "@" in names


def _has_password(options: str) -> bool:
    return "password" in unquote(options).lower()
