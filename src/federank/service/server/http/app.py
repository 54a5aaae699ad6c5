"""The two applications: one for clients and browsers, one for the operator. Both stand behind the same middleware."""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
import posixpath
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from federank.errors import StoreAway
from federank.service.server.http.admin_api import check_operator
from federank.service.server.http.limits import bucket_of, enforce_rate_limit
from federank.service.server.http.page import DEFAULT, WORKER, bundles, documents, first_sight, preferred
from federank.service.server.http.responses import (
    Headers,
    Refusal,
    SafeSend,
    has_already,
    json_response,
    takes_gzip,
    unavailable,
)
from federank.service.server.http.routes import ADMIN_ROUTES, PUBLIC, PUBLIC_ROUTES, Entry, openapi_document
from federank.service.server.service import Service

# The page's files, held in memory as they are and compressed, so that a visit costs a fraction of their bytes.


WORKER_SECONDS = 30
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
"""What must not depend on the machine's own table of types: a browser runs no script of another type."""


class Asset(NamedTuple):
    """One file, ready to be sent."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str


@cache
def read_assets(folder: Path) -> Mapping[str, Asset]:
    """Every file under a folder by its path there; none where there is no such folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(folder).as_posix(): _asset(file) for file in files}


def listed(assets: Mapping[str, Asset]) -> Asset:
    """The files of the page and the version that they make: a browser keeps all of them, to open without a network."""
    files = {"./" if name == "index.html" else name: asset.etag for name, asset in assets.items()}
    version = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:32]
    return _made(json.dumps({"version": version, "files": sorted(files)}).encode(), "application/json")


def _asset(file: Path) -> Asset:
    known = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return _made(file.read_bytes(), known)


@cache
def _made(content: bytes, known: str) -> Asset:
    """Compressed once in a process, however many servers of it have the file: one has two, for people and operators."""
    return Asset(content, gzip.compress(content, 9, mtime=0), known, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def asset_response(assets: Mapping[str, Asset], path: str, request: Request) -> Response:
    """A file, compressed where that is understood, or that it has not changed; a folder gives its index.html."""
    if request.method not in ("GET", "HEAD"):
        raise HTTPException(405, headers={"Allow": "GET, HEAD"})
    asset = assets.get("index.html" if path in ("", "/") else path)
    if asset is None:
        raise HTTPException(404)
    # A worker is fetched beside the page and once again when it is started, some moments later.
    caching = f"max-age={WORKER_SECONDS}" if path == WORKER else "no-cache"
    headers = {"ETag": asset.etag, "Cache-Control": caching, "Vary": "Accept-Encoding, Accept-Language"}
    if has_already(request, asset.etag):
        return Response(None, 304, headers)
    if takes_gzip(request):
        return Response(asset.compressed, 200, headers | {"Content-Encoding": "gzip"}, asset.media_type)
    return Response(asset.content, 200, headers, asset.media_type)


# The middleware: what every request passes on its way in, and every response on its way out.


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{helper}; img-src 'self' data:; "
    "worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")
_SAFETY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), camera=(), microphone=()"),
]


def safety_headers(helper: str | None) -> Headers:
    """What keeps a browser safe: a page connects to its own server, and to the helper that the federation config
    names.
    """
    named = f" {helper}" if helper is not None and _ORIGIN.fullmatch(helper) else ""
    return [(b"content-security-policy", _POLICY.format(helper=named).encode()), *_SAFETY]


class Table:
    """The routes by their paths: looked up, not searched for. A path has at most one part that varies, a ticket."""

    def __init__(self, entries: tuple[Entry, ...], title: str) -> None:
        document = openapi_document(entries, title)

        async def describe(service: Service, request: Request) -> Response:  # noqa: ARG001
            return json_response(document)

        self.routes: dict[str, dict[str, Entry]] = {}
        for entry in (*entries, Entry("GET", f"{PUBLIC}/openapi.json", describe)):
            self.routes.setdefault(entry.path, {})[entry.method] = entry

    def template(self, path: str) -> tuple[str, dict[str, str]] | None:
        """Which route a path is of, and what stands in the place that varies; None if it is of none."""
        if path in self.routes and "{" not in path:
            return path, {}
        parts = path.split("/")
        if path.startswith(_TASKS) and len(parts) > 4:
            ticket, parts[4] = parts[4], "{ticket}"
            if "/".join(parts) in self.routes:
                return "/".join(parts), {"ticket": ticket}
        return None


_TASKS = f"{PUBLIC}/tasks/"


