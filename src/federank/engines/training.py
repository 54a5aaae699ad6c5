"""Training: rounds played chunk by chunk, so that a person can watch, stop, and go on another day.

Every random choice is named by its round (protocol/draws.py), so where a run is cut changes nothing: a run that is
stopped, saved and resumed ends with the same bits as one that was not. Ctrl-C takes effect between two chunks, when
the model is whole; the checkpoint is written under a temporary name and renamed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from federank.engines.checkpoint import resume, save_checkpoint
from federank.engines.federated import Engine, EngineName, Federated, Machines
from federank.errors import ClusterGone, Diverged, SettingError

_CHUNK_SECONDS = 0.2
_CHECKPOINT_SECONDS = 30.0


class Progress(NamedTuple):
    """How far a run has come."""

    epoch: int  # the one that is being played, from 1
    epochs: int
    round_number: int
    rounds: int
    triples_per_second: float  # or ratings, where it is these that are learnt


@dataclass(frozen=True, kw_only=True)
class Conduct:
    """How a run is carried out; nothing here changes its result."""

    engine: EngineName = "compiled"
    """`compiled` for use, `reference` for reading and for tiny worlds, `cluster` where one machine is too small."""
    threads: int = 1
    """Cores to use where a round has many clients; the result is the same for any number."""
    cluster: str | None = None
    """Where the cluster engine finds its machines: `local`, or the address of a Ray cluster."""
    shards: int | None = None
    """Over how many of the cluster's processes the devices are spread; all its cores unless told."""
    checkpoint: Path | None = None
    """Where to keep the state of an unfinished run."""
    resume: bool = False
    """Go on from the checkpoint instead of starting anew."""
    watch: Callable[[Progress], None] | None = None
    """Called a few times a second."""
    after_epoch: Callable[[int], None] | None = None
    """Called with the number of each epoch that has been played, while the model is whole."""

    def __post_init__(self) -> None:
        *names, last = get_args(EngineName)
        if self.engine not in (*names, last):
            raise SettingError(f"No engine is called {self.engine!r}; there are {', '.join(names)} and {last}.")
        if self.threads < 1:
            raise SettingError(f"threads is {self.threads}; at least 1 is needed.")
        if self.shards is not None and self.shards < 1:
            raise SettingError(f"shards is {self.shards}; at least 1 is needed.")
        if self.engine != "cluster" and (self.cluster is not None or self.shards is not None):
            raise SettingError("A cluster and its shards are for the cluster engine; add --engine cluster.")
        if self.engine == "cluster" and self.threads > 1:
            raise SettingError("The cluster engine is spread over shards, not threads; say --shards instead.")
        if self.resume and self.checkpoint is None:
            raise SettingError("There is nothing to resume from: no checkpoint was named.")


class Stopped(KeyboardInterrupt):
    """The run was stopped by its user, and its state is in the checkpoint (if one was named)."""


def train(federation: Federated, epochs: int, conduct: Conduct, identity: str) -> float:
    """Play the rounds of this many epochs; the seconds they took. `identity` names the run that a checkpoint is of."""
    if conduct.resume and conduct.checkpoint is not None:
        resume(federation, conduct.checkpoint, identity)
    if conduct.engine not in federation.engines:
        raise SettingError(
            f"The {conduct.engine} engine does not play this method's rounds; the engines that do are "
            f"{' and '.join(federation.engines)}."
        )
    with federation.engines[conduct.engine](federation, Machines(conduct.cluster, conduct.shards)) as engine:
        try:
            return _play_epochs(federation, epochs, conduct, identity, engine)
        except ClusterGone as gone:
            if conduct.checkpoint is None:
                raise
            # The federation is back at the last round that was whole.
            save_checkpoint(federation, conduct.checkpoint, identity)
            raise ClusterGone(
                f"{gone} What was played up to round {federation.round_number:,} is kept in {conduct.checkpoint}; the "
                "same command with --resume goes on."
            ) from gone


def _play_epochs(federation: Federated, epochs: int, conduct: Conduct, identity: str, engine: Engine) -> float:
    play, bring_home = engine
    per_round, per_epoch = federation.steps_per_round, federation.rounds_per_epoch
    rounds = epochs * per_epoch
    chunk = max(1, int(20_000 / per_round)) if conduct.engine == "compiled" else 1
    play(federation, 0, conduct.threads)  # no round, but whatever needs compiling is compiled now, outside the clock
    playing, last_saved = 0.0, time.perf_counter()
    with _stop_between_chunks() as stopped:
        while federation.round_number < rounds:
            until = (federation.round_number // per_epoch + 1) * per_epoch
            now = min(chunk, until - federation.round_number)
            started = time.perf_counter()
            play(federation, now, conduct.threads)
            elapsed = max(time.perf_counter() - started, 1e-9)
            playing += elapsed
            _refuse_divergence(federation, conduct.checkpoint)
            done = federation.round_number
            if conduct.watch is not None:
                epoch = (done - 1) // per_epoch + 1
                conduct.watch(Progress(epoch, epochs, done, rounds, now * per_round / elapsed))
            if now == chunk:
                chunk = max(1, min(4 * chunk, int(chunk * _CHUNK_SECONDS / elapsed)))
            if done == until and conduct.after_epoch is not None:
                bring_home()
                conduct.after_epoch(done // per_epoch)
            long_ago = time.perf_counter() - last_saved > _CHECKPOINT_SECONDS
            if conduct.checkpoint is not None and (long_ago or stopped.is_set()):
                bring_home()
                save_checkpoint(federation, conduct.checkpoint, identity)
                last_saved = time.perf_counter()
            if stopped.is_set():
                raise Stopped(f"stopped after round {done:,} of {rounds:,}")
    bring_home()
    return playing


def _refuse_divergence(federation: Federated, checkpoint: Path | None) -> None:
    if all(np.isfinite(table).all() for table in federation.tables().server.values()):
        return
    kept = f" The last good state is in {checkpoint}." if checkpoint is not None and checkpoint.exists() else ""
    raise Diverged(
        f"By round {federation.round_number:,} the factors are no longer finite numbers: "
        f"{federation.why_diverged()}{kept}"
    )


@contextmanager
def _stop_between_chunks() -> Iterator[threading.Event]:
    """Ctrl-C sets an event instead of cutting a step in two; only the main thread can be asked this way."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
