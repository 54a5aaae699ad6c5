"""The client's HTTP client: one request at a time, retried with backoff, and never more read than was asked for.

A client is on bad networks and trusts no one. So here, and nowhere else in the client:

1. The address is https, with the server's certificate checked (against the operator's own authority where `ca` names
   one). Plain http is for this very machine, or with an explicit `insecure`.
2. A response is read up to a size that its reader names beforehand and within a timeout, unpacked too; what is longer
   is cut off and refused. Redirects are not followed.
3. What may pass (no connection, a cut one, 429, 5xx) is retried after an exponential backoff with jitter (half to all
   of it), and not before `Retry-After` asks for; up to a deadline or a number of attempts, and only as long as the
   request is still wanted. Waiting for a rate limit is no failed attempt.
4. What will not pass (a bad certificate, any other 4xx) is raised at once: BadAnswer, Refused (federank/errors.py).

Which requests there are, and what their responses must hold, is in federation.py.
"""

from __future__ import annotations

import json
import random
import ssl
import time
import zlib
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from federank.errors import BadAnswer, NoAnswer, Refused, SettingError, Withdrawn
from federank.extras import need
from federank.federation.client import integer as integer
from federank.federation.client import number as number
from federank.service.client.rules import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    LONGEST_RETRY_AFTER,
    LONGEST_TEXT,
    MOST_SMALL_BYTES,
)

if TYPE_CHECKING:
    import httpx


PREFIX = "/api/v1"
CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT = 10.0, 30.0
RESPONSE_TIMEOUT = 120.0
"""However slowly a response drips, it is given up after this many seconds."""


class Response(NamedTuple):
    """What came back: a status of 2xx or 304, and the full content."""

    status: int
    content: bytes


class Retryable(Exception):
    """A fault that may be over at the next attempt.

    `retry_after` is how many seconds the server asked for; `is_limit` whether a rate limit asked for them.
    """

    def __init__(self, reason: str, retry_after: float = 0.0, is_limit: bool = False) -> None:
        super().__init__(reason)
        self.retry_after, self.is_limit = retry_after, is_limit


