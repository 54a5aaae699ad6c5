"""The page as it is served: what it is about and its words are in the HTML, and its scripts are few files.

index.html names its scripts one by one and leaves its texts empty. A server that starts makes of it, once per language:

- the federation's name as title and heading, its description, and the language of both;
- the page's own words in every element that names one (`data-words`), so that nothing moves when scripts begin;
- one script in the place of all that it names (bundle.py), with the words and the worker fetched beside it.

Scripts replace the texts as soon as they know more, such as the language that a visitor chose before.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from federank.service.server.config import FederationConfig
from federank.service.server.http.bundle import bundle

START, WORKER, WORDS = "start.js", "device/worker.js", "words/"
DEFAULT = "en"
_SCRIPT = re.compile(r' *<script type="module" src="([^"]+)"></script>\n')
_EMPTY = re.compile(r'(<(\w+)\b[^>]*\bdata-words="([^"]+)"[^>]*>)(?=</\2>)')


def bundles(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files that take the place of modules: the page's scripts and its worker's."""
    sources = {name: content.decode() for name, content in files.items() if name.endswith(".js")}
    entries = _SCRIPT.findall(files["index.html"].decode())
    return {START: bundle(sources, entries, START), WORKER: bundle(sources, [WORKER], WORKER)}


def documents(files: Mapping[str, bytes], config: FederationConfig) -> dict[str, str]:
    """The page by language: one for each that it has words of."""
    known = {
        name.removeprefix(WORDS).removesuffix(".json"): json.loads(content)
        for name, content in files.items()
        if name.startswith(WORDS)
    }
    return {code: _document(files["index.html"].decode(), code, words, config) for code, words in known.items()}


def preferred(header: str, languages: Mapping[str, Any]) -> str:
    """The language that a browser asks for first, of those that there are (Accept-Language)."""
    asked = []
    for place, part in enumerate(header.split(",")[:20]):
        tag, _, quality = part.partition(";q=")
        with_weight = re.fullmatch(r"[01](\.\d{0,3})?", quality.strip() or "1")
        if with_weight and float(with_weight[0]) > 0:
            asked.append((-float(with_weight[0]), place, tag.strip()[:2].lower()))
    return next((code for _, _, code in sorted(asked) if code in languages), DEFAULT)


def _document(page: str, code: str, words: Mapping[str, Any], config: FederationConfig) -> str:
    own = (config.translations or {}).get(code, {})
    name, description = own.get("name") or config.name, own.get("description") or config.description
    foreign = "" if own or config.language in (None, code) else f' lang="{config.language}"'

    def worded(match: re.Match[str]) -> str:
        text = words.get(match[3])
        return match[0] + (html.escape(text, quote=False) if isinstance(text, str) and "{" not in text else "")

    page = page.replace('<html lang="en">', f'<html lang="{code}">', 1)
    page = re.sub(r"<title>[^<]*</title>", lambda _: f"<title>{html.escape(name)}</title>", page, count=1)
    if description:
        about = html.escape(description)
        page = re.sub(r'(<meta name="description" content=")[^"]*"', lambda match: f'{match[1]}{about}"', page, count=1)
    named = re.compile(r'(<\w+ id="name"[^>]*)>[^<]*')
    page = named.sub(lambda match: f"{match[1]}{foreign}>{html.escape(name, quote=False)}", page, count=1)
    page = _EMPTY.sub(worded, page)
    beside = (
        f'    <link rel="modulepreload" href="{WORKER}" />\n'
        f'    <link rel="preload" as="fetch" crossorigin href="{WORDS}{code}.json" />\n'
        f'    <script type="module" src="{START}"></script>\n  </head>'
    )
    return _SCRIPT.sub("", page).replace("  </head>", beside, 1)
