"""One file from many JavaScript modules, made when a server starts: a phone fetches the page in few requests.

Developers write plain ES modules, and there is no build step. A bundle holds the modules that its entries import, at
the start or later, each as a function:

    import { a, b as c } from "./x.js"     const { a, b: c } = $modules["x.js"]; x.js has run before
    export const a = ...                   const a = ..., and a getter in what the function returns
    export let a = ...                     a variable of the full bundle, so that importers see it change
    import("./x.js")                       a promise of the module, which is run now if it has not run yet
    import(address, { with: json })        the fetched JSON
    import.meta.url                        the module's own address

Statements are recognised at the start of a line, as the formatter writes them. What a bundle cannot express (a cycle of
imports, two variables of one name that change) is an error.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Container, Iterable, Mapping

_FROM = re.compile(r'^(import|export)\s+(\{[^}]*\}|\*(?: as \w+)?)\s+from\s+"(\.[^"]+)";$', re.MULTILINE)
_BARE = re.compile(r'^import\s+"(\.[^"]+)";$', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*\n", re.MULTILINE | re.DOTALL)
_LATER = re.compile(r'(?<![\w.@{])import\("(\.[^"]+\.js)"\)')
_JSON = re.compile(r"(?<![\w.@{])import\(([^()]*), \{ with: \{ type: \"json\" \} \}\)")
_DECLARED = re.compile(r"^export ((?:async )?function\*?|class|const|let) +(\[[^\]]*\]|\{[^}]*\}|[\w$]+)", re.MULTILINE)
_LIST = re.compile(r"^export \{([^}]*)\};$", re.MULTILINE)
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
    places = [(match.start(), match[3]) for match in _FROM.finditer(source)]
    places += [(match.start(), match[1]) for match in _BARE.finditer(source)]
    first = [posixpath.normpath(posixpath.join(here, path)) for _, path in sorted(places)]
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
    exports: list[tuple[str, str]] = []
    copied: list[str] = []

    def at(path: str) -> str:
        return json.dumps(posixpath.normpath(posixpath.join(here, path)))

    def from_other(match: re.Match[str]) -> str:
        kind, what, module = match[1], match[2], f"$modules[{at(match[3])}]"
        if kind == "export" and what == "*":
            copied.append(module)
            return ""
        if what.startswith("*"):
            return f"const {what.removeprefix('* as ')} = {module};"
        names = _pairs(what)
        if kind == "export":
            exports.extend((shown, f"{module}.{own}") for own, shown in names)
            return ""
        taken = [own if own == shown else f"{own}: {shown}" for own, shown in names if own not in live]
        if any(own in live and own != shown for own, shown in names):
            raise BundleError(f"{name} imports a variable that changes under another name.")
        return f"const {{ {', '.join(taken)} }} = {module};" if taken else ""

    def declared(match: re.Match[str]) -> str:
        kind, what = match[1], match[2]
        names = re.findall(r"[\w$]+", what)
        exports.extend((one, one) for one in names)
        return what if kind == "let" else f"{kind} {what}"

    def listed(match: re.Match[str]) -> str:
        exports.extend((shown, own) for own, shown in _pairs(f"{{{match[1]}}}"))
        return ""

    first, _ = imported(name, source)
    text = _JSON.sub(r"$json(new URL(\1, $url))", source)
    text = _LATER.sub(lambda match: f"$load({at(match[1])})", text)
    text = _LIST.sub(listed, _DECLARED.sub(declared, _BARE.sub("", _FROM.sub(from_other, text))))
    text = text.replace("import.meta.url", "$url")
    needs = " ".join(_load(other, waits) for other in dict.fromkeys(first))
    getters = "".join(f" get {shown}() {{ return {own}; }}," for shown, own in exports)
    merged = "".join(f"Object.defineProperties($exports, Object.getOwnPropertyDescriptors({one})); " for one in copied)
    head = f"$run[{json.dumps(name)}] = {'async ' if name in waits else ''}() => {{\n{needs}"
    address = f"const $url = new URL({json.dumps(name)}, $root).href;"
    return f"{head}\n{address}\n{text}\nconst $exports = {{{getters} }}; {merged}return $exports;\n}};\n"


def _pairs(names: str) -> list[tuple[str, str]]:
    """(name in the other module, name here) of `{ a, b as c }`."""
    parts = [part.split(" as ") for part in re.sub(r"[{}\s]+", " ", names).strip().split(",")]
    return [(part[0].strip(), part[-1].strip()) for part in parts if part[0].strip()]
