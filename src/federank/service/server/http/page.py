"""The page as it is served: what it is about and its words are in the HTML, and its scripts are few files.

index.html names its scripts one by one and leaves its texts empty. A server that starts makes of it, once per language:

- the federation's name as title and heading, its description, and the language of both;
- the page's own words in every element that names one (`data-words`), so that nothing moves when scripts begin;
- one script and one stylesheet in the place of all that it names (bundle.py), and beside them what they ask for first;
- the most popular items, so that their posters are drawn before the model, the catalogue and the worker have arrived.

Scripts replace the texts as soon as they know more, such as the language that a visitor chose before.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from federank.federation.server import Published
from federank.service.server.config import FederationConfig
from federank.service.server.http.bundle import bundle

BESIDE = ("catalogue", "model")
"""What the worker asks for first; web/client/http.js takes it from the browser's cache."""
START, STYLE, WORKER, WORDS = "start.js", "start.css", "client/worker.js", "words/"
DEFAULT = "en"
FIRST_ITEMS = 24
_SCRIPT = re.compile(r' *<script type="module" src="([^"]+)"></script>\n')
_STYLESHEET = re.compile(r' *<link rel="stylesheet" href="([^"]+)" />\n')
_EMPTY = re.compile(r'(<(\w+)\b[^>]*\bdata-words="([^"]+)"[^>]*>)(?=</\2>)')


def bundles(files: Mapping[str, bytes]) -> dict[str, str]:
    """The files that take the place of many: the page's scripts, its worker's, and its styles."""
    sources = {name: content.decode() for name, content in files.items() if name.endswith(".js")}
    page = files["index.html"].decode()
    return {
        START: bundle(sources, _SCRIPT.findall(page), START),
        WORKER: bundle(sources, [WORKER], WORKER),
        STYLE: "\n".join(files[name].decode() for name in _STYLESHEET.findall(page)),
    }


def documents(files: Mapping[str, bytes], config: FederationConfig) -> dict[str, str]:
    """The page by language: one for each that it has words of."""
    known = {
        name.removeprefix(WORDS).removesuffix(".json"): json.loads(content)
        for name, content in files.items()
        if name.startswith(WORDS)
    }
    return {code: _document(files["index.html"].decode(), code, words, config) for code, words in known.items()}


def first_sight(config: FederationConfig, model: Published) -> str:
    """What the page shows before anything else has arrived, as an element that web/show/wall.js reads."""
    tables = model.content.tables
    vectors = tables["vectors"]
    popularity = tables["biases"] if "biases" in tables else vectors @ vectors.sum(axis=0)
    settings = config.client_settings()
    if settings.get("min_support", 1) > 1:  # as in web/methods/frugal.js: what is not supported comes last
        popularity = np.where(tables["weights"] > 0, popularity, -np.inf)
    items = json.loads(config.catalogue.content)["items"]
    most_popular = [n for n in np.argsort(-popularity[: len(items)], kind="stable") if not items[n].get("ended")]
    content = {
        "language": config.language or "",
        "noun": config.noun or {"one": "item", "many": "items"},
        "count": len(most_popular),
        "rated": "lowest" in settings,
        "items": [items[number] for number in most_popular[:FIRST_ITEMS]],
    }
    text = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="first">{text}</script>\n'


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
    name = own.get("name") or config.name
    description = own.get("description") or config.description or words["page.description"]
    foreign = "" if own or config.language in (None, code) else f' lang="{config.language}"'

    def worded(match: re.Match[str]) -> str:
        text = words.get(match[3])
        return match[0] + (html.escape(text, quote=False) if isinstance(text, str) and "{" not in text else "")

    page = page.replace('<html lang="en">', f'<html lang="{code}">', 1)
    page = re.sub(r"<title>[^<]*</title>", lambda _: f"<title>{html.escape(name)}</title>", page, count=1)
    about = html.escape(description)
    page = re.sub(r'(<meta name="description" content=")[^"]*"', lambda match: f'{match[1]}{about}"', page, count=1)
    named = re.compile(r'(<\w+ id="name"[^>]*)>[^<]*')
    page = named.sub(lambda match: f"{match[1]}{foreign}>{html.escape(name, quote=False)}", page, count=1)
    page = _EMPTY.sub(worded, page)
    # A browser has six connections at a time: what everything else waits for comes first.
    head = [
        f'<link rel="stylesheet" href="{STYLE}" />',
        f'<script type="module" src="{START}"></script>',
        f'<link rel="preload" as="fetch" crossorigin href="{WORDS}{code}.json" fetchpriority="high" />',
        f'<link rel="modulepreload" href="{WORKER}" fetchpriority="low" />',
        *(f'<link rel="preload" as="fetch" crossorigin href="api/v1/{name}" fetchpriority="low" />' for name in BESIDE),
    ]
    lines = "".join(f"    {line}\n" for line in head)
    page = _STYLESHEET.sub("", _SCRIPT.sub("", page))
    return re.sub(r"( *<title>)", lambda match: lines + match[1], page, count=1)
