"""Requests to the operator's address: each is answered at once or refused with the server's own sentence."""

from __future__ import annotations

import json
import ssl
from typing import Any

from federank.errors import BadAnswer, NoAnswer, Refused
from federank.service.device.requests.client import checked_address, needed_httpx, trusted_certificates

PREFIX = "/admin/api/v1"
TIMEOUT = 60.0


class OperatorClient:
    """A connection to one federation's admin address."""

    def __init__(self, address: str, token: str, *, ca: str | None = None, insecure: bool = False) -> None:
        self._httpx = needed_httpx()
        self.address = checked_address(address.removesuffix("/admin"), insecure)
        secure = self.address.startswith("https")
        self._http = self._httpx.Client(
            verify=trusted_certificates(ca) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT,
        )

    def __enter__(self) -> OperatorClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """What the server answers to a question, as JSON."""
        return self._answer("GET", path, params=query).json()

    def post(self, path: str, content: dict[str, Any] | None = None) -> Any:
        """What the server answers to an action, as JSON."""
        return self._answer("POST", path, json=content or {}).json()

    def download(self, path: str, **query: Any) -> tuple[bytes, dict[str, str]]:
        """Bytes, and the headers that came with them."""
        answer = self._answer("GET", path, params=query)
        return bytes(answer.content), dict(answer.headers)

    def _answer(self, method: str, path: str, **values: Any) -> Any:
        try:
            answer = self._http.request(method, f"{self.address}{PREFIX}{path}", **values)
        except self._httpx.TransportError as reason:
            raise NoAnswer(
                f"{self.address} does not answer ({reason or type(reason).__name__}); is it the operator's address, "
                "which `federank serve` prints at its start?"
            ) from reason
        if answer.is_success:
            return answer
        try:
            told = json.loads(answer.content)
            slug, message = str(told["error"]), str(told["message"])
        except (ValueError, KeyError, TypeError):
            raise BadAnswer(f"{self.address} answered {answer.status_code}, and not as a federation does.") from None
        raise Refused(answer.status_code, slug, message)
