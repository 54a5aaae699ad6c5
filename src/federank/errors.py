"""Everything that can go wrong for a user, as one tree.

    FedeRankError
    ├── DataError            what was read is not what it should be
    │   ├── UnknownDataset   no known set and no file has this name
    │   ├── BadFile          a file is missing, unreadable, or breaks its format
    │   └── BadSplit         a split leaks, or cannot be made
    ├── SettingError         a setting is out of its range
    │   ├── LeaderNotAllowed the helper's operator has not allowed this leader's key yet
    │   └── MissingExtra     what was asked for needs packages that are not installed
    ├── ModelError           a model's directory is missing a file, foreign, or tampered with
    ├── UnknownId            a user or item that the model or the data has never met
    ├── DownloadError        a file could not be downloaded completely
    ├── Diverged             training left the range of numbers
    ├── ClusterGone          no cluster answers, or not any more
    ├── BadMessage           a message breaks the protocol
    ├── StoreError           the server's store cannot be used as it was asked for
    ├── StoreAway            the server's database does not answer now
    │   └── Overtaken        a round was ended by someone else
    ├── TLSError             a certificate or its key cannot be used
    ├── BadState             a client's file is missing, in use, damaged, or cannot be written
    ├── BadAnswer            a server answered a client with something that it must not take
    ├── NoAnswer             a server could not be reached for as long as the client was willing to retry
    │   └── HelperAway       the second of two servers could not be reached
    ├── Refused              a server understood a client and said no
    └── Withdrawn            what a client was to send is no longer wanted

Each message says what was wrong, what is needed and what to do next. The command line
prints it and ends with exit code 2; no other exception is meant for a user.
"""


class FedeRankError(Exception):
    """Anything that a user can fix; its message says how."""


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


class LeaderNotAllowed(SettingError):
    """The helper's operator has not allowed this leader's key yet; the key waits in the store."""


class MissingExtra(SettingError):
    """What was asked for needs packages that are not installed; `extra` is the name of the extra that brings them."""

    def __init__(self, message: str, *, extra: str) -> None:
        super().__init__(message)
        self.extra = extra


class ModelError(FedeRankError):
    """A model's directory is missing a file, foreign, or tampered with."""


class UnknownId(FedeRankError):
    """A user or item that the model or the data has never met."""


class DownloadError(FedeRankError):
    """A file could not be downloaded completely."""


class Diverged(FedeRankError):
    """Training left the range of numbers."""


class ClusterGone(FedeRankError):
    """No cluster answers, or not any more."""


class BadMessage(FedeRankError):
    """A message that breaks the protocol."""


class StoreError(FedeRankError):
    """The server's store cannot be used as it was asked for."""


class StoreAway(FedeRankError):
    """The server's database does not answer now: it is away, full or locked. What was asked has not been done."""

    is_full = False
    """Whether the reason is that there is no space on the disk."""


class Overtaken(StoreAway):
    """A round was aggregated, or given up, by someone else; anyone who leads reads the store again."""


class TLSError(FedeRankError):
    """A certificate or its key cannot be used."""


class BadState(FedeRankError):
    """A client's file is missing, in use, damaged, of another version, or cannot be written."""


class BadAnswer(FedeRankError):
    """The server answered with something that a client must not take."""


class NoAnswer(FedeRankError):
    """The server could not be reached, or could not answer, for as long as the client was willing to retry."""


class HelperAway(NoAnswer):
    """The second of a federation's two servers does not answer, so nothing can be sent just now; nothing is lost."""


class Refused(FedeRankError):
    """The server has understood and said no; `status` is the HTTP status, `slug` its reason in one word."""

    def __init__(self, status: int, slug: str, message: str) -> None:
        super().__init__(message)
        self.status, self.slug = status, slug


class Withdrawn(FedeRankError):
    """What was to be sent is no longer wanted by anyone who asked for it; it is not tried again."""
