"""The two applications: one for devices and browsers, one for the operator. Both stand behind the same middleware."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from federank.service.server.endpoints.routes import ADMIN_ROUTES, PUBLIC_ROUTES
from federank.service.server.http.assets import Asset, asset_response, listed, read_assets
from federank.service.server.http.middleware import Middleware, Table
from federank.service.server.service import Service

PAGE = Path(__file__).parents[2] / "page"
OPERATORS = ("admin.", "operator/")
"""How the names of the operator's files begin: devices and browsers do not get them."""


def public_app(service: Service) -> Middleware:
    """What devices and browsers talk to."""
    assets = {name: asset for name, asset in read_assets(PAGE).items() if not name.startswith(OPERATORS)}
    assets["files.json"] = listed(assets)
    return Middleware(service, Table(PUBLIC_ROUTES, "FedeRank federation"), _files(assets))


def admin_app(service: Service) -> Middleware:
    """What the operator talks to."""
    assets = dict(read_assets(PAGE))
    if "admin.html" in assets:
        assets["admin"] = assets["admin.html"]
    return Middleware(service, Table(ADMIN_ROUTES, "FedeRank operator"), _files(assets))


def _files(assets: dict[str, Asset]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer = asset_response(assets, scope["path"].removeprefix("/"), Request(scope, receive))
        await answer(scope, receive, send)

    return app
