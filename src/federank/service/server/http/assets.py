"""The page's files, held in memory as they are and compressed, so that a visit costs a fraction of their bytes.

They are read once in a process, when its first server starts: a hundred small files. A browser that has a file already
is told so by its ETag, and asks again on every visit: a new version of the page is taken at once and as a whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from federank.service.server.http.negotiation import has_already, takes_gzip

TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
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
    """The files of the page and the version that they make: a browser keeps them whole, to open without a network."""
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
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if has_already(request, asset.etag):
        return Response(None, 304, headers)
    if takes_gzip(request):
        return Response(asset.compressed, 200, headers | {"Content-Encoding": "gzip"}, asset.media_type)
    return Response(asset.content, 200, headers, asset.media_type)
