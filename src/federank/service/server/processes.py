"""The server's processes: sockets, workers, and their end.

One process binds the addresses. With one worker it serves them itself; with more it starts that many processes, hands
them the sockets, and starts again whichever dies. A worker that ends leaves nothing behind that matters: all is in the
store.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from federank.errors import FedeRankError
from federank.service.server.http.listening import (
    ConnectionLimits,
    allow_many_connections,
    follow_signals,
    proxies_of,
    run,
    serve_until,
    stop_soon,
    uvicorn_server,
)
from federank.service.server.http.listening import bind as bind
from federank.service.server.logs import Log
from federank.service.server.settings import TrustSettings


@dataclass(frozen=True, kw_only=True)
class Serving:
    """How one machine serves a federation."""

    store: str
    trust: TrustSettings
    certificate: Path | None = None
    key: Path | None = None
    workers: int = 1
    proxies: str | None = None  # addresses of proxies whose X-Forwarded-For is believed
    quiet: bool = False
    worker: int = 0  # which of several workers this is; 0 where there is one process


def serve(serving: Serving, public: socket.socket, admin: socket.socket) -> int:
    """Serve until a signal to stop; an exit code."""
    allow_many_connections()
    if serving.workers == 1:
        return asyncio_run(serving, public, admin)
    return _keep_workers(serving, public, admin)


def asyncio_run(serving: Serving, public: socket.socket, admin: socket.socket) -> int:
    """One worker, in this process."""
    return run(_work(serving, public, admin))


async def _work(serving: Serving, public: socket.socket, admin: socket.socket) -> None:
    from federank.service.server.http.app import admin_app, public_app
    from federank.service.server.service import open_service

    blas_threads = use_one_blas_thread()
    log = Log(None if serving.quiet else sys.stderr, serving.worker)
    service = open_service(serving.store, serving.trust, log)
    servers = [_uvicorn(public_app(service), serving), _uvicorn(admin_app(service), serving)]
    stopping = follow_signals(servers, serving.certificate, serving.key, log)
    await service.start()
    version = None if service.latest.model is None else service.latest.model.version
    log.say("serving", version=version, items=service.config.n_items, blas_threads=blas_threads)
    await serve_until(stopping, servers, [public, admin], service.selection.end)
    await stop_soon(service.stop(), log)


def use_one_blas_thread() -> int:
    """Limit this process to one BLAS thread; how many it has then.

    A server's matrices are small. With more threads, all but one wait for work by spinning, which costs several times
    the processor time of the work itself.
    """
    from threadpoolctl import threadpool_info, threadpool_limits

    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        os.environ[name] = "1"  # for libraries that are loaded later
    threadpool_limits(limits=1, user_api="blas")  # for those that are loaded already
    return max((int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def _uvicorn(app: Any, serving: Serving) -> Any:
    limits = ConnectionLimits(
        header_timeout=serving.trust.header_seconds,
        reading_timeout=serving.trust.body_seconds,
        per_address=serving.trust.address_connections,
        is_proxy=proxies_of(serving.proxies),
    )
    return uvicorn_server(app, limits, serving.certificate, serving.key, serving.proxies)


def _keep_workers(serving: Serving, public: socket.socket, admin: socket.socket) -> int:
    """Start the workers, and start again those that die, until a signal to stop."""
    stopping: list[int] = []
    again: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _: stopping.append(signum))
    signal.signal(signal.SIGHUP, lambda signum, _: again.append(signum))
    with tempfile.TemporaryDirectory(prefix="federank-metrics-") as counts:
        workers = [_start_worker(serving, public, admin, counts, number + 1) for number in range(serving.workers)]
        log = Log(None if serving.quiet else sys.stderr)
        while not stopping:
            time.sleep(0.2)
            for index, worker in enumerate(workers):
                if worker.poll() is not None and not stopping:
                    log.say("worker ended", "error", number=index + 1, code=worker.returncode)
                    time.sleep(0.5)
                    workers[index] = _start_worker(serving, public, admin, counts, index + 1)
            if again:
                again.clear()
                _signal(workers, signal.SIGHUP)
        _signal(workers, signal.SIGTERM)
        for worker in workers:
            try:
                worker.wait(15)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    return 0


def _signal(workers: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            worker.send_signal(number)


def _start_worker(
    serving: Serving, public: socket.socket, admin: socket.socket, counts: str, number: int
) -> subprocess.Popen[bytes]:
    sockets = [public.fileno(), admin.fileno()]
    message = json.dumps(
        {"serving": _plain(replace(serving, worker=number)), "sockets": sockets, "parent": os.getpid()}
    )
    # The settings go through a pipe: a store's address may hold a password, which has no place in a list of processes.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # it would end a worker that does not listen for it yet
    try:
        worker = subprocess.Popen(
            [sys.executable, "-m", "federank.service.server.processes"],
            stdin=subprocess.PIPE,
            pass_fds=sockets,
            env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": counts},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(message.encode())
        worker.stdin.close()
    return worker


def _plain(serving: Serving) -> dict[str, Any]:
    """One worker's part of it: the connections of an address are divided over the workers, and so is what it may ask.

    A client holds one connection, so each worker allows it all that one client may ask.
    """
    trust, workers = serving.trust, serving.workers
    part = replace(
        trust,
        address_rate=trust.address_rate / workers,
        enrolment_rate=trust.enrolment_rate / workers,
        address_connections=-(-trust.address_connections // workers),
    )
    values = asdict(replace(serving, trust=part, workers=1))
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def serving_from(values: dict[str, Any]) -> Serving:
    """The same settings in a worker's process."""
    paths = {name: None if values[name] is None else Path(values[name]) for name in ("certificate", "key")}
    return Serving(**{**values, **paths, "trust": TrustSettings(**values["trust"])})


# One of several workers, as a process: its parent sends it, through stdin, what to serve and on which sockets.


_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve until a signal to stop, or until the parent has gone."""
    task = json.load(sys.stdin)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != task["parent"]:
            return 0  # it went before we could ask for the signal
    public, admin = (socket.socket(fileno=number) for number in task["sockets"])
    try:
        return asyncio_run(serving_from(task["serving"]), public, admin)
    except FedeRankError as mistake:
        sys.stderr.write(f"federank: {mistake}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
