"""Training: rounds played in chunks, so that a run can be watched, stopped and resumed.

Every random choice is keyed by its round (federation/rng.py), so a run that is stopped, saved and resumed ends with the
same bits as an uninterrupted one. Ctrl-C takes effect between two chunks, when the model is complete. Checkpoints are
written atomically. The options of a run are in options.py.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from federank.errors import BadFile, ClusterGone, Diverged, ModelError, SettingError
from federank.files import file_in_place
from federank.simulation.federated import Engine, Federated, Machines
from federank.simulation.options import Progress, TrainingOptions

# Checkpoints: the state of a federation between two rounds.


def save_checkpoint(federation: Federated, path: Path, identity: str) -> None:
    """Write the state between two rounds atomically."""
    document = json.dumps({"round": federation.round_number, "run": identity})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_in_place(path) as draft:
            save_file(federation.tables().all, draft, metadata={"federank-checkpoint": document})
    except (OSError, SafetensorError) as reason:
        raise BadFile(f"The checkpoint cannot be written to {path} ({reason}); choose another place.") from reason


def resume(federation: Federated, path: Path, identity: str) -> None:
    """Resume from a checkpoint of the run with this identity."""
    if not path.is_file():
        raise ModelError(f"There is no checkpoint at {path} to resume from; start the run without --resume.")
    try:
        with safe_open(path, framework="numpy") as content:
            document = json.loads((content.metadata() or {})["federank-checkpoint"])
            arrays = {name: content.get_tensor(name) for name in federation.tables().all}
            number, run = int(document["round"]), str(document["run"])
    except (SafetensorError, KeyError, ValueError, TypeError) as reason:
        raise ModelError(f"{path} is not a checkpoint of ours, or it is damaged ({reason}); start again.") from reason
    if run != identity:
        raise ModelError(
            f"{path} belongs to a run with other settings or other data; resume with the same, or start again."
        )
    tables = federation.tables().all
    for name, array in arrays.items():
        if array.shape != tables[name].shape or not np.isfinite(array).all():
            raise ModelError(
                f"{path} has {name} of an unexpected shape or with values that are not finite; start again."
            )
        setattr(federation, name, np.ascontiguousarray(array))
    federation.round_number = number


_CHUNK_SECONDS = 0.2
_CHECKPOINT_SECONDS = 30.0


class Stopped(KeyboardInterrupt):
    """The user stopped the run; its state is in the checkpoint, if there is one."""


def train(
    federation: Federated,
    epochs: int,
    options: TrainingOptions,
    identity: str,
    follow: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Play these epochs; returns the number of rounds and the seconds. `identity` identifies the run of a checkpoint.

    `follow` copies the current model: at the end, and before `after_epoch` is called.
    """
    then = options.after_epoch
    if then is not None:

        def follow_first(epoch: int) -> None:
            follow()
            then(epoch)

        options = replace(options, after_epoch=follow_first)
    if options.resume and options.kept_in is not None:
        resume(federation, options.kept_in, identity)
    if options.engine not in federation.engines:
        raise SettingError(
            f"The {options.engine} engine does not play this method's rounds; the engines that do are "
            f"{' and '.join(federation.engines)}."
        )
    machines = Machines(options.cluster, options.shards)
    with federation.engines[options.engine](federation, machines) as engine:
        try:
            seconds = _play_epochs(federation, epochs, options, identity, engine)
        except ClusterGone as gone:
            if options.kept_in is None:
                raise
            # The federation is back at the last complete round.
            save_checkpoint(federation, options.kept_in, identity)
            raise ClusterGone(
                f"{gone} The state of round {federation.round_number:,} is in {options.kept_in}; the "
                "same command with --resume goes on."
            ) from gone
    follow()
    return {"seconds": seconds, "rounds": federation.round_number, "rounds_per_epoch": federation.rounds_per_epoch}


def _play_epochs(federation: Federated, epochs: int, options: TrainingOptions, identity: str, engine: Engine) -> float:
    play, bring_home = engine
    per_round, per_epoch = federation.steps_per_round, federation.rounds_per_epoch
    rounds = epochs * per_epoch
    chunk = max(1, int(20_000 / per_round)) if options.engine == "compiled" else 1
    play(federation, 0, options.threads)  # plays no round, but compiles before the clock starts
    playing, last_saved = 0.0, time.perf_counter()
    with _stop_between_chunks() as stopped:
        while federation.round_number < rounds:
            until = (federation.round_number // per_epoch + 1) * per_epoch
            now = min(chunk, until - federation.round_number)
            started = time.perf_counter()
            play(federation, now, options.threads)
            elapsed = max(time.perf_counter() - started, 1e-9)
            playing += elapsed
            _refuse_divergence(federation, options.kept_in)
            done = federation.round_number
            if options.progress is not None:
                epoch = (done - 1) // per_epoch + 1
                options.progress(Progress(epoch, epochs, done, rounds, now * per_round / elapsed))
            if now == chunk:
                chunk = max(1, min(4 * chunk, int(chunk * _CHUNK_SECONDS / elapsed)))
            if done == until and options.after_epoch is not None:
                bring_home()
                options.after_epoch(done // per_epoch)
            long_ago = time.perf_counter() - last_saved > _CHECKPOINT_SECONDS
            if options.kept_in is not None and (long_ago or stopped.is_set()):
                bring_home()
                save_checkpoint(federation, options.kept_in, identity)
                last_saved = time.perf_counter()
            if stopped.is_set():
                raise Stopped(f"stopped after round {done:,} of {rounds:,}")
    bring_home()
    return playing


def _refuse_divergence(federation: Federated, checkpoint: Path | None) -> None:
    if all(np.isfinite(table).all() for table in federation.tables().server.values()):
        return
    kept = f" The last good state is in {checkpoint}." if checkpoint is not None and checkpoint.exists() else ""
    # Name the epoch, not the round: chunks depend on the machine, and errors should be reproducible.
    epoch = (federation.round_number - 1) // federation.rounds_per_epoch + 1
    raise Diverged(f"In epoch {epoch:,} the factors stopped being finite numbers: {federation.why_diverged()}{kept}")


@contextmanager
def _stop_between_chunks() -> Iterator[threading.Event]:
    """Ctrl-C sets an event instead of interrupting a step; this works in the main thread only."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.signal(signal.SIGINT, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
