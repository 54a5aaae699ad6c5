"""A study's TOML document: where it is found, and changes to it: `--set path.key=value`, `--seeds`, its [quick] form.

A change is a nested table that is laid over the study. Entries of a list of tables are named by what they are called
(a data set's name, a model's group), or all at once by `all`:

    --set choose.epochs=5
    --set data.ml-1m.split.test=0.1
    --set 'model."FedeRank T=1".settings.factors=50'
    --set model.all.choose.patience=3

In a study's file:

    [quick]                            # laid over the rest with --quick
    seeds = [1]
    model.FCF.settings.rounds = 3
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from federank.checks import refuse_unknown, unknown_name
from federank.errors import BadFile, SettingError


def read_document(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as reason:
        raise BadFile(f"The study {path} cannot be read: {getattr(reason, 'strerror', None) or reason}.") from reason
    except tomllib.TOMLDecodeError as reason:
        raise BadFile(f"The study {path} is not TOML: {reason}.") from reason


def packaged() -> dict[str, dict[str, Any]]:
    """The content of the studies that come with the product, by name."""
    return {path.stem: read_document(path) for path in sorted(Path(__file__).with_name("packaged").glob("*.toml"))}


def find_study(name: str) -> tuple[str, dict[str, Any]]:
    """A study's name and content, from a packaged study's name or a file's path."""
    if name.endswith(".toml") or "/" in name or Path(name).is_file():
        return Path(name).stem, beside(read_document(Path(name)), Path(name).parent)
    known = packaged()
    if name not in known:
        raise SettingError(unknown_name("study", name, known, otherwise="; or give a file's path"))
    return name, known[name]


def beside(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A study whose files are named as its own file sees them: a path in a TOML is relative to the TOML.

    What is not there is left as it is: a known data set's name, or a path from where the command is given.
    """
    if folder.resolve() == Path.cwd():
        return document

    def place(value: Any) -> Any:
        is_file = isinstance(value, str) and value and not Path(value).is_absolute() and (folder / value).exists()
        return str(folder / value) if is_file else value

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(entry) for entry in value]
        if isinstance(value, Mapping):
            return {key: place(entry) if key in _FILES else placed(entry) for key, entry in value.items()}
        return value

    document = placed(document)
    if isinstance(document.get("data"), list):
        document["data"] = [_with_source(entry, place) for entry in document["data"]]
    return document


def _with_source(entry: Any, place: Callable[[Any], Any]) -> Any:
    """A data set that is named by its path keeps its name, and has its path as its source."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping) or "source" in table or place(table.get("name")) == table.get("name"):
        return entry
    return {**table, "source": place(table["name"])}


_FILES = ("source", "item_file", "policies", "trace", "pi")
"""The keys whose text may be a file."""


_NAMES = {"data": "name", "model": "group"}


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The study with these changes laid over it; the study itself stays as it is."""
    result = dict(document)
    for key, change in changes.items():
        held = as_tables(result.get(key)) if key in _NAMES else result.get(key)
        if isinstance(change, Mapping) and isinstance(held, list) and key in _NAMES:
            result[key] = _changed_entries(held, change, key)
        elif isinstance(change, Mapping) and isinstance(held, Mapping):
            result[key] = changed(held, change)
        else:
            result[key] = change
    return result


def quick(document: Mapping[str, Any]) -> dict[str, Any]:
    """The study in the form that takes a minute or two; its title says so."""
    if "quick" not in document:
        raise SettingError("This study has no quick form; add a [quick] table with what is to be smaller.")
    # What was published is of the full study: beside a small form it would be a comparison of different things.
    rest = {key: value for key, value in document.items() if key not in ("quick", "paper", "note")}
    small = changed(rest, document["quick"])
    changes = "; ".join(_written(path, value) for path, value in _leaves(document["quick"]))
    text = f"A quick form, to see that everything works: it is no replication. Changed: {changes}."
    full = f"The full study, which this is not: {document.get('description', '').strip()}"
    return small | {"title": f"{small.get('title', 'A study')} (quick form)", "description": f"{text}\n\n{full}"}


def saying_what_changed(document: dict[str, Any], changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The study, whose description says what the command line has changed, lest its report pass for the study's own.

    What is left out shows in the report itself.
    """
    leaves = [leaf for change in changes for leaf in _leaves(change)]
    others = [_written(path, value) for path, value in leaves if path[-1] != "skip"]
    if not others:
        return document
    text = f"Changed on the command line: {'; '.join(others)}."
    return document | {"description": f"{text}\n\n{document.get('description', '').strip()}".strip()}


def _written(path: tuple[str, ...], value: Any) -> str:
    return f"{'.'.join(path)} = {json.dumps(value, default=str)}"  # TOML has dates and times, JSON has none


def _leaves(changes: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    results: list[tuple[tuple[str, ...], Any]] = []
    for key, value in changes.items():
        results += _leaves(value, (*path, key)) if isinstance(value, Mapping) else [((*path, key), value)]
    return results


def read_change(text: str) -> dict[str, Any]:
    """A change from `path.key=value`; a value that is not TOML's is taken as a word."""
    parts = re.fullmatch(r"""((?:[^="']|"[^"]*"|'[^']*')+)=(.*)""", text, re.DOTALL)
    if parts is None:
        raise SettingError(f"--set {text!r} cannot be read; path.key=value is needed, such as choose.epochs=5.")
    path, value = parts.groups()
    try:
        return tomllib.loads(f"{path} = {value}")
    except tomllib.TOMLDecodeError:
        word = json.dumps(value.strip())
    try:
        return tomllib.loads(f"{path} = {word}")
    except tomllib.TOMLDecodeError as reason:
        raise SettingError(
            f"--set {text!r} cannot be read ({reason}); names with blanks go between quotation marks, as in "
            "'model.\"FedeRank T=1\".settings.factors=50'."
        ) from reason


def as_tables(held: Any) -> Any:
    """A list of tables: one table alone is a list of one, and a name alone a table with that name."""
    held = [held] if isinstance(held, Mapping) else held
    return [{"name": one} if isinstance(one, str) else one for one in held] if isinstance(held, list) else held


def _changed_entries(entries: list[Any], changes: Mapping[str, Any], kind: str) -> list[Any]:
    names = [_name(entry, kind) for entry in entries]
    refuse_unknown(changes, (*names, "all"), f"The list of [[{kind}]]")
    result = []
    for name, entry in zip(names, entries, strict=True):
        for whose in ("all", name):
            if isinstance(change := changes.get(whose), Mapping):
                entry = changed(entry, change)
            elif change is not None:
                raise SettingError(
                    f"{kind}.{whose} is {change!r}; say which of its keys, as in {kind}.{whose}.key=value."
                )
        result.append(entry)
    return result


def _name(entry: Mapping[str, Any], kind: str) -> str:
    return str(entry.get(_NAMES[kind]) or entry.get("source" if kind == "data" else "method"))
