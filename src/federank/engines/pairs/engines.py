"""The engines of pair-wise learning, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from federank.engines.federated import Engine, EngineName, Machines, Open, in_this_process
from federank.engines.pairs import compiled, reference
from federank.engines.pairs.federation import Federation


@contextmanager
def _on_a_cluster(federation: Federation, machines: Machines) -> Iterator[Engine]:
    from federank.engines.cluster.opening import opened

    with opened(federation, machines.address or "local", machines.shards) as cluster:
        yield Engine(cluster.play, cluster.bring_home)


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(reference.play),
    "cluster": _on_a_cluster,
}
