"""TLS: an own certificate, or one made on the spot for a rehearsal or a closed network.

A self-signed certificate proves nothing to a stranger: devices must be given its file (`--ca`). Its key is made at run
time, kept with owner-only permissions, and used again at the next start.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

from federank.errors import TLSError as TLSError
from federank.extras import need
from federank.files import PRIVATE, write_whole

VALID_DAYS = 397


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """How connections are encrypted: TLS 1.2 or newer."""
    for path in (certificate, key):
        if not path.is_file():
            raise TLSError(f"{path} is not there; give the certificate and its key as PEM files.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as reason:
        raise TLSError(f"{certificate} and {key} cannot be used as a certificate and its key ({reason}).") from reason
    return context


def self_signed(folder: Path, hosts: tuple[str, ...]) -> tuple[Path, Path]:
    """A certificate for these hosts and its key, made if they are not in the folder yet.

    The first host is the one that matters: a certificate of an earlier start that is not for it is refused.
    """
    certificate, key = folder / "federank-cert.pem", folder / "federank-key.pem"
    need("service", "A certificate", "cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    if certificate.is_file() and key.is_file():
        _refuse_unfit(certificate, hosts[0])
        return certificate, key
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        # A day early: a device whose clock is slow must not take it for one of the future.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_named(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(secret, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    write_whole(key, secret.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), mode=PRIVATE)
    write_whole(certificate, made.public_bytes(pem))
    return certificate, key


def hosts_of(certificate: Path) -> list[str]:
    """The hosts that a certificate is for."""
    from cryptography import x509

    extensions = _read(certificate).extensions
    return [str(name.value) for name in extensions.get_extension_for_class(x509.SubjectAlternativeName).value]


def _refuse_unfit(certificate: Path, host: str) -> None:
    """Devices would refuse a certificate of another host, or one whose time is over."""
    ends = _read(certificate).not_valid_after_utc
    if ends < datetime.datetime.now(datetime.UTC):
        wrong = f"was valid until {ends:%-d %B %Y}"
    elif host not in hosts_of(certificate):
        wrong = f"is for {', '.join(hosts_of(certificate))}, not for {host}"
    else:
        return
    raise TLSError(
        f"{certificate} {wrong}. Remove it and its key to have new ones made, and give the new one to devices."
    )


def _read(certificate: Path) -> Any:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as reason:
        raise TLSError(f"{certificate} cannot be read as a certificate ({reason}).") from reason


def _named(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
