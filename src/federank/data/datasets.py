"""The data sets that FedeRank knows by name, and where their files are.

Each has a folder of its own, `FEDERANK_DATA/NAME/` (without that variable: in the platform's user cache),
which holds the publisher's file as it came, or unpacked. `federank data get NAME` puts it there. None is
shipped with the product: a set belongs to its publisher, whose terms are printed with it.

Sizes and MD5 sums are those of the publisher's archive. A set without an address has no public place that is
sure to stay; its entry says how to get it.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from federank.checks import unknown_name
from federank.data.formats import find_worldwide
from federank.errors import DataError, UnknownDataset


@dataclass(frozen=True, kw_only=True)
class KnownSet:
    """One known data set: what it is, whose it is, and which files hold it."""

    name: str
    title: str
    interactions: int | None = None
    """Number before any filter."""
    files: tuple[str, ...] = ()
    """File names looked for in the set's folder, in this order."""
    unpacked: tuple[str, ...] = ()
    """Files that mark an unpacked archive: the folder around the first one found is the data set."""
    address: str | None = None
    size: int | None = None
    md5: str | None = None
    terms: str
    citation: str = ""
    how_to_obtain: str = ""
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a set that is published with its split: the file names of each part."""
    people: int | None = None
    """Of a generated set: how many."""
    country: str | None = None
    """Of a country's check-ins: its two letters in the files of all countries."""

    @property
    def generated(self) -> bool:
        """Whether FedeRank makes it itself whenever it is asked for; there is no file."""
        return self.people is not None


_ENDINGS = (".tsv.gz", ".tsv", ".tsv.zst", ".csv.gz", ".csv", ".parquet")
"""Of a table that users write themselves, named by its stem."""
WORLDWIDE = "foursquare-tist2015"
"""The folder of the check-ins of all countries, beside those of the known sets."""


def _known_sets() -> dict[str, KnownSet]:
    """The sets of datasets.toml, in its order."""
    content = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
    terms, citations = content.pop("terms"), content.pop("citations")
    known = {}
    for name, entry in content.items():
        stem = entry.pop("stem", None)
        files = [f"{stem}{ending}" for ending in _ENDINGS] if stem else entry.pop("files", [])
        texts = {"terms": terms[entry.pop("terms")], "citation": citations.get(entry.pop("citation", ""), "")}
        known[name] = KnownSet(name=name, files=tuple(files), **texts, **entry)
    return known


KNOWN = _known_sets()
"""Every known data set by its name, in the order of a list."""


def data_folder() -> Path:
    """The folder of data sets: what FEDERANK_DATA names, or the platform's user cache."""
    named = os.environ.get("FEDERANK_DATA")
    return Path(named).expanduser() if named else user_cache_path("federank", appauthor=False) / "data"


def known_set(name: str) -> KnownSet:
    """The known set of this name."""
    if name not in KNOWN:
        raise UnknownDataset(unknown_name("dataset", name, KNOWN, otherwise="; or give a file's path"))
    return KNOWN[name]


def find(name: str) -> Path | None:
    """The file or unpacked folder of a known set, or None where it is not installed."""
    known, folder = known_set(name), data_folder() / name
    if known.country is not None and (worldwide := find_worldwide(data_folder() / WORLDWIDE)) is not None:
        return worldwide
    for file in known.files:
        if (folder / file).is_file():
            return folder / file
    for mark in known.unpacked:
        if (folder / mark).is_file():
            return (folder / mark).parent
    return None


def find_parts(name: str) -> dict[str, Path]:
    """The files of a known set's published split."""
    known, folder = known_set(name), data_folder() / name
    if not known.parts:
        raise DataError(f"{name} has no published split; split it, or give the files of both parts.")
    parts = {
        part: path
        for part, files in known.parts.items()
        for path in [folder / file for file in files]
        if path.is_file()
    }
    missing = [files[-1] for part, files in known.parts.items() if part not in parts]
    if missing:
        raise DataError(f"{known.title} is not installed: {folder} has no {missing[0]}. {known.how_to_obtain}")
    return parts


def locate(name: str) -> Path:
    """The file or unpacked folder of a known set; where there is none, the error says how to get it."""
    known = known_set(name)
    if known.generated:
        raise DataError(f"{name} has no file: it is generated whenever it is loaded by its name.")
    path = find(name)
    if path is None:
        folder = data_folder() / name
        raise DataError(f"{known.title} is not installed: it is not in {folder}. {how_to_get(known)}")
    return path


def how_to_get(known: KnownSet) -> str:
    """What to do to have this set installed, as sentences that end with a command."""
    if known.parts:
        return known.how_to_obtain
    if known.address:
        return (
            f"Run `federank data get {known.name}`, or set FEDERANK_DATA to the folder that has "
            f"{known.name}/{known.files[0]}."
        )
    return f"{known.how_to_obtain} Then run `federank data get {known.name} --from FILE`."


def install_path(known: KnownSet, file_name: str) -> Path:
    """Where a file of this name is installed: in the set's folder, named as the set names that format."""
    if any(file_name in files for files in known.parts.values()):
        return data_folder() / known.name / file_name
    if known.parts:
        wanted = ", ".join(file for files in known.parts.values() for file in files)
        raise DataError(f"{file_name} is not a file of {known.name}: {wanted} are its files.")
    endings = {file: file[file.index(".") :] for file in known.files}
    for file, ending in endings.items():
        if file_name.lower().endswith(ending):
            return data_folder() / known.name / file
    wanted = ", ".join(endings.values())
    raise DataError(f"{file_name} is not a file of {known.name}: a name that ends in {wanted} is needed.")
