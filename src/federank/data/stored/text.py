"""Writing interactions back as a table of text that `load` reads as the same data.

Columns are user, item, and rating and time where there are any; ids are the original ones, quoted where they hold
a tab, a quote or a line end. The file appears whole or not at all: it is written under a temporary name beside
its own and then renamed.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import polars as pl

from federank.arrays import Ids, IntVector
from federank.data.interactions import Interactions
from federank.errors import BadFile


def write_tsv(data: Interactions, path: str | os.PathLike[str], *, header: bool = True) -> None:
    """Write the interactions as tab-separated text, with a header or without."""
    target = Path(path)
    columns = {"user": _originals(data.user_ids, data.users), "item": _originals(data.item_ids, data.items)}
    if data.ratings is not None:
        columns["rating"] = pl.Series(data.ratings)
    if data.times is not None:
        columns["time"] = pl.Series(data.times)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            pl.DataFrame(columns).write_csv(file, separator="\t", include_header=header)
        temporary.replace(target)
    except OSError as mistake:
        raise BadFile(f"{target} cannot be written ({mistake.strerror or mistake}); choose another place.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _originals(ids: Ids, codes: IntVector) -> pl.Series:
    known = pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String)
    return known.gather(codes)
