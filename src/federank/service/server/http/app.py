"""The two applications: one for devices and browsers, one for the operator. Both stand behind the same middleware."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles

from federank.service.server.endpoints.routes import ADMIN_ROUTES, PUBLIC_ROUTES
from federank.service.server.http.middleware import Middleware, Table
from federank.service.server.service import Service

PAGE = Path(__file__).parents[2] / "page"


def public_app(service: Service) -> Middleware:
    """What devices and browsers talk to."""
    page = Router([Route("/admin.html", _nothing), _page()])
    return Middleware(service, Table(PUBLIC_ROUTES, "FedeRank federation"), page)


def admin_app(service: Service) -> Middleware:
    """What the operator talks to."""
    return Middleware(
        service, Table(ADMIN_ROUTES, "FedeRank operator"), Router([Route("/admin", _admin_page), _page()])
    )


def _page() -> BaseRoute:
    return Mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False))


async def _admin_page(_: Request) -> Response:
    return FileResponse(PAGE / "admin.html") if (PAGE / "admin.html").is_file() else await _nothing(_)


async def _nothing(_: Request) -> Response:
    raise HTTPException(404)
