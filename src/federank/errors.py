"""Everything that can go wrong for a user, as one tree.

    FedeRankError
    ├── DataError            what was read is not what it should be
    │   ├── UnknownDataset   no known set and no file has this name
    │   ├── BadFile          a file is missing, unreadable, or breaks its format
    │   └── BadSplit         a split leaks, or cannot be made
    ├── SettingError         a setting is out of its range
    ├── ModelError           a model's directory is missing a file, foreign, or tampered with
    ├── UnknownId            a user or item that the model or the data has never met
    ├── DownloadError        a file could not be fetched whole
    └── Diverged             training left the range of numbers

Each message is one whole sentence or more: what was found, what was needed, what to do next. The command line
prints it and ends with exit code 2; no other exception is meant for a user.
"""


class FedeRankError(Exception):
    """Anything that a user can mend; its message says how."""


class DataError(FedeRankError):
    """What was read is not what it should be."""


class UnknownDataset(DataError):
    """No known set and no file has this name."""


class BadFile(DataError):
    """A file is missing, unreadable, or breaks its format."""


class BadSplit(DataError):
    """A split leaks, or cannot be made."""


class SettingError(FedeRankError):
    """A setting is out of its range."""


class ModelError(FedeRankError):
    """A model's directory is missing a file, foreign, or tampered with."""


class UnknownId(FedeRankError):
    """A user or item that the model or the data has never met."""


class DownloadError(FedeRankError):
    """A file could not be fetched whole."""


class Diverged(FedeRankError):
    """Training left the range of numbers."""
