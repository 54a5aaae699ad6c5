"""Writing interactions back as a table of text that `load` reads as the same data.

Columns are user, item, and rating and time where there are any; ids are the original ones, quoted where they hold
a tab, a quote or a line end. The file appears whole or not at all.
"""

from __future__ import annotations

import os

import polars as pl

from federank.arrays import Ids, IntVector
from federank.data.interactions import Interactions
from federank.files import write_whole


def write_tsv(data: Interactions, path: str | os.PathLike[str], *, header: bool = True) -> None:
    """Write the interactions as tab-separated text, with a header or without."""
    columns = {"user": _originals(data.user_ids, data.users), "item": _originals(data.item_ids, data.items)}
    if data.ratings is not None:
        columns["rating"] = pl.Series(data.ratings)
    if data.times is not None:
        columns["time"] = pl.Series(data.times)
    table = pl.DataFrame(columns)
    write_whole(path, lambda file: table.write_csv(file, separator="\t", include_header=header))


def _originals(ids: Ids, codes: IntVector) -> pl.Series:
    known = pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)
    return known.gather(codes)
