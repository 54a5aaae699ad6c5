"""Results: the folder in which a study keeps what has been found.

    VERSION              the number of this format
    study.toml           the study as it is run, overrides applied
    runs.jsonl           one JSON line per finished run, done or failed
    current.json         which of these runs belong to the study as it is now, and under which label
    users/ID.parquet     each user's values in the test run with this id
    claims/ID            locked by the process that carries this run out

A run is named by its content (plan.py), so runs.jsonl only ever grows: a line is appended under a lock and forced
to the disk. A process that dies while it writes leaves a torn last line, which readers pass over and the next writer
cuts off. The users' values are written before their line, under a temporary name: a line that is there is complete.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import polars as pl

from federank.errors import BadFile
from federank.files import file_in_place

Lock = IO[bytes]
"""An open file whose lock is held; closing it frees the lock."""


def lock(path: Path, *, wait: bool = True) -> Lock:
    """Lock this file against other processes; without `wait`, BlockingIOError where another one holds it."""
    held = path.open("ab")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        held.close()
        raise
    return held


Task = Literal["choose", "test"]
Part = Literal["validation", "test"]


class Point(NamedTuple):
    """What a run was worth after one of its epochs."""

    epoch: int
    values: Mapping[str, float]


class Traffic(NamedTuple):
    """The bytes that all clients of a run have sent and received."""

    up: int
    down: int


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What is known of a run before it is carried out (plan.py), and kept with its results."""

    id: str = ""
    group: str = ""
    """The label of its row."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the study says, with swept and chosen values; the seed is apart."""
    swept: Mapping[str, Any] = field(default_factory=dict)
    chosen: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    fold: int | None = None
    task: Task = "test"
    part: Part | None = None
    """What it was judged by."""
    metric: str | None = None
    """What it was chosen by, or chooses by."""
    epochs: int | None = None
    """The budget, of a method that learns in epochs."""
    patience: int | None = None
    at: Sequence[int] = ()
    chosen_on: Part | None = None
    repeats_left_out: int = 0
    """Rows of the data's source that repeated a (user, item) pair and were left out."""


@dataclass(frozen=True, kw_only=True)
class RunRecord(Planned):
    """One run: what it was, what came of it, and what it took."""

    data: str = ""
    model: str = ""
    """The name of the method."""
    epoch: int | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    curve: Sequence[Point] = ()
    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_mb: float | None = None
    bytes: Traffic | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    data_fingerprint: str | None = None
    status: Literal["done", "failed"] = "done"
    reason: str | None = None
    """Why it failed."""
    transient: bool = False
    """Whether a failure may pass: then the run is tried again."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What figures need beyond metrics (task.py), and what audits add."""
    best: bool = False
    """Whether it stands here as the best point of a sweep: mostly named in its label."""

    @property
    def done(self) -> bool:
        """Whether it has not failed."""
        return self.status == "done"


