"""Writes, with version 0.1.0 of FedeRank, the files beside this program: see README.md.

    python write.py FOLDER

It calls what that version had, under the names that it had, and runs with no other.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import federank as fr
from federank.evaluation.prediction import prediction_errors
from federank.recommenders.ratings import RatingFactors

POLICIES = """
[default]
pi = 0.5

[groups.shy]
share = 0.25
sharing = "sticky"
pi = 0.2

[groups.careful]
share = 0.25
sharing = "deniable"
epsilon = 1.0

[people."3"]
never_items = [1, 3]
budget = 4
"""

STUDY = """
title = "Small"
seeds = [1, 2]
at = [3, 5]

[[data]]
name = "visits"
source = "visits.csv"

[choose]
metric = "precision@5"
epochs = 2

[[model]]
group = "Popular"
method = "popular"

[[model]]
group = "FPL"
method = "fpl"
settings = { factors = 3 }
grid = { learning_rate = [0.05, 0.5] }
sweep = { pi = [0.0, 1.0] }
best = true

[[table]]
title = "Accuracy"
metrics = ["precision@5", "ndcg@5", "cce"]

[[figure]]
kind = "f1-against-pi"

[[figure]]
kind = "item-updates"

[[figure]]
kind = "popularity"
"""

METHODS = {
    "fpl": fr.FPL(factors=3, epochs=2, pi=0.5),
    "fpl-policies": fr.FPL(factors=3, epochs=2, policies="policies.toml"),
    "fpl-noise": fr.FPL(factors=3, epochs=2, clients_per_round="all", clip=0.5, noise=1.0),
    "bpr": fr.BPR(factors=3, epochs=2),
    "pmf": fr.PMF(factors=3, iterations=2),
    "svdpp": fr.SVDPlusPlus(factors=3, iterations=2),
    "fcf": fr.FCF(factors=3, rounds=2),
    "itemknn": fr.ItemKNN(k=5),
    "userknn": fr.UserKNN(k=5),
    "popular": fr.MostPopular(),
    "random": fr.Random(),
    "vae": fr.MultVAE(topology="4-2-4", epochs=2),
}


def main(folder: Path) -> None:
    folder.mkdir()
    os.chdir(folder)
    write_data()
    write_models()
    write_checkpoints()
    federank("data", "split", "visits.csv", "--out", "split", "--temporal", "0.2", "--validation", "0.2")
    Path("study.toml").write_text(STUDY)
    federank("study", "run", "study.toml", "--out", "results", "--workers", "1")
    write_federation()


def write_data() -> None:
    """Even people prefer even places; each has rated ten of them, one after the other."""
    rng = np.random.default_rng(0)
    rows = ["user,item,rating,time"]
    for person in range(16):
        likes = rng.choice(np.arange(person % 2, 24, 2), 10, replace=False)
        rows += [f"{person},{item},{1 + (person + item) % 5},{1000 + place}" for place, item in enumerate(likes)]
    Path("visits.csv").write_text("\n".join(rows) + "\n")
    Path("policies.toml").write_text(POLICIES)


def write_models() -> None:
    """A folder for every method, what this version measures of each, and one's recommendations in a file."""
    split = fr.split_temporal(fr.load("visits.csv"), test=0.2)
    measured = {}
    for name, model in METHODS.items():
        model.fit(split.train)
        model.save(f"models/{name}", split)
        measured[name] = fr.evaluate(model, split, at=5).means
        if isinstance(model, RatingFactors):
            measured[name] |= prediction_errors(model, split.test)._asdict()
    Path("measured.json").write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    federank("recommend", "models/fpl", "--all", "-n", "3", "--out", "recommended.tsv")


def write_checkpoints() -> None:
    """Runs of four epochs that were stopped after the second."""
    train = fr.split_temporal(fr.load("visits.csv"), test=0.2).train
    for model in (fr.FPL(factors=3, epochs=4, pi=0.5), fr.PMF(factors=3, iterations=4)):

        def stop(epoch: int) -> None:
            if epoch == 2:
                os.kill(os.getpid(), signal.SIGINT)

        try:
            model.fit(train, checkpoint=Path(f"checkpoints/{model.name}"), after_epoch=stop)
        except KeyboardInterrupt:
            continue
        raise SystemExit(f"{model.name} was not stopped")