class Client:
    """A connection to one server; `note` hears of every attempt that failed."""

    def __init__(
        self,
        address: str,
        *,
        ca: str | None = None,
        ca_flag: str = "--ca",
        insecure: bool = False,
        token: str | None = None,
        invitation: str | None = None,
        prefix: str = PREFIX,
        note: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._httpx = needed_httpx()
        self.address = checked_address(address, insecure)
        self.token, self.note, self.sleep, self.jitter, self.clock = token, note, sleep, jitter, clock
        self.invitation = invitation  # where only the invited may enrol
        self._ca_flag, self._prefix = ca_flag, prefix
        self.has_enrolled_again = False  # a server that forgets a client twice is not asked a third time
        secure = self.address.startswith("https")
        self._http = self._httpx.Client(
            verify=trusted_certificates(ca, ca_flag) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            trust_env=not is_loopback(urlsplit(self.address).hostname or ""),
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        most_bytes: int = MOST_SMALL_BYTES,
        hold: float = 0.0,
        deadline: float | None = None,
        attempts: int | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The server's response, with retries until the deadline (of `time.monotonic`) and at most this many attempts.

        `hold` is how long the server may hold the request (a long poll) beyond the usual timeout. `is_wanted` is asked
        before every attempt. A rate limit (429) that says when to retry uses up no attempt: the server has answered.
        """
        failed = limited = 0
        while True:
            if not is_wanted():
                raise Withdrawn(f"What was to be sent to {self.address} is no longer wanted; it was not tried again.")
            try:
                timeout = FIRST_BYTE_TIMEOUT + hold
                if deadline is not None:
                    timeout = min(timeout, max(0.1, deadline - time.monotonic()))
                return self._attempt(method, path, body, most_bytes, timeout, headers or {})
            except Retryable as fault:
                failed += 1
                limited += fault.is_limit
                pause = max(self._backoff(failed), min(fault.retry_after, LONGEST_RETRY_AFTER))
                out_of_time = deadline is not None and time.monotonic() + pause > deadline
                if out_of_time or (attempts is not None and failed - limited >= attempts):
                    raise NoAnswer(
                        f"{self.address} did not answer ({fault}), after {failed} tries; is the server running, and "
                        "is this its address?"
                    ) from fault
                self.note(f"{fault}; trying again in {pause:.1f} s")
                self.sleep(pause)

    def _backoff(self, failed: int) -> float:
        longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failed - 1, 30))
        return longest * (0.5 + 0.5 * self.jitter())

    def _attempt(
        self, method: str, path: str, body: bytes | None, most_bytes: int, seconds: float, extra: dict[str, str]
    ) -> Response:
        headers = {"Accept-Encoding": "identity", **extra}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/octet-stream")
        timeout = self._httpx.Timeout(min(CONNECT_TIMEOUT, seconds), read=seconds)
        url = self.address + self._prefix + path
        try:
            with self._http.stream(method, url, content=body, headers=headers, timeout=timeout) as response:
                content = bounded_content(response, most_bytes)
        except self._httpx.TransportError as fault:
            refuse_bad_certificate(fault, self.address, self._ca_flag)
            raise Retryable(f"the connection to {self.address} failed: {_reason(fault)}") from fault
        status = response.status_code
        if 200 <= status < 300 or status == 304:
            return Response(status, content)
        slug, message = read_refusal(content)
        if status == 429 or status >= 500:
            asked = read_retry_after(response.headers.get("retry-after", ""))
            raise Retryable(f"{self.address} answered {status}: {message}", asked, status == 429 and asked > 0)
        raise Refused(status, slug, f"{self.address} answered {status}: {message}")


# What comes back: read up to a limit, unpacked up to the same limit, or refused.


def bounded_content(response: httpx.Response, most_bytes: int) -> bytes:
    """The content of a response, unpacked, unless it is longer than was asked for or takes too long."""
    began, content = time.monotonic(), bytearray()
    for piece in _unpacked(response, most_bytes):
        content += piece
        if len(content) > most_bytes:
            raise BadAnswer(
                f"The server's answer is longer than the {most_bytes:,} bytes it can have at most; it was not read "
                "further."
            )
        if time.monotonic() - began > RESPONSE_TIMEOUT:
            raise Retryable(f"the answer was not complete after {RESPONSE_TIMEOUT:.0f} s")
    return bytes(content)


def _unpacked(response: httpx.Response, most_bytes: int) -> Iterator[bytes]:
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        yield from response.iter_raw()
        return
    if packing != "gzip":
        raise BadAnswer(f"The server packed its answer as {packing[:40]!r}, which was not asked for.")
    unpack = zlib.decompressobj(wbits=31)
    try:
        for piece in response.iter_raw():
            yield unpack.decompress(piece, most_bytes + 1)  # a bomb goes off one byte above the limit
    except zlib.error as reason:
        raise BadAnswer(f"The server's answer is not the gzip it says it is ({reason}).") from reason


def read_refusal(content: bytes) -> tuple[str, str]:
    """The reason in one word and the sentence of an error's body, with no power over the terminal."""
    try:
        error = json.loads(content)
        slug, message = str(error["error"]), str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        slug, message = "unknown", "no reason was given"
    return slug[:40], "".join(letter if letter.isprintable() else " " for letter in message[:300])


def read_retry_after(text: str) -> float:
    """How many seconds to wait: given as a number or as a date; 0 where it is neither."""
    try:
        return max(0.0, float(text)) if text else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


# Whom to talk to, and whom to believe.


def checked_address(address: str, insecure: bool = False) -> str:
    """The server's address without a slash at its end, once it is sure that what is sent there stays private."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise SettingError(f"--server is {address!r}; an address such as https://example.org:8470 is needed.")
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
        raise SettingError(
            f"{address} is plain http to another machine: anyone on the way could read and change what is sent. Use "
            "https, or say --insecure if the way is private."
        )
    return address.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this very machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def trusted_certificates(ca: str | None, flag: str = "--ca") -> ssl.SSLContext:
    """Whom to believe: the operator's own authority where its file is named (by a flag), else the system's."""
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as reason:
        raise SettingError(f"{flag} {ca} cannot be read as certificates in PEM format: {reason}.") from reason


def needed_httpx() -> Any:
    """The package httpx, or an error that says how to get it."""
    need("service", "A connection to a server", "httpx")
    import httpx

    return httpx


def refuse_bad_certificate(fault: BaseException, address: str, flag: str) -> None:
    """A certificate that cannot be checked will not get better: no retry, and nothing sent."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise BadAnswer(
                f"The certificate of {address} cannot be trusted ({cause.verify_message}); nothing was sent. If that "
                f"server has a certificate of its own, name its file with {flag}."
            ) from fault
        cause = cause.__cause__ or cause.__context__


def _reason(fault: Exception) -> str:
    return (str(fault) or type(fault).__name__).rstrip(".")


# The values of a server's answers: numbers in their range, short texts, names that people will see; or a refusal.


def shown(value: Any) -> str:
    """A name that people will see: of a bounded length, and with no power over a terminal."""
    name = str(value)[:500]
    return name if name.isprintable() else "".join(letter if letter.isprintable() else " " for letter in name)


def json_object(content: bytes, what: str) -> dict[str, Any]:
    """The object that an answer must be; `what` it was about is named if it is none."""
    try:
        answer = json.loads(content.decode())  # of bytes, json would also take UTF-16 and UTF-32
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise BadAnswer(f"The server's answer {what} is not the JSON that was asked for.")
    return answer


def text(value: Any) -> str:
    """A short text of plain letters."""
    if not isinstance(value, str) or not (value.isascii() and value.isprintable() and 0 < len(value) <= LONGEST_TEXT):
        raise BadAnswer(f"The server answered {str(value)[:40]!r} where a short text is needed.")
    return value