def values_line(values: Mapping[str, Any]) -> str:
    """Values of settings in a line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def spoken_time(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


class Label(NamedTuple):
    """What a run is called in the study as it is now."""

    id: str
    group: str
    data: str
    swept: Mapping[str, Any]
    chosen: Mapping[str, Any]
    chosen_on: Part | None
    best: bool = False


def read_record(content: Mapping[str, Any]) -> RunRecord:
    """A record from its JSON."""
    held = {
        "at": tuple(content.get("at", ())),
        "curve": tuple(Point(point.pop("epoch"), point) for point in map(dict, content.get("curve", ()))),
        "bytes": Traffic(**content["bytes"]) if content.get("bytes") else None,
    }
    return RunRecord(**{**content, **held})


def record_as_json(record: RunRecord) -> dict[str, Any]:
    """A record as its file has it."""
    content = {one.name: getattr(record, one.name) for one in fields(RunRecord)}
    content |= {
        "at": list(record.at),
        "curve": [{"epoch": point.epoch, **point.values} for point in record.curve],
        "bytes": None if record.bytes is None else record.bytes._asdict(),
    }
    return {
        name: value for name, value in content.items() if value or name not in ("extra", "best", "repeats_left_out")
    }


FORMAT = 1


class Results:
    """A results folder; `open` one that is there, or `create` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, RunRecord] = {}
        self._read = 0  # how far into runs.jsonl lines are known
        self._count = 0

    @classmethod
    def open(cls, folder: str | Path) -> Results:
        """The results in this folder."""
        position = Path(folder)
        if not (position / "VERSION").is_file():
            raise BadFile(
                f"{position} holds no results of a study: it has no file VERSION. `federank study run` makes one."
            )
        _refuse_other_format(position)
        return cls(position)

    @classmethod
    def create(cls, folder: str | Path) -> Results:
        """The results in this folder, made now if there is none; a folder with other things in it is refused."""
        position = Path(folder)
        with _disk_errors(position):
            if (position / "VERSION").is_file():
                _refuse_other_format(position)
            elif position.is_dir() and any(
                path.name not in ("users", "claims") and not path.name.removeprefix(".").startswith("VERSION")
                for path in position.iterdir()  # what another process has made so far of a new folder is no obstacle
            ):
                raise BadFile(
                    f"{position} holds something else than results of a study; choose another folder with --out."
                )
            for name in ("users", "claims"):
                (position / name).mkdir(parents=True, exist_ok=True)
            if not (position / "VERSION").is_file():
                _write(position / "VERSION", f"{FORMAT}\n".encode())
        return cls(position)

    def append(self, record: RunRecord, users: bytes | None = None) -> None:
        """Keep a run: each user's values (the content of a Parquet file), then its line."""
        content = json.dumps(record_as_json(record), allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with _disk_errors(self.folder):
            if users is not None:
                _write(self.folder / "users" / f"{record.id}.parquet", users)
            with lock(self.folder / "claims" / "writing"), (self.folder / "runs.jsonl").open("ab") as file:
                _cut_torn_line(self.folder / "runs.jsonl")
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    def records(self, *, every: bool = False) -> list[RunRecord]:
        """The runs of the study as it is now, in its order, under its labels; or `every` run that was ever kept.

        Of a run that was carried out twice (because it had failed) the last line counts.
        """
        self.refresh()
        current = None if every else self._current()
        if current is None:
            return list(self._records.values())
        _, labels = current
        return [replace(self._records[one.id], **one._asdict()) for one in labels if one.id in self._records]

    def record(self, identity: str) -> RunRecord | None:
        """The run with this id, if it is known (see `refresh`)."""
        return self._records.get(identity)

    def refresh(self) -> None:
        """Read the lines that have come since the last time."""
        path = self.folder / "runs.jsonl"
        if not path.is_file():
            return
        with path.open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
        complete = fresh[: fresh.rfind(b"\n") + 1]
        for text in complete.splitlines():
            self._count += 1
            try:
                record = read_record(json.loads(text))
                self._records[record.id] = record
            except (ValueError, KeyError, TypeError, AttributeError) as reason:
                raise BadFile(
                    f"Line {self._count} of {path} is not a run of ours ({reason}); take the line out, and its run is "
                    "done again."
                ) from reason
        self._read += len(complete)

    def users(self, identity: str) -> pl.DataFrame:
        """Each user's values in the test run with this id."""
        path = self.folder / "users" / f"{identity}.parquet"
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as reason:
            raise BadFile(f"{path}, each user's values in that run, is missing or damaged ({reason}).") from reason

    def has_users(self, identity: str) -> bool:
        """Whether each user's values in this run were kept."""
        return (self.folder / "users" / f"{identity}.parquet").is_file()

    def claim(self, identity: str) -> Lock | None:
        """The right to carry this run out, until it is closed; None while another process has it."""
        with _disk_errors(self.folder):
            try:
                return lock(self.folder / "claims" / identity, wait=False)
            except BlockingIOError:
                return None

    def keep_study(self, text: str) -> None:
        """Keep the study as it is run."""
        with _disk_errors(self.folder):
            _write(self.folder / "study.toml", text.encode())

    def keep_current(self, labels: Sequence[Label], count: int) -> None:
        """Keep which runs belong to the study as it is now, and how many it will have (tests are known late)."""
        content = json.dumps({"count": count, "rows": [label._asdict() for label in labels]})
        with _disk_errors(self.folder):
            _write(self.folder / "current.json", content.encode())

    def count(self) -> int:
        """How many runs the study has, finished or not."""
        current = self._current()
        return len(self.records(every=True)) if current is None else current[0]

    def _current(self) -> tuple[int, list[Label]] | None:
        """How many runs the study has as it is now, and the labels of those that are known; None before it has any."""
        path = self.folder / "current.json"
        if not path.is_file():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return int(kept["count"]), [Label(**document) for document in kept["rows"]]
        except (OSError, ValueError, KeyError, TypeError) as reason:
            raise BadFile(
                f"{path} is damaged ({reason}); start the study again: it is written again, and no run is repeated."
            ) from reason

    def under_way(self) -> list[str]:
        """The runs that a process has claimed and not finished yet."""
        self.refresh()
        claims = self.folder / "claims"
        if not claims.is_dir():  # as in a copy without its locks
            return []
        claimed = []
        for name in sorted({path.name for path in claims.iterdir()} - {"writing", *self._records}):
            if (held := self.claim(name)) is None:
                claimed.append(name)
            else:
                held.close()
        return claimed


def _refuse_other_format(folder: Path) -> None:
    version = (folder / "VERSION").read_text(encoding="utf-8", errors="replace").strip()
    if version != str(FORMAT):
        raise BadFile(
            f"{folder} holds results in format {version[:20]!r}; this federank reads format {FORMAT}. Use the "
            "version that wrote them, or start again in another folder with --out."
        )


def _cut_torn_line(path: Path) -> None:
    """Cut off what a process left that died while it wrote."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end == 0:
            return
        file.seek(end - 1)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _write(path: Path, content: bytes) -> None:
    with file_in_place(path) as draft:
        draft.write_bytes(content)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Disk errors as errors of ours."""
    try:
        yield
    except OSError as reason:
        if reason.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BadFile(
                f"No space is left on the disk of {folder}. Free some and repeat the command: finished runs are kept."
            ) from reason
        raise BadFile(
            f"{folder} cannot be written ({reason.strerror or reason}); choose another with --out."
        ) from reason
