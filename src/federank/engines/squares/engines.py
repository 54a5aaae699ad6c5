"""The engines that play rounds of few messages, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from federank.engines.federated import Engine, EngineName, Machines, Open, in_this_process
from federank.engines.squares import compiled, reference
from federank.engines.squares.federation import SquaresFederation


@contextmanager
def _on_a_cluster(federation: SquaresFederation, machines: Machines) -> Iterator[Engine]:
    from federank.engines.squares.cluster import on_a_cluster

    with on_a_cluster(federation, machines) as engine:
        yield engine


ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(reference.play),
    "cluster": _on_a_cluster,
}
