"""RecBole's atomic files: NAME.inter holds the interactions, and NAME.item beside it the items.

Both are tables cut at tabs whose header gives each column a type, as in `user_id:token` and `rating:float`.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from federank.data.sources.archives import Files
from federank.data.sources.columns import Columns
from federank.data.sources.formats.item_files import read_items
from federank.data.sources.options import ColumnChoices
from federank.data.sources.text.delimited import read_delimited


def find_recbole(files: Files) -> list[str]:
    """The interaction files among these files."""
    return [name for name in files if PurePosixPath(name).suffix == ".inter"]


def item_file_of(name: str) -> str:
    """The name of the file of items that belongs to an interaction file."""
    return str(PurePosixPath(name).with_suffix(".item"))


def read_recbole(files: Files, name: str, choices: ColumnChoices) -> Columns:
    """The interactions of an atomic file, with what the file of items beside it tells."""
    columns = read_delimited(files[name](), choices, header=True, delimiter="\t")
    if item_file_of(name) not in files:
        return columns
    facts = read_items(files[item_file_of(name)]())
    return columns._replace(titles=facts.titles, categories=facts.categories)
