"""Which worker runs which test, where several do (pytest-xdist): whole files, in an order that leaves no one waiting.

A file's tests share what is slow to start (a browser, a cluster, a server, compiled kernels), so a file stays with one
worker, which starts it once. Files of long tests that share nothing are dealt out test by test.

After an edit all kernels are compiled again and kept for the other processes. So the files that compile most come
first,
each worker with another family of methods, and after them what takes longest.

Slow tests mostly wait: for a browser, for a server to start, for a process that was killed to be missed. So there are
more workers than cores where they run.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadScopeScheduling

COMPILE = "tests/agreement/"
DEALT_OUT = "tests/test_docs.py"
LONG = (
    DEALT_OUT,
    "tests/packaging/",
    "tests/methods/fpl/test_audit_figures.py",
    "tests/cli/test_demo.py",
    "tests/simulation/test_cluster.py",
    "tests/evaluation/test_prediction.py",
    "tests/methods/fpl/test_recommender.py",
    "tests/studies/run/test_ray.py",
    "tests/service/web/",
    "tests/service/server/test_durability.py",
    "tests/service/server/test_limits.py",
    "tests/service/fleet/",
)


class WholeFiles(LoadScopeScheduling):
    """A unit of work is a file, or one test of those that are dealt out."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return nodeid if file == DEALT_OUT else file


def workers(selected: str) -> int:
    """A worker for each core, and one more for every two of them where slow tests are selected."""
    cores = os.cpu_count() or 1
    return cores if "not slow" in selected else cores + (cores + 1) // 2


def in_order(item: pytest.Item) -> int:
    """What compiles, then what is long, then the rest as it comes."""
    if item.nodeid.startswith(COMPILE):
        return 0
    return 1 if item.nodeid.startswith(LONG) else 2