def write_federation() -> None:
    """A store with two folded rounds and an open one; two devices, one of which was cut off while it sent.

    Then both go on, and the model of the third round is what a later version has to come to, bit for bit.
    """
    made = Path("federation")
    made.mkdir()
    for name, items in (("ada", range(0, 12, 2)), ("ben", range(1, 12, 2))):
        (made / f"{name}.csv").write_text("item\n" + "".join(f"{item}\n" for item in items))
    with tempfile.TemporaryDirectory() as elsewhere:
        shutil.copytree(made, elsewhere, dirs_exist_ok=True)
        work = Path(elsewhere)
        with served(work) as address:
            policies = {"ada": ["--pi", "1"], "ben": ["--pi", "0.5", "--sharing", "deniable", "--epsilon", "2"]}
            for name, policy in policies.items():
                own = ["--server", address, "--profile", str(work / f"{name}.csv"), *policy, "--rounds", "0"]
                federank("device", "--state", str(work / f"{name}.sqlite"), *own)
            for _ in range(2):
                both_take_part(work)
            federank("device", "--state", str(work / "ada.sqlite"), "--rounds", "1")
            cut_off_while_sending(work / "ben.sqlite")
        for name in ("store", "ada", "ben"):
            keep_small(work / f"{name}.sqlite", made / f"{name}.sqlite")
        with served(work) as address:
            tell_address(work, address)
            federank("device", "--state", str(work / "ben.sqlite"), "--rounds", "0")
            (made / "version-3.safetensors").write_bytes(model_at(address, 3))
        federank("device", "ledger", "--state", str(work / "ben.sqlite"), "--out", str(made / "ben-ledger.csv"))


@contextmanager
def served(work: Path):
    command = [*FEDERANK, "serve", "--store", f"sqlite:///{work / 'store.sqlite'}", "--data", "visits.csv"]
    command += ["--factors", "3", "--triples", "4", "--target", "2", "--deadline", "86400", "--over-selection", "2"]
    command += ["--rehearsal", "--quiet", "--port", "0", "--admin-port", "0", "--name", "Visits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout:
                if line.startswith("federation"):
                    yield line.split()[1]
                    break
        finally:
            server.terminate()
            server.stdout.read()


def both_take_part(work: Path) -> None:
    states = [str(work / f"{name}.sqlite") for name in ("ada", "ben")]
    devices = [subprocess.Popen([*FEDERANK, "device", "--state", state, "--rounds", "1"]) for state in states]
    if any(device.wait() for device in devices):
        raise SystemExit("a device has failed")


def cut_off_while_sending(state: Path) -> None:
    """The device has made its Update and kept it, and not sent it yet."""
    from federank.service.client import Client
    from federank.service.device import prepare, wait_for_work
    from federank.service.device_state import identity_of
    from federank.service.device_store import DeviceStore

    store = DeviceStore(state)
    identity = identity_of(store)
    client = Client(identity.server, token=identity.token, note=print)
    if prepare(store, client, identity, wait_for_work(client), time.monotonic() + 60, print) is None:
        raise SystemExit("no Update was made")
    client.close()
    store.close()


def tell_address(work: Path, address: str) -> None:
    for name in ("ada", "ben"):
        with sqlite3.connect(work / f"{name}.sqlite") as sql:
            sql.execute("UPDATE identity SET server = ?", (address,))
        sql.close()


def model_at(address: str, version: int) -> bytes:
    import httpx

    for _ in range(600):
        if httpx.get(f"{address}/api/v1/status").json()["version"] == version:
            return httpx.get(f"{address}/api/v1/model").content
        time.sleep(0.1)
    raise SystemExit("the round was not folded")


def keep_small(file: Path, target: Path) -> None:
    """A copy with small pages, without a log beside it; its content is the same."""
    shutil.copy(file, target)
    sql = sqlite3.connect(target, isolation_level=None)
    sql.execute("PRAGMA journal_mode = DELETE")
    sql.execute("PRAGMA page_size = 512")
    sql.execute("VACUUM")
    sql.close()


FEDERANK = [sys.executable, "-m", "federank"]


def federank(*command: str) -> None:
    subprocess.run([*FEDERANK, *command], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
