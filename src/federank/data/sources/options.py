"""What a caller says about how a source is to be read: which columns, which delimiter, whether there is a header.

Nothing said is dropped silently: a source that leaves no choice, such as MovieLens, refuses it.
"""

from __future__ import annotations

from typing import NamedTuple

from federank.errors import SettingError

ColumnChoice = str | int | bool | None
"""A column's name or its position from 0; None to look for it, False to leave it out."""


class ColumnChoices(NamedTuple):
    """The columns that were chosen."""

    users: ColumnChoice = None
    items: ColumnChoice = None
    ratings: ColumnChoice = None
    times: ColumnChoice = None

    def named(self) -> bool:
        """Whether a column was chosen by name, so that there must be a header."""
        return any(isinstance(choice, str) for choice in self)

    def given(self) -> list[str]:
        """The roles that were chosen at all."""
        return [role for role, choice in self._asdict().items() if choice is not None]


class ReadingOptions(NamedTuple):
    """All that was said of a source."""

    columns: ColumnChoices = ColumnChoices()
    header: bool | None = None
    delimiter: str | None = None

    def nothing(self) -> bool:
        """Whether all was left to be found out."""
        return not self.columns.given() and self.header is None and self.delimiter is None

    def refuse_all(self, source: str) -> None:
        """Raise if anything was said of a source that leaves no choice."""
        self._refuse(source, self.columns.given())

    def refuse_layout(self, source: str) -> None:
        """Raise if a header or a delimiter was spoken of where columns may be chosen but no text is cut."""
        self._refuse(source, [])

    def _refuse(self, source: str, said: list[str]) -> None:
        layout = {"header": self.header, "delimiter": self.delimiter}
        said = [*said, *(name for name, value in layout.items() if value is not None)]
        if said:
            raise SettingError(f"{source} leaves no choice of {' and '.join(said)}; leave that out.")
