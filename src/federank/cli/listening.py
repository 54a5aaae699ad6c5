"""Options that `federank serve` and `federank helper` share: addresses, TLS and durations."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import click

from federank.cli.options import FILE, options
from federank.errors import SettingError
from federank.service.server.http.listening import bind, self_signed, server_context

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_PERIOD = 366 * 86_400


class Duration(click.ParamType[float]):
    """A duration such as 90s, 15m, 12h, 1d or 2w, in seconds; 0 is none."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds of a duration."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw]?)", str(value).strip())
        if match and (match[2] or float(match[1]) == 0):
            seconds = float(match[1]) * _UNITS.get(match[2], 1)
            if seconds <= _LONGEST_PERIOD:
                return seconds
        return self.fail(f"{value!r} is no duration of at most 366d; write 90s, 15m, 12h, 1d, 2w or 0.", param, ctx)


def listening_options(port: int) -> Callable[[Any], Any]:
    """Where a server listens, and its TLS certificate."""
    ports = click.IntRange(0, 65535)
    return options(
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all."),
        click.option("--port", type=ports, default=port, show_default=True, help="0: any free port."),
        click.option("--tls-cert", type=FILE, help="Certificate chain (PEM)."),
        click.option("--tls-key", type=FILE, help="Its key (PEM)."),
        click.option("--self-signed", is_flag=True, help="Make a certificate, and write it here for clients' --ca."),
    )


class Listening(NamedTuple):
    """Where a server listens, for everyone and for its operator, and with which certificate."""

    public: socket.socket
    operator: socket.socket
    certificate: Path | None
    key: Path | None
    host: str

    @property
    def scheme(self) -> str:
        """The scheme of its addresses."""
        return "https" if self.certificate else "http"

    @property
    def address(self) -> str:
        """Its public address."""
        return f"{self.scheme}://{shown_host(self.host)}:{self.public.getsockname()[1]}"


@contextmanager
def listening(values: dict[str, Any]) -> Iterator[Listening]:
    """Listen as the flags of a command say; what cannot be used is refused."""
    for proxy in (values["proxies"] or "*").split(","):
        # A proxy that is named otherwise than by its address would never be trusted.
        try:
            ip_network("0.0.0.0/0" if proxy.strip() == "*" else proxy.strip())
        except ValueError as reason:
            raise SettingError(
                f"--proxies names {proxy.strip()!r}; addresses or networks are needed, such as 127.0.0.1,10.0.0.0/8."
            ) from reason
    host, port, operators = values["host"], values["port"], values["admin_port"]
    certificate = _certificate(values["tls_cert"], values["tls_key"], values["self_signed"], host)
    if operators is None:
        operators = port + 1 if port else 0
    with bind(host, port) as public, bind(values["admin_host"], operators, "--admin-port") as operator:
        yield Listening(public, operator, *certificate, host)


def shown_host(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def _certificate(
    certificate: Path | None, key: Path | None, make_one: bool, host: str
) -> tuple[Path | None, Path | None]:
    """The certificate and its key that the flags ask for, made if they ask for that."""
    if make_one and (certificate is not None or key is not None):
        raise SettingError("--self-signed makes a certificate; leave it out where --tls-cert and --tls-key name one.")
    if make_one:
        hosts = dict.fromkeys((host, *LOOPBACK, socket.gethostname()))
        certificate, key = self_signed(Path.cwd(), tuple(name for name in hosts if name not in ("0.0.0.0", "::")))
    if (certificate is None) != (key is None):
        raise SettingError("A certificate and its key go together: give both --tls-cert and --tls-key.")
    if certificate is not None and key is not None:
        server_context(certificate, key)  # refuse what cannot be used before anything begins
    return certificate, key