class Middleware:
    """What every request passes on its way in, and every answer on its way out."""

    def __init__(self, service: Service, table: Table, page: ASGIApp) -> None:
        self._service, self.table, self._page = service, table, page
        sums = service.config.sums
        self._safety = safety_headers(None if sums is None else sums.config.helper_origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        found = self.table.template(scope["path"])
        send_safely = SafeSend(scope, send, self._safety)
        try:
            await self._respond(found, scope, receive, send_safely)
        except Exception as reason:
            if send_safely.status:  # the answer was under way: all that is left is to cut it off
                self._service.log.fault("answer", reason)
                raise
            await self._refusal(reason).response()(scope, receive, send_safely)
        finally:
            route = found[0] if found else "unknown" if scope["path"].startswith(("/api/", "/admin/api/")) else "page"
            self._service.metrics.request(route, send_safely.status, time.perf_counter() - began)

    async def _respond(
        self, found: tuple[str, dict[str, str]] | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        client = scope.get("client")
        enforce_rate_limit(self._service.address_limit, bucket_of(client[0]) if client else "unknown")
        if found is None:
            if not _is_plain(scope["path"]):
                raise HTTPException(404)
            scope["app"] = self  # so that the router raises where it knows no route
            await self._page(scope, receive, send)
            return
        template, scope["path_params"] = found
        methods, request = self.table.routes[template], Request(scope, receive, send)
        entry = methods.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if entry is None:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})
        if entry.who == "operator":
            await check_operator(self._service, request)
        answer = await entry.endpoint(self._service, request)
        await answer(scope, receive, send)

    def _refusal(self, reason: Exception) -> Refusal:
        if isinstance(reason, Refusal):
            return reason
        if isinstance(reason, StoreAway):
            return unavailable()
        if isinstance(reason, HTTPException):
            return _http_refusal(reason)
        self._service.log.fault("request", reason)
        return Refusal(500, "fault", "The server has made a mistake; it was noted. Nothing was stored.")


def _is_plain(path: str) -> bool:
    """Whether a path is written the one way that files are found by: `//admin.html` and `/x/../admin.html` are not."""
    return path == "/" or (posixpath.normpath(path) == path and not path.startswith("//") and path.isprintable())


def _http_refusal(reason: HTTPException) -> Refusal:
    if reason.status_code == 405:
        return Refusal(405, "method", "This address does not take that method.", reason.headers)
    if reason.status_code == 404:
        return Refusal(404, "unknown", "There is nothing at this address.")
    return Refusal(reason.status_code, "refused", f"The request was refused ({reason.detail}).", reason.headers)


PAGE = Path(__file__).parents[2] / "web"
OPERATORS = ("admin.", "operator/")
"""How the names of the operator's files begin: clients and browsers do not get them."""


def public_app(service: Service) -> Middleware:
    """What clients and browsers talk to."""
    assets = {name: asset for name, asset in read_assets(PAGE).items() if not name.startswith(OPERATORS)}
    files = {name: asset.content for name, asset in assets.items()}
    for name, text in bundles(files).items():
        assets[name] = _made(text.encode(), TYPES[Path(name).suffix])
    pages = Pages(service, documents(files, service.config))
    assets["index.html"] = pages.plain  # the version of the files does not depend on what is popular
    assets["files.json"] = listed(assets)
    return Middleware(service, Table(PUBLIC_ROUTES, "FedeRank federation"), _files(assets, pages))


def admin_app(service: Service) -> Middleware:
    """What the operator talks to."""
    assets = dict(read_assets(PAGE))
    if "admin.html" in assets:
        assets["admin"] = assets["admin.html"]
    return Middleware(service, Table(ADMIN_ROUTES, "FedeRank operator"), _files(assets))


class Pages:
    """The page by language, with the first items of the model that this process knew at the first visit."""

    def __init__(self, service: Service, texts: Mapping[str, str]) -> None:
        self._service, self._texts = service, texts
        self._made: dict[str, Asset] = {}
        self.plain = _made(texts[DEFAULT].encode(), "text/html")

    def __getitem__(self, header: str) -> Asset:
        """The page for a browser that asks for these languages (Accept-Language)."""
        model = self._service.latest.model
        if not self._made and model is not None:
            first = first_sight(self._service.config, model)
            for code, text in self._texts.items():
                self._made[code] = _made(text.replace("</body>", f"{first}</body>").encode(), "text/html")
        return self._made[preferred(header, self._made)] if self._made else self.plain


def _files(assets: dict[str, Asset], pages: Pages | None = None) -> ASGIApp:
    """The files by their paths, and the page in the language that a browser asks for."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        shown = assets
        if pages is not None and scope["path"] in ("/", "/index.html"):
            shown = {"index.html": pages[request.headers.get("accept-language", "")]}
        answer = asset_response(shown, scope["path"].removeprefix("/"), request)
        await answer(scope, receive, send)

    return app
