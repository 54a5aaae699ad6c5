"""Joining from another device of the same network: an address, a code to scan, and a certificate's fingerprint.

A certificate that is made at start is known to nobody, so browsers warn of it. Whoever compares the fingerprint that
the browser shows with the one that is printed here knows that nobody is in between.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from pathlib import Path
from typing import Any

from federank.errors import SettingError

ANY = ("0.0.0.0", "::")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def network_address(host: str) -> str:
    """The address by which others on the network find this machine, where it listens on all of its addresses."""
    if host not in ANY:
        return host
    # No packet is sent: a datagram socket that is pointed somewhere only looks up the way there.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
            found = str(line.getsockname()[0])
        except OSError:
            found = ""
    if not found or found.startswith("127."):
        raise SettingError("This machine has no address on a network; leave --host out, or name an address.")
    return found


def certificate_fingerprint(certificate: Path) -> str:
    """SHA-256 of a certificate, as browsers show it."""
    digits = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest().upper()
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def code_rows(address: str) -> list[str]:
    """A QR code of an address: a row of 0 and 1 for each line, with its quiet edge."""
    import segno

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(address, micro=False).matrix_iter()]


def code_lines(address: str) -> str:
    """The same for a terminal, two rows a line; dark on light whatever the terminal's colours are."""
    rows = code_rows(address)
    rows += ["0" * len(rows[0])] * (len(rows) % 2)
    blocks = {"00": " ", "10": "▀", "01": "▄", "11": "█"}
    lines = [
        "".join(blocks[one + other] for one, other in zip(*rows[place : place + 2], strict=True))
        for place in range(0, len(rows), 2)
    ]
    return "\n".join(f"\x1b[30;107m{line}\x1b[0m" for line in lines)


def joining_facts(address: str, certificate: Path | None) -> dict[str, Any]:
    """What the operator's page shows to whoever wants to join."""
    return {
        "address": address,
        "fingerprint": None if certificate is None else certificate_fingerprint(certificate),
        "code": code_rows(address),
    }
