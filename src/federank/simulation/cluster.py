"""Ray, at arm's length: reaching a cluster, waiting for answers, and saying plainly when it is gone.

Ray is an extra (`pip install "federank[cluster]"`), imported only when a cluster is asked for. Three kinds of address:

    local               a cluster of this machine alone, started now and ended when the work is done
    ray://head:10001    someone else's cluster, through Ray's client port
    head:6379           the same from a machine that is part of it

Left alone, Ray waits minutes for a head that is not there, and ends the program when a head goes away. So the
head is knocked at before Ray is asked, and again whenever an answer is long in coming.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from federank.errors import ClusterGone as ClusterGone
from federank.errors import SettingError
from federank.extras import need

LOCAL = "local"
_SECONDS_TO_KNOCK = 5.0
SECONDS_BETWEEN_KNOCKS = 2.0
_LEAST_STORE_BYTES = 96 * 2**20


def ray_module() -> Any:
    """Ray, where it is installed."""
    # What Ray would report about its use to its makers is no one's business here.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    need("cluster", "A cluster")
    import ray

    return ray


def check_address(address: str) -> None:
    """Refuse what cannot be the address of a cluster."""
    if address != LOCAL and not re.fullmatch(r"(ray://)?[^\s:/]+:\d{1,5}", address):
        raise SettingError(
            f"{address!r} is not the address of a cluster; it can be {LOCAL}, ray://HOST:10001, or HOST:6379 on a "
            "machine that is part of the cluster."
        )


@contextmanager
def connected(address: str, cpus: int, store_bytes: int) -> Iterator[Any]:
    """Ray, connected to this cluster for as long as the work lasts; a connection that is there already is kept.

    `cpus` and `store_bytes` (the memory for what passes between processes) count where the cluster is started here.
    """
    check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address == LOCAL:
            store = max(_LEAST_STORE_BYTES, store_bytes)
            ray.init(LOCAL, num_cpus=cpus, include_dashboard=False, object_store_memory=store, **quiet)
        else:
            knock(address)
            ray.init(address, **quiet)
    except ClusterGone:
        raise
    except Exception as reason:  # Ray has no exception of its own for a cluster that does not start
        ray.shutdown()
        raise ClusterGone(
            f"The cluster {address} cannot be used: {first_line(reason)} Check the address, and that its machines have "
            "the same versions of Python, Ray and FedeRank as this one."
        ) from reason
    try:
        yield ray
    finally:
        ray.shutdown()


def knock(address: str) -> None:
    """Make sure that someone listens at the head of a cluster."""
    host, port = address.removeprefix("ray://").rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_KNOCK).close()
    except (OSError, OverflowError) as reason:
        raise ClusterGone(
            f"No cluster answers at {address} ({reason}); start its head with `ray start --head`, or check the address."
        ) from reason


def answers(ray: Any, references: list[Any]) -> Iterator[Any]:
    """What was asked for, in the order of asking."""
    for reference in references:
        yield answer(ray, reference)


def answer(ray: Any, reference: Any) -> Any:
    """What was asked for; while waiting, the head is watched."""
    while not ray.wait([reference], timeout=SECONDS_BETWEEN_KNOCKS)[0]:
        watch_head(ray)
    return ray.get(reference)


def watch_head(ray: Any) -> None:
    """Say so if the head of the cluster has gone away, before Ray ends this program for it."""
    if ray.util.client.ray.is_connected():
        return  # the client port speaks for itself: its loss is a ConnectionError
    knock(ray.get_runtime_context().gcs_address)


def losses(ray: Any) -> tuple[type[Exception], ...]:
    """What is raised for a worker or a node that is gone while the cluster goes on."""
    raised = ray.exceptions
    return (
        raised.RayActorError,
        raised.ObjectLostError,
        raised.NodeDiedError,
        raised.WorkerCrashedError,
        raised.OutOfMemoryError,
    )


def cluster_cpus(ray: Any) -> int:
    """How many cores the cluster has in all."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def first_line(reason: Exception) -> str:
    """What Ray has to say, without the pages that follow."""
    line = (str(reason).strip().splitlines() or [type(reason).__name__])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."
