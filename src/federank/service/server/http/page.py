"""The page as it is served: what it is about and its words are in the HTML, and its scripts are few files.

index.html names its scripts one by one and leaves its texts empty. A server that starts makes of it, once per language:

- the federation's name as title and heading, its description, and the language of both;
- the page's own words in every element that names one (`data-words`), so that nothing moves when scripts begin;
- one script and one stylesheet in the place of all that it names (`bundled`), and beside them what they ask for first;
- the most popular items, so that their posters are drawn before the model, the catalogue and the worker have arrived.

Scripts replace the texts as soon as they know more, such as the language that a visitor chose before.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from federank.federation.server import Published
from federank.service.server.config import FederationConfig

# One file from many JavaScript modules, made when a server starts: a phone fetches the page in few requests.
#
# Developers write plain ES modules, and there is no build step. A bundle holds the modules that its entries import, at
# the start or later, each as a function:
#
#     import { a, b as c } from "./x.js"     const { a, b: c } = $modules["x.js"]; x.js has run before
#     export const a = ...                   const a = ..., and a getter in what the function returns
#     export let a = ...                     a variable of the full bundle, so that importers see it change
#     import("./x.js")                       a promise of the module, which is run now if it has not run yet
#     import(address, { with: json })        the fetched JSON
#     import.meta.url                        the module's own address
#
# Statements are recognised at the start of a line, as the formatter writes them. What a bundle cannot express (a cycle
# of imports, two variables of one name that change) is an error. The page has no other forms of imports and exports.


_FROM = re.compile(r'^import\s+(\{[^}]*\}|\* as \w+)\s+from\s+"(\.[^"]+)";$', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*\n", re.MULTILINE | re.DOTALL)
_LATER = re.compile(r'(?<![\w.@{])import\("(\.[^"]+\.js)"\)')
_JSON = re.compile(r"(?<![\w.@{])import\(([^()]*), \{ with: \{ type: \"json\" \} \}\)")
_DECLARED = re.compile(r"^export ((?:async )?function\*?|class|const|let) +(\[[^\]]*\]|\{[^}]*\}|[\w$]+)", re.MULTILINE)
_WAITS = re.compile(r"^(?:await\b|(?:const|let) .*= await\b)", re.MULTILINE)
_PRELUDE = """const $run = {}, $modules = {}, $loading = {}, $root = new URL("{up}", import.meta.url);
const $now = (name) => ($modules[name] ??= $run[name]());
const $load = (name) => ($loading[name] ??= Promise.resolve($now(name)).then((module) => ($modules[name] = module)));
const $json = async (address) => ({ default: await (await fetch(address)).json() });
"""


class BundleError(Exception):
    """Modules that one file cannot hold."""


def bundle(sources: Mapping[str, str], entries: Iterable[str], path: str) -> str:
    """The entries and all that they import as one module, to be served at this path beside them.

    `sources` are the texts of modules by their paths from the page's root.
    """
    entries = tuple(entries)
    sources = {name: _COMMENT.sub("", source) for name, source in sources.items()}
    order = _in_order(sources, entries)
    live: dict[str, str] = {}
    for name in order:
        for kind, variable in _DECLARED.findall(sources[name]):
            if kind == "let" and live.setdefault(variable, name) != name:
                raise BundleError(f"{name} and {live[variable]} both export a variable {variable} that changes.")
    up = "../" * path.count("/") or "./"
    parts = [_PRELUDE.replace("{up}", up), *(f"let {variable};\n" for variable in live)]
    waits = set[str]()
    for name in order:
        if _WAITS.search(sources[name]) or waits.intersection(imported(name, sources[name])[0]):
            waits.add(name)
    parts += [_as_function(name, sources, live, waits) for name in order]
    parts += [f"{_load(name, waits)}\n" for name in entries]
    return "".join(parts)


def imported(name: str, source: str) -> tuple[list[str], list[str]]:
    """The modules that a module imports at its start, and those that it imports later, by path."""
    here = posixpath.dirname(name)
    first = [posixpath.normpath(posixpath.join(here, path)) for _, path in _FROM.findall(source)]
    return first, [posixpath.normpath(posixpath.join(here, path)) for path in _LATER.findall(source)]


def _in_order(sources: Mapping[str, str], entries: Iterable[str]) -> list[str]:
    """All modules of a bundle, each after those that it imports at its start."""
    order: list[str] = []
    waiting: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        if name in waiting:
            raise BundleError(f"{' imports '.join([*waiting[waiting.index(name) :], name])}: a cycle.")
        if name not in sources:
            raise BundleError(f"{waiting[-1] if waiting else 'The page'} imports {name}, and there is none.")
        waiting.append(name)
        for other in imported(name, sources[name])[0]:
            visit(other)
        waiting.pop()
        order.append(name)

    for entry in entries:
        visit(entry)
    for name in order:  # grows: what is imported later may import more
        for other in imported(name, sources[name])[1]:
            visit(other)
    return order


def _load(name: str, waits: Container[str]) -> str:
    """Runs a module; one that waits for nothing runs at once, as a worker must have its listener in time."""
    return f"await $load({json.dumps(name)});" if name in waits else f"$now({json.dumps(name)});"


def _as_function(name: str, sources: Mapping[str, str], live: Mapping[str, str], waits: Container[str]) -> str:
    source, here = sources[name], posixpath.dirname(name)
    exports: list[str] = []

    def at(path: str) -> str:
        return json.dumps(posixpath.normpath(posixpath.join(here, path)))

    def from_other(match: re.Match[str]) -> str:
        what, module = match[1], f"$modules[{at(match[2])}]"
        if what.startswith("*"):
            return f"const {what.removeprefix('* as ')} = {module};"
        names = _pairs(what)
        taken = [own if own == shown else f"{own}: {shown}" for own, shown in names if own not in live]
        if any(own in live and own != shown for own, shown in names):
            raise BundleError(f"{name} imports a variable that changes under another name.")
        return f"const {{ {', '.join(taken)} }} = {module};" if taken else ""

    def declared(match: re.Match[str]) -> str:
        kind, what = match[1], match[2]
        exports.extend(re.findall(r"[\w$]+", what))
        return what if kind == "let" else f"{kind} {what}"

    text = _JSON.sub(r"$json(new URL(\1, $url))", source)
    text = _LATER.sub(lambda match: f"$load({at(match[1])})", text)
    text = _DECLARED.sub(declared, _FROM.sub(from_other, text)).replace("import.meta.url", "$url")
    needs = " ".join(_load(other, waits) for other in dict.fromkeys(imported(name, source)[0]))
    getters = "".join(f" get {one}() {{ return {one}; }}," for one in exports)
    head = f"$run[{json.dumps(name)}] = {'async ' if name in waits else ''}() => {{\n{needs}"
    address = f"const $url = new URL({json.dumps(name)}, $root).href;"
    return f"{head}\n{address}\n{text}\nreturn {{{getters} }};\n}};\n"


def _pairs(names: str) -> list[tuple[str, str]]:
    """(name in the other module, name here) of `{ a, b as c }`."""
    parts = [part.split(" as ") for part in re.sub(r"[{}\s]+", " ", names).strip().split(",")]
    return [(part[0].strip(), part[-1].strip()) for part in parts if part[0].strip()]


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
    settings = config.settings.public_settings()
    if settings.get("min_support", 1) > 1:  # as in web/methods/frugal.js: what is not supported comes last
        popularity = np.where(tables["weights"] > 0, popularity, -np.inf)
    items = json.loads(config.catalogue.content)["items"]
    most_popular = [n for n in np.argsort(-popularity[: len(items)], kind="stable") if not items[n].get("ended")]
    content = {
        "language": config.texts["language"] or "",
        "noun": config.texts["noun"] or {"one": "item", "many": "items"},
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
    own = (config.texts["translations"] or {}).get(code, {})
    name = own.get("name") or config.name
    description = own.get("description") or config.texts["description"] or words["page.description"]
    foreign = "" if own or config.texts["language"] in (None, code) else f' lang="{config.texts["language"]}"'

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
