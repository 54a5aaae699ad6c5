"""A line: what is known of one run, as a line of runs.jsonl keeps it.

The file holds JSON, for other programs; this is the one place that knows its keys. A line may leave out a key whose
value is the default; an unknown key is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

Task = Literal["choose", "test", "audit"]
Part = Literal["validation", "test"]


class Point(NamedTuple):
    """What a run was worth after one of its epochs."""

    epoch: int
    values: Mapping[str, float]


class Traffic(NamedTuple):
    """The bytes that all devices of a run have sent and received."""

    up: int
    down: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One run: what it was, what came of it, and what it took."""

    id: str
    group: str = ""
    """The label of its row."""
    data: str = ""
    model: str = ""
    """The name of the method."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    swept: Mapping[str, Any] = field(default_factory=dict)
    chosen: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    fold: int | None = None
    task: Task = "test"
    part: Part | None = None
    """What it was judged by."""
    metric: str | None = None
    """What it was chosen by, or chooses by."""
    epoch: int | None = None
    epochs: int | None = None
    patience: int | None = None
    at: Sequence[int] = ()
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    curve: Sequence[Point] = ()
    chosen_on: Part | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_mb: float | None = None
    bytes: Traffic | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    data_fingerprint: str | None = None
    repeats_left_out: int = 0
    """Rows of the data's source that repeated a (user, item) pair and were left out."""
    status: Literal["done", "failed"] = "done"
    reason: str | None = None
    """Why it failed."""
    transient: bool = False
    """Whether a failure may pass: then the run is tried again."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What figures need beyond metrics (run/extras.py), and what audits tell beside theirs."""
    best: bool = False
    """Whether it stands here as the best point of a sweep: mostly told by its label."""

    @property
    def done(self) -> bool:
        """Whether it has not failed."""
        return self.status == "done"


class Label(NamedTuple):
    """What a run is called in the study as it is now."""

    id: str
    group: str
    data: str
    swept: Mapping[str, Any]
    chosen: Mapping[str, Any]
    chosen_on: Part | None
    best: bool = False

    def put_on(self, line: Line) -> Line:
        """The line under this label."""
        return replace(line, **self._asdict())


def read_line(content: Mapping[str, Any]) -> Line:
    """A line from its JSON."""
    held = {
        "at": tuple(content.get("at", ())),
        "curve": tuple(_point(point) for point in content.get("curve", ())),
        "bytes": Traffic(**content["bytes"]) if content.get("bytes") else None,
    }
    return Line(**{**content, **held})


def line_as_json(line: Line) -> dict[str, Any]:
    """A line as its file has it."""
    content = {one.name: getattr(line, one.name) for one in fields(Line)}
    content |= {
        "at": list(line.at),
        "curve": [{"epoch": point.epoch, **point.values} for point in line.curve],
        "bytes": None if line.bytes is None else line.bytes._asdict(),
    }
    return {
        name: value for name, value in content.items() if value or name not in ("extra", "best", "repeats_left_out")
    }


def read_label(content: Mapping[str, Any]) -> Label:
    """A label from its JSON."""
    return Label(**content)


def label_as_json(label: Label) -> dict[str, Any]:
    """A label as current.json has it."""
    return label._asdict()


def _point(content: Mapping[str, Any]) -> Point:
    return Point(int(content["epoch"]), {name: value for name, value in content.items() if name != "epoch"})
