"""The data sets that FedeRank knows by name, and where their files are.

Each has a folder of its own, `FEDERANK_DATA/NAME/` (without that variable: in the platform's user cache),
which holds the publisher's file as it came, or unpacked. `federank data get NAME` puts it there. None is
shipped with the product: a set belongs to its publisher, whose terms are printed with it.

Sizes and MD5 sums are those of the publisher's archive. A set without an address has no public place that is
sure to stay; its entry says how to get it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
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
    """How many there are before any filter."""
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
    generated: bool = False
    """Made by FedeRank itself whenever it is asked for; there is no file."""
    people: int | None = None
    """Of a generated set: how many."""
    country: str | None = None
    """Of a country's check-ins: its two letters in the files of all countries."""


def _city(name: str, people: int) -> KnownSet:
    return KnownSet(
        name=name,
        title="Synthetic city" if people == 1000 else f"Synthetic city of {people:,} people",
        interactions=40 * people,
        generated=True,
        people=people,
        terms="Made up by FedeRank: no real person or place is in it. Use it as you like.",
    )


_CITIES = (
    *(_city("city", 1000), _city("city-3000", 3000)),
    *(_city("city-30000", 30_000), _city("city-100000", 100_000), _city("city-300000", 300_000)),
)


def _movielens(
    name: str, interactions: int, size: int, md5: str, ratings: str, redistribution: str, folder: str = ""
) -> KnownSet:
    return KnownSet(
        name=name,
        title=f"MovieLens {name.removeprefix('ml-').upper()}",
        interactions=interactions,
        files=(f"{name}.zip",),
        unpacked=(ratings, f"{folder or name}/{ratings}"),
        address=f"https://files.grouplens.org/datasets/movielens/{name}.zip",
        size=size,
        md5=md5,
        terms=(
            "GroupLens Research, University of Minnesota, allows any research use. Do not state or imply that "
            f"it endorses you, acknowledge the data in publications, {redistribution}, and ask for permission "
            "before any commercial or revenue-bearing use. The README inside the archive is what counts."
        ),
        citation=(
            "F. M. Harper and J. A. Konstan. The MovieLens Datasets: History and Context. "
            "ACM Transactions on Interactive Intelligent Systems 5(4), 2015."
        ),
    )


_NEVER = "do not redistribute it without separate permission"
_ALIKE = "redistribute it only under these same conditions"

_MOVIELENS = (
    _movielens("ml-100k", 100_000, 4_924_029, "0e33842e24a9c977be4e0107933c0723", "u.data", _NEVER),
    _movielens("ml-1m", 1_000_209, 5_917_549, "c4d9eecfca2ab87c1945afe126590906", "ratings.dat", _NEVER),
    _movielens(
        "ml-10m", 10_000_054, 65_566_137, "ce571fd55effeba0271552578f2648bd", "ratings.dat", _NEVER, "ml-10M100K"
    ),
    _movielens("ml-20m", 20_000_263, 198_702_078, "cd245b17a1ae2cc31bb14903e1204af3", "ratings.csv", _ALIKE),
    _movielens("ml-25m", 25_000_095, 261_978_986, "6b51fb2759a8657d3bfcbfc42b592ada", "ratings.csv", _ALIKE),
    _movielens("ml-32m", 32_000_204, 238_950_008, "d472be332d4daa821edc399621853b57", "ratings.csv", _ALIKE),
)


def _table(name: str, title: str, stem: str, interactions: int | None, how_to_obtain: str, citation: str) -> KnownSet:
    endings = (".tsv.gz", ".tsv", ".tsv.zst", ".csv.gz", ".csv", ".parquet")
    return KnownSet(
        name=name,
        title=title,
        interactions=interactions,
        files=tuple(f"{stem}{ending}" for ending in endings),
        terms="The publisher's terms are not known here: treat it as for research only, and cite its papers.",
        citation=citation,
        how_to_obtain=how_to_obtain,
    )


_AMAZON = _table(
    "amazon-digital-music",
    "Amazon Digital Music",
    "AmazonDigitalMusic",
    75_932,
    "Take raw_datasets/AmazonDigitalMusic.tsv from the repository sisinflab/FedBPR on GitHub: the ratings of "
    "users with 20 or more.",
    "J. McAuley, C. Targett, Q. Shi and A. van den Hengel. Image-Based Recommendations on Styles and "
    "Substitutes. SIGIR 2015.",
)
_LIBRARYTHING = _table(
    "librarything",
    "LibraryThing",
    "LibraryThing",
    749_401,
    "The set with the papers' counts is Maarten Clements': 749,401 ratings of 37,232 books by 7,279 users in 2,056,487 "
    "lines, doubled to 1..10, without times. (J. McAuley's LibraryThing reviews, which the paper cites, are another "
    "set.) Write its users, books and ratings as a tab-separated file with the header user_id, item_id, rating.",
    "M. Clements, A. P. de Vries and M. J. T. Reinders. The influence of personalization on tag query length in "
    "social media search. Information Processing and Management 46(4), 2010.",
)


WORLDWIDE = "foursquare-tist2015"
"""The folder of the check-ins of all countries, beside those of the known sets."""


def _foursquare(country: str, code: str, interactions: int | None, cities: str = "") -> KnownSet:
    raw = (
        "Unpack the global-scale check-in data set (TIST 2015) of its authors into the folder "
        f"{WORLDWIDE} beside the other sets: {country} is taken from it by its country code ({code}), the latest "
        "check-in of each person at each venue, as in the papers."
    )
    cut = (
        f"Or keep the venues of {country} and write them as a tab-separated file with the header user_id, venue_id, "
        "type, utc."
    )
    known = _table(
        f"foursquare-{country.lower()}",
        f"Foursquare {country}",
        country,
        interactions,
        f"{raw} {cities or cut}",
        "D. Yang, D. Zhang and B. Qu. Participatory Cultural Mapping Based on Collective Behavior Data in "
        "Location-Based Social Networks. ACM Transactions on Intelligent Systems and Technology 7(3), 2016.",
    )
    return replace(known, country=code)


_FOURSQUARE = (
    _foursquare(
        "Italy",
        "IT",
        89_616,
        "Or take the six cities' files from raw_datasets/ of the repository sisinflab/FedBPR on GitHub and put "
        "their rows together under one header, sorted by time; they hold each person's first check-in at a venue.",
    ),
    _foursquare("Brazil", "BR", None),
    _foursquare("Canada", "CA", None),
)

_GOWALLA = KnownSet(
    name="gowalla",
    title="Gowalla, the split of NGCF and LightGCN",
    interactions=1_027_370,
    files=("train.txt.gz", "train.txt"),
    parts={"train": ("train.txt.gz", "train.txt"), "test": ("test.txt.gz", "test.txt")},
    terms="The publisher's terms are not known here: treat it as for research only, and cite its papers.",
    citation="E. Cho, S. A. Myers and J. Leskovec. Friendship and Mobility. KDD 2011.",
    how_to_obtain="Take train.txt and test.txt of Gowalla from the repository gusye1234/LightGCN-PyTorch on GitHub "
    "(data/gowalla) and put both into the folder gowalla beside the other sets.",
)

KNOWN: dict[str, KnownSet] = {
    known.name: known for known in (*_CITIES, *_MOVIELENS, _AMAZON, *_FOURSQUARE, _LIBRARYTHING, _GOWALLA)
}
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
