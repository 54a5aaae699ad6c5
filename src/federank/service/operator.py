"""Requests to the operator's address: each is answered at once or refused with the server's own sentence."""

from __future__ import annotations

import json
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load

from federank.data.formats import empty_history, read_catalogue
from federank.errors import BadAnswer, BadFile, ModelError, NoAnswer, Refused
from federank.methods.recommender import Recommender
from federank.methods.registry import recommender_class
from federank.service.client.http import checked_address, needed_httpx, trusted_certificates
from federank.service.server.methods import SERVER_METHODS

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
            fault = json.loads(answer.content)
            slug, message = str(fault["error"]), str(fault["message"])
        except (ValueError, KeyError, TypeError):
            raise BadAnswer(f"{self.address} answered {answer.status_code}, and not as a federation does.") from None
        raise Refused(answer.status_code, slug, message)


def items_of(path: Path) -> list[dict[str, Any]]:
    """The items of a season's catalogue, from a file."""
    try:
        return read_catalogue(path.expanduser())
    except BadFile as reason:
        raise BadFile(f"{path} is no catalogue, with the columns item_id and title: {reason}") from reason


# A federation's model as a model's folder: item factors and catalogue, and no one's history.


def exported_model(client: OperatorClient, version: int | None = None) -> tuple[Recommender, int]:
    """The recommender that a version of the federation is, without any people; and which version."""
    content, headers = client.download("/export", **({} if version is None else {"version": version}))
    items = client.get("/catalogue")["items"]
    try:
        about, tables = json.loads(headers["x-export"]), load(content)
        known = items[: _rows(tables)]  # an earlier version knows nothing of what was added since
        stays = [number for number, item in enumerate(known) if not item.get("ended")]
        tables = {name: table[stays] if _is_by_item(name) else table for name, table in tables.items()}
        return recommender_of(about, tables, [known[number] for number in stays]), int(about["version"])
    except (KeyError, ValueError, TypeError) as reason:
        raise BadAnswer(f"{client.address} answered with something else than a model ({reason!r}).") from reason


def recommender_of(about: dict[str, Any], tables: dict[str, Any], items: list[dict[str, Any]]) -> Recommender:
    """The method's recommender with these tables, before it knows anyone."""
    if about["method"] not in SERVER_METHODS:
        raise ModelError(f"A federation of {about['method']} is not exported by this version.")
    served = SERVER_METHODS[about["method"]]
    settings, shared = served.exported(about["settings"], tables)
    model = recommender_class(about["method"])(**settings)
    model.training = empty_history(items, about["name"])
    if served.kind.made(about["settings"]).scale is not None:
        model.training = replace(model.training, ratings=np.zeros(0, dtype=np.float32))
    model.report = {"version": about["version"], "rounds": 0}
    if "overall.people" in tables:  # anyone who starts from it counts them among everyone
        model.report["people"] = round(float(tables["overall.people"][0]))
        model.report["people_with_item"] = tables["overall.people_with_item"].tolist()
    model.restore_shared(dict(shared))
    return model


def _rows(tables: dict[str, Any]) -> int:
    return len(next(part for name, part in tables.items() if name != "items" and not name.startswith("overall.")))


def _is_by_item(name: str) -> bool:
    return name == "overall.people_with_item" or not name.startswith("overall.")
