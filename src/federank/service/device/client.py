"""The device's end of the line: one request at a time, tried again with patience, and never more than was asked for.

A device lives on bad networks and trusts nobody. So here, and nowhere else in the device:

1. The address is https, with the server's certificate checked (against the operator's own authority where `ca` names
   one). Plain http is for this very machine, or for who says `insecure` out loud.
2. An answer is read up to a size that its reader names beforehand and within a time, unpacked too; what is longer
   is cut off and refused. Redirects are not followed.
3. What may pass (no connection, a cut one, 429, 5xx) is tried again after a pause that doubles from try to try, with
   jitter (half to all of it), and is at least what `Retry-After` asks for; up to a moment (`until`) or a number of
   tries, and only as long as it is `still` wanted.
4. What will not pass (a bad certificate, any other 4xx) is said at once.

How much of an answer is read is in client_answers.py; what answers mean, in device_answers.py.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from federank.errors import SettingError
from federank.service.device.transfer import (
    Answer,
    BadAnswer,
    NoAnswer,
    Passing,
    Refused,
    Withdrawn,
    bounded_content,
    complaint,
    retry_after,
)

PREFIX = "/api/v1"
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
LONGEST_ASKED_PAUSE = 3600.0  # a server that asks for more with Retry-After is asked again after this
SECONDS_TO_CONNECT, SECONDS_TO_BEGIN = 10.0, 30.0
SMALL = 1 << 20
"""More bytes than any answer that is not a model or a catalogue has."""


def checked_address(address: str, insecure: bool = False) -> str:
    """The server's address without a slash at its end, once it is sure that what is sent there stays private."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingError(f"--server is {address!r}; an address such as https://example.org:8470 is needed.")
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
        raise SettingError(
            f"{address} is plain http to another machine: anybody on the way could read and change what is sent. Use "
            "https, or say --insecure if the way is private."
        )
    return address.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this very machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Client:
    """A line to one server; `note` is told about every try that failed."""

    def __init__(
        self,
        address: str,
        *,
        ca: str | None = None,
        insecure: bool = False,
        token: str | None = None,
        note: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        httpx = needed_httpx()
        self.address = checked_address(address, insecure)
        self.token, self.note, self.sleep, self.jitter = token, note, sleep, jitter
        self._http = httpx.Client(
            verify=trusted_certificates(ca)
            if self.address.startswith("https")
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            trust_env=not is_loopback(urlsplit(self.address).hostname or ""),
        )

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        most_bytes: int = SMALL,
        wait: float = 0.0,
        until: float | None = None,
        tries: int | None = None,
        still: Callable[[], bool] = lambda: True,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """The server's answer; tried again until this moment (of `time.monotonic`) and at most so many times.

        `wait` is how long the server may take before it begins to answer, beyond the usual. `still` is asked before
        every try whether it is still wanted.
        """
        tried = 0
        while True:
            if not still():
                raise Withdrawn(f"What was to be sent to {self.address} is no longer wanted; it was not tried again.")
            try:
                seconds = SECONDS_TO_BEGIN + wait
                if until is not None:
                    seconds = min(seconds, max(0.1, until - time.monotonic()))
                return self._try(method, path, body, most_bytes, seconds, headers or {})
            except Passing as passing:
                tried += 1
                longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tried - 1, 30))
                pause = max(longest * (0.5 + 0.5 * self.jitter()), min(passing.wait, LONGEST_ASKED_PAUSE))
                out_of_time = until is not None and time.monotonic() + pause > until
                if out_of_time or (tries is not None and tried >= tries):
                    raise NoAnswer(
                        f"{self.address} did not answer ({passing}), after {tried} tries; is the server running, and "
                        "is this its address?"
                    ) from passing
                self.note(f"{passing}; trying again in {pause:.1f} s")
                self.sleep(pause)

    def _try(
        self, method: str, path: str, body: bytes | None, most_bytes: int, seconds: float, extra: dict[str, str]
    ) -> Answer:
        httpx = needed_httpx()
        headers = {"Accept-Encoding": "identity", **extra}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/octet-stream")
        timeout = httpx.Timeout(min(SECONDS_TO_CONNECT, seconds), read=seconds)
        url = self.address + PREFIX + path
        try:
            with self._http.stream(method, url, content=body, headers=headers, timeout=timeout) as response:
                content = bounded_content(response, most_bytes)
        except httpx.TransportError as fault:
            _refuse_bad_certificate(fault, self.address)
            raise Passing(f"the connection to {self.address} failed: {_reason(fault)}") from fault
        status = response.status_code
        if 200 <= status < 300 or status == 304:
            return Answer(status, {name.lower(): value for name, value in response.headers.items()}, content)
        slug, message = complaint(content)
        if status == 429 or status >= 500:
            asked = retry_after(response.headers.get("retry-after", ""))
            raise Passing(f"{self.address} answered {status}: {message}", asked)
        raise Refused(status, slug, f"{self.address} answered {status}: {message}")


def needed_httpx() -> Any:
    """The package httpx, or a sentence on how to get it."""
    try:
        import httpx
    except ImportError:
        raise SettingError(
            "Talking to a server needs the package httpx, which is not installed: "
            'pip install "federank[service]" brings it.'
        ) from None
    return httpx


def trusted_certificates(ca: str | None) -> ssl.SSLContext:
    """Whom to believe: the operator's own authority where its file is named, else the system's."""
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as reason:
        raise SettingError(f"--ca {ca} cannot be read as certificates in PEM format: {reason}.") from reason


def _refuse_bad_certificate(fault: BaseException, address: str) -> None:
    """A certificate that cannot be checked will not get better: no second try, and nothing sent."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise BadAnswer(
                f"The certificate of {address} cannot be trusted ({cause.verify_message}); nothing was sent. If the "
                "federation has a certificate of its own, name its file with --ca."
            ) from fault
        cause = cause.__cause__ or cause.__context__


def _reason(fault: Exception) -> str:
    return (str(fault) or type(fault).__name__).rstrip(".")
