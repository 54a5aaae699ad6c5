"""The leader's line to its helper: every request is signed, every answer is read with a bound."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any

from federank.errors import BadMessage, SettingError
from federank.secagg.canonical import hexadecimal
from federank.secagg.exchange import SIGNATURE_HEADER, Terms, encode_reports, sign_request
from federank.secagg.keys import SIGNATURE_BYTES, HelperIdentity, identity_from
from federank.secagg.proof.parameters import Parameters
from federank.secagg.proof.preparing import decode_looks, look_bytes
from federank.secagg.upload import Report

MOST_SMALL = 1 << 20
ANSWER_SECONDS, CONNECT_SECONDS = 60.0, 5.0


AWAY, CERTIFICATE, FULL, IDENTITY, NOT_ALLOWED, REFUSES, BEHIND = (
    "helper-away",
    "helper-certificate",
    "helper-full",
    "helper-identity",
    "helper-not-allowed",
    "helper-refuses",
    "leader-behind",
)
REMEDIES = {
    AWAY: "Start the helper, or look at the network between the two servers.",
    CERTIFICATE: "Renew the helper's certificate, or name its authority with --helper-ca.",
    FULL: "Free space on the helper's disk.",
    IDENTITY: "Restore the helper's store from its backup: the identity key that clients have pinned is in it.",
    NOT_ALLOWED: "Ask the helper's operator to allow this leader's key: federank helper allow.",
    REFUSES: "Look at the helper's log; both servers may need the same version of federank.",
    BEHIND: "The helper knows later rounds: this store was restored from a backup. Start once with --restored.",
}
"""Why no round can go on, as health, log and metrics name it, and what to do about it."""


class HelperAway(Exception):
    """The helper did not answer, or could not; `code` is one of `REMEDIES`."""

    def __init__(self, message: str, code: str = AWAY) -> None:
        super().__init__(message)
        self.code = code


class HelperRefused(Exception):
    """The helper said no; `slug` is its reason in a word."""

    def __init__(self, slug: str, message: str) -> None:
        super().__init__(message)
        self.slug = slug


class HelperLine:
    """A leader's connection to its helper."""

    def __init__(self, origin: str, private: bytes, authority: str | None = None) -> None:
        self._private = private
        self._fault: str | None = None  # not asked yet
        self.on_change: Callable[[str], object] = lambda _code: None
        import httpx  # a federation of plain uploads does without

        self._http_error = httpx.HTTPError
        timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        self._http = httpx.Client(base_url=origin, timeout=timeout, verify=_trusted(authority), follow_redirects=False)

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def identity(self) -> HelperIdentity:
        """Who is at the helper's address."""
        return identity_from(self._ask("GET", "/identity"))

    def register(self, config: bytes) -> bytes:
        """Ask the helper to serve this season of a federation; its signature of the config."""
        answer = _read_json(self._ask("POST", "/federations", config))
        return hexadecimal(answer.get("signature"), SIGNATURE_BYTES, "The helper's signature")

    def prune(self, config: str) -> None:
        """Have the helper drop the sums of a season that has ended."""
        self._ask("POST", f"/federations/{config}/prune")

    def offer(self, config: str, number: int, terms: Terms) -> bytes:
        """The helper's signed offer of a round."""
        return self._ask("POST", _place(config, number, "offer"), terms.to_bytes())

    def prepare(self, config: str, number: int, reports: list[Report]) -> list[bool]:
        """Which of these reports stand."""
        answer = _read_json(self._ask("POST", _place(config, number, "prepare"), encode_reports(reports)))
        stands = answer.get("stands")
        if not isinstance(stands, str) or len(stands) != len(reports) or not set(stands) <= {"0", "1"}:
            raise BadMessage("The helper must say of every report whether it stands; this answer does not.")
        return [digit == "1" for digit in stands]

    def look(self, config: str, number: int, reports: list[Report], check: Parameters) -> list[bytes | None]:
        """The helper's look at each of these reports, whose messages carry proofs; None for one that does not stand."""
        most = len(reports) * (1 + look_bytes(check))
        content = self._ask("POST", _place(config, number, "prepare"), encode_reports(reports), MOST_SMALL + most)
        return decode_looks(check, content, len(reports))

    def answer(self, config: str, number: int, reports: list[Report], length: int) -> bytes:
        """The helper's record and its noisy sum of the masks of a set."""
        return self._ask("POST", _place(config, number, "answer"), encode_reports(reports), MOST_SMALL + 4 * length)

    def abandon(self, config: str, number: int) -> bytes:
        """End a round without an answer; the helper's record of it."""
        return self._ask("POST", _place(config, number, "abandon"))

    def rounds(self, config: str, first: int = 0) -> dict[int, str]:
        """The rounds of a season as the helper lists them, from a number on, with their states."""
        listed: dict[int, str] = {}
        while True:
            rounds = _read_json(self._ask("GET", f"/federations/{config}/rounds?from={first}")).get("rounds", [])
            listed |= {int(one["round"]): str(one["state"]) for one in rounds}
            if not rounds:
                return listed
            first = int(rounds[-1]["round"]) + 1

    def _ask(self, method: str, path: str, body: bytes = b"", most: int = MOST_SMALL) -> bytes:
        headers = {} if method == "GET" else {SIGNATURE_HEADER: sign_request(self._private, path, body)}
        content = bytearray()
        try:
            with self._http.stream(method, path, content=body, headers=headers) as response:
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > most:
                        raise BadMessage(f"The helper's answer is longer than the {most:,} bytes it can have at most.")
        except self._http_error as fault:
            code = CERTIFICATE if _is_certificate(fault) else AWAY
            self.note(code)
            why = (str(fault) or type(fault).__name__).rstrip(".")[:200]
            raise HelperAway(f"The helper did not answer ({why}). {REMEDIES[code]}", code) from fault
        status = response.status_code
        if status == 429 or status >= 500:
            code = FULL if b'"full"' in content[:200] else AWAY
            self.note(code)
            raise HelperAway(f"The helper cannot answer now ({status}).", code)
        if not 200 <= status < 300:
            answer = _read_json(bytes(content))
            raise HelperRefused(str(answer.get("error", "unknown"))[:40], str(answer.get("message", ""))[:300])
        return bytes(content)

    def note(self, code: str) -> None:
        """Report what is wrong with the helper, when that has changed; nothing: an empty code."""
        if code != self._fault:
            self._fault = code
            self.on_change(code)


def _is_certificate(fault: BaseException) -> bool:
    """Whether a connection failed because of the helper's certificate."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _place(config: str, number: int, act: str) -> str:
    return f"/federations/{config}/rounds/{number}/{act}"


def _read_json(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise BadMessage("The helper's answer is not the JSON that it should be.")
    return answer


def _trusted(authority: str | None) -> ssl.SSLContext:
    """Whom to believe: the helper's own authority where one is given, else the system's."""
    try:
        return ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as reason:
        raise SettingError(f"The helper's certificates cannot be read as PEM ({reason}).") from reason
