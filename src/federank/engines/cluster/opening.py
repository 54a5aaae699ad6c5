"""Opening a cluster: what cannot be is refused before anything is started, then devices are spread over shards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from federank.arrays import LongVector
from federank.engines.cluster.districts import districts_of
from federank.engines.cluster.engine import Cluster
from federank.engines.cluster.machines import LOCAL, cluster_cpus, connected
from federank.engines.pairs.federation import Federation
from federank.errors import SettingError


@contextmanager
def opened(federation: Federation, address: str = LOCAL, shards: int | None = None) -> Iterator[Cluster]:
    """A cluster with this federation's devices on it, for as long as rounds are played; `shards`: all its cores."""
    starts = _districts(federation)
    districts = len(starts) - 1
    _refuse_more_than(districts, shards, f"a round of this population is summed in {districts} districts")
    cores = min(shards or os.cpu_count() or 1, districts)
    with connected(address, cores, _store_bytes(federation, districts)) as ray:
        cores = cluster_cpus(ray)
        _refuse_more_than(cores, shards, f"the cluster has {cores} cores")
        cluster = Cluster(ray, federation, starts, shards or min(cores, districts))
        try:
            yield cluster
        finally:
            cluster.close()


def _districts(federation: Federation) -> LongVector:
    recipe = federation.recipe
    if len(np.unique(recipe.participants)) < len(recipe.participants):
        raise SettingError(
            "The cluster engine needs people with a device each; a centralised method draws them by activity, from one "
            "place: use --engine compiled."
        )
    if len(recipe.weights):
        raise SettingError(
            "The cluster engine adds Updates up as they are; for the weights mean or profile use --engine compiled."
        )
    return districts_of(recipe, len(federation.user_vectors), *federation.item_vectors.shape)


def _refuse_more_than(most: int, shards: int | None, why: str) -> None:
    if shards is not None and shards > most:
        raise SettingError(f"{shards} shards were asked for, but {why}; ask for at most {most}.")


def _store_bytes(federation: Federation, districts: int) -> int:
    """Room for what passes between processes: histories and vectors once, and a round's messages twice."""
    held = federation.profiles.items.nbytes + 2 * federation.user_vectors.nbytes
    return int(1.5 * (held + 2 * (districts + 1) * federation.item_vectors.nbytes))
