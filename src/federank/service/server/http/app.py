"""The two applications: one for clients and browsers, one for the operator. Both stand behind the same middleware."""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
import posixpath
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from federank.service.server.http.admin_api import check_operator
from federank.service.server.http.application import Application, Entry, Headers, nothing_here, wrong_method
from federank.service.server.http.page import DEFAULT, WORKER, bundles, documents, first_sight, preferred
from federank.service.server.http.responses import has_already, json_response, takes_gzip
from federank.service.server.http.routes import ADMIN_ROUTES, PUBLIC, PUBLIC_ROUTES, openapi_document
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


def asset_response(asset: Asset | None, path: str, request: Request) -> Response:
    """A file, compressed where that is understood, or that it has not changed."""
    if request.method not in ("GET", "HEAD"):
        raise wrong_method("GET, HEAD")
    if asset is None:
        raise nothing_here()
    # A worker is fetched beside the page and once again when it is started, some moments later.
    caching = f"max-age={WORKER_SECONDS}" if path == WORKER else "no-cache"
    headers = {"ETag": asset.etag, "Cache-Control": caching, "Vary": "Accept-Encoding, Accept-Language"}
    if has_already(request, asset.etag):
        return Response(None, 304, headers)
    if takes_gzip(request):
        return Response(asset.compressed, 200, headers | {"Content-Encoding": "gzip"}, asset.media_type)
    return Response(asset.content, 200, headers, asset.media_type)


# The two applications.


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


class LeaderApp(Application):
    """The leader's routes and, beside them, the files of a page."""

    def __init__(
        self, service: Service, entries: tuple[Entry, ...], title: str, page: Callable[[Request], Response]
    ) -> None:
        document = openapi_document(entries, title)

        async def describe(service: Service, request: Request) -> Response:  # noqa: ARG001
            return json_response(document)

        sums = service.config.sums
        headers = safety_headers(None if sums is None else sums.config.helper_origin)
        super().__init__(service, (*entries, Entry("GET", f"{PUBLIC}/openapi.json", describe)), headers)
        self._page = page

    def name_of_other(self, path: str) -> str:
        """Files of the page have one name together."""
        return "unknown" if path.startswith(("/api/", "/admin/api/")) else "page"

    def other(self, request: Request) -> Response:
        """A file of the page; paths are written the one way that files are found by: no `//a` and no `/x/../a`."""
        path = request.scope["path"]
        is_plain = posixpath.normpath(path) == path and not path.startswith("//") and path.isprintable()
        if path != "/" and not is_plain:
            raise nothing_here()
        return self._page(request)

    async def admit(self, entry: Entry, request: Request) -> None:
        """Some routes are the operator's."""
        if entry.who == "operator":
            await check_operator(self._service, request)


PAGE = Path(__file__).parents[2] / "web"
OPERATORS = ("admin.", "operator/")
"""How the names of the operator's files begin: clients and browsers do not get them."""


def public_app(service: Service) -> LeaderApp:
    """What clients and browsers talk to."""
    assets = {name: asset for name, asset in read_assets(PAGE).items() if not name.startswith(OPERATORS)}
    files = {name: asset.content for name, asset in assets.items()}
    for name, text in bundles(files).items():
        assets[name] = _made(text.encode(), TYPES[Path(name).suffix])
    pages = Pages(service, documents(files, service.config))
    assets["index.html"] = pages.plain  # the version of the files does not depend on what is popular
    assets["files.json"] = listed(assets)

    def page(request: Request) -> Response:
        path = request.scope["path"].removeprefix("/")
        if path not in ("", "index.html"):
            return asset_response(assets.get(path), path, request)
        return asset_response(pages[request.headers.get("accept-language", "")], path, request)

    return LeaderApp(service, PUBLIC_ROUTES, "FedeRank federation", page)


def admin_app(service: Service) -> LeaderApp:
    """What the operator talks to."""
    assets = dict(read_assets(PAGE))
    assets[""], assets["admin"] = assets["index.html"], assets["admin.html"]

    def page(request: Request) -> Response:
        path = request.scope["path"].removeprefix("/")
        return asset_response(assets.get(path), path, request)

    return LeaderApp(service, ADMIN_ROUTES, "FedeRank operator", page)


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
