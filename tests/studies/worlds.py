"""Tiny studies that tests carry out."""

import numpy as np

from federank.studies.plan import Plan
from federank.studies.pool import Pool
from federank.studies.run import run_study
from federank.studies.spec import as_study
from federank.studies.task import execute


def small_data(folder, people=30, items=40, seed=0):
    """A file of visits in which even people prefer even places; with times and ratings."""
    rng = np.random.default_rng(seed)
    path = folder / "visits.csv"
    rows = ["user,item,rating,time"]
    for person in range(people):
        likes = rng.choice(np.arange(person % 2, items, 2), 12, replace=False)
        rows += [f"{person},{item},{1 + (person + item) % 5},{1000 + place}" for place, item in enumerate(likes)]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def small_study(folder, **changes):
    """Popularity beside FPL with two learning rates and two values of pi, on a file."""
    document = {
        "title": "Small",
        "seeds": [1, 2],
        "data": [{"name": "visits", "source": small_data(folder)}],
        "choose": {"metric": "precision@5", "epochs": 3},
        "at": [5],
        "model": [
            {"group": "Popular", "method": "popular"},
            {
                "group": "FPL",
                "method": "fpl",
                "settings": {"factors": 4},
                "grid": {"learning_rate": [0.05, 0.5]},
                "sweep": {"pi": [0.0, 1.0]},
                "best": True,
            },
        ],
    }
    return as_study(document | changes, "small")


class Silent:
    """Someone who listens and says nothing."""

    def __init__(self):
        self.plan: Plan | None = None
        self.there = 0
        self.heard = []

    def begin(self, plan, there):
        self.plan, self.there = plan, there

    def started(self, run):
        pass

    def finished(self, line, *, ours):
        self.heard.append((line, ours))


class Here:
    """An executor in this process: for what does not need processes of its own."""

    slots = 1

    def __init__(self):
        self.runs = []

    def submit(self, run):
        self.runs.append(run)

    def next(self, timeout):  # noqa: ARG002
        return execute(self.runs.pop(0)) if self.runs else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.runs = []


def carried_out(study, folder, executor=None):
    """The results of a study, and who heard of it."""
    heard = Silent()
    results = run_study(study, folder, executor or Here(), heard)
    return results, heard


def with_pool(study, folder, workers):
    """The results of a study carried out by worker processes."""
    with Pool(workers) as pool:
        return carried_out(study, folder, pool)[0]


def content(results):
    """What two carryings-out of one study must agree on."""
    told = ("id", "group", "data", "settings", "seed", "task", "epoch", "metrics", "curve", "status")
    return sorted([[getattr(line, key) for key in told] for line in results.records()], key=str)
