"""The cluster engine: the same bits over any number of shards, and after a machine is lost in the median of a round.

Two nodes inside this machine, started once for the module. Ray's processes are real, and so is their end.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.two_nodes import STORE, TwoNodes
from tests.worlds import federation, model_of, random_world

from federank.errors import ClusterGone, SettingError
from federank.federation import wire
from federank.methods.fpl.method import FPLUpdate
from federank.methods.fpl.settings import clients_of_round
from federank.methods.fpl.simulation import Changes, InMemoryClients, play_compiled, shard_count
from federank.simulation.cluster import Cluster, UserShard, by_partition, connected, opened
from federank.simulation.options import TrainingOptions
from federank.simulation.training import train

ROOT = Path(__file__).parents[2]
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def two_nodes():
    nodes = TwoNodes(cores=4)
    yield nodes
    nodes.close()


@pytest.fixture
def nodes(two_nodes):
    return two_nodes.with_both()


CONFIGURATIONS = {
    "everybody": {"clients_per_round": "all", "triples": 6, "pi": 0.5},
    "everyone, some answers lost": {"clients_per_round": "all", "triples": 6, "dropout": 0.3, "order": "as-printed"},
    "some are drawn": {"clients_per_round": 200, "triples": 4, "pi": 0.3},
    "most are drawn": {"clients_per_round": 0.8, "triples": 4, "mask": "as-printed", "pi": 0.3},
    "one at a time": {"clients_per_round": 1, "triples": 1},
    "not everyone is there": {"clients_per_round": "all", "online": 0.5, "triples": 3},
    "a fixed-subset choice": {
        "clients_per_round": "all",
        "triples": 6,
        "sharing": "fixed-subset",
        "basis": "history",
        "pi": 0.3,
    },
    "a randomized-response choice": {
        "clients_per_round": "all",
        "triples": 6,
        "sharing": "randomized-response",
        "item_epsilon": 1.0,
        "pi": 0.3,
    },
    "adam": {"clients_per_round": "all", "triples": 6, "server": "adam", "weight_decay": 3.0},
}
AS_COMPILED = {"everybody", "a randomized-response choice", "adam"}


def established(name="everybody"):
    return federation(random_world(users=1500, items=60, interactions=20_000), **CONFIGURATIONS[name])


def tables(established):
    return established.item_vectors, established.item_biases, established.user_vectors


def assert_same_bits(one, other):
    for a, b in zip(tables(one), tables(other), strict=True):
        np.testing.assert_array_equal(a, b)


def played(name, rounds, shards, **how):
    one = established(name)
    with opened(one, "local", shards, **how) as engine:
        engine.play(one, rounds)
        engine.bring_home()
    return one


def partitions(one):
    return one.spread().partitions


def part_of(one, first, last):
    return one.spread().part(np.array([first, last]))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_client_of_a_round_is_in_one_partition_in_the_order_of_the_round(name):
    one = established(name)
    starts = partitions(one)
    whole = clients_of_round(one.recipe, 3, len(one.user_vectors))
    divided = by_partition(whole, starts)
    assert len(divided) == len(starts) - 1 > 1
    place = {int(client): number for number, client in enumerate(whole)}
    assert sorted(np.concatenate(divided)) == sorted(whole)
    for number, clients in enumerate(divided):
        assert ((clients >= starts[number]) & (clients < starts[number + 1])).all()
        assert [place[int(client)] for client in clients] == sorted(place[int(client)] for client in clients)


def test_partitions_are_the_compiled_engines_shards_where_every_user_takes_part():
    one = established("everybody")
    assert len(partitions(one)) - 1 == shard_count(one.recipe, *one.item_vectors.shape) > 2


def test_a_shard_is_handed_nothing_of_other_users():
    one = established("a fixed-subset choice")
    first, last = 400, 700
    part = part_of(one, first, last).federation
    theirs = slice(one.histories.starts[first], one.histories.starts[last])
    np.testing.assert_array_equal(part.profiles.items, one.histories.items[theirs])
    np.testing.assert_array_equal(part.recipe.shared_profile.allowed, one.histories.allowed[theirs])
    np.testing.assert_array_equal(part.user_vectors, one.user_vectors[first:last])
    assert len(part.recipe.pi) == len(part.recipe.triples) == last - first
    assert ((part.recipe.participants >= first) & (part.recipe.participants < last)).all()
    assert not len(part.recipe.shared_profile.items)


def everything(one):
    """The full model, as the driver sends it."""
    return Changes(0, np.arange(one.method.n_items, dtype=np.int32), *wire.values(model_of(one)).values())


def test_a_shard_answers_with_updates_and_moves_only_its_clients():
    one = established("everybody")
    first, last = 400, 700
    shard = UserShard(part_of(one, first, last))
    before = shard.states()["user_vectors"].copy()
    broadcast = everything(one)
    clients = np.array([450, 600], dtype=np.int32)
    updates = shard.train(broadcast, [clients[:1], clients[1:], clients[:0]])
    assert [len(update.items) > 0 for update in updates] == [True, True, False]
    for update in updates:
        wire.checked(update, FPLUpdate, one.method)
    moved = np.flatnonzero((shard.states()["user_vectors"] != before).any(axis=1)) + first
    assert moved.tolist() == clients.tolist()


def test_the_partitions_of_a_shard_do_not_mix_their_sums():
    one = established("everybody")
    clients = np.arange(450, 460, dtype=np.int32)
    broadcast = everything(one)
    together = UserShard(part_of(one, 400, 700)).train(broadcast, [clients[:5], clients[5:]])
    (alone,) = UserShard(part_of(one, 400, 700)).train(broadcast, [clients[5:]])
    np.testing.assert_equal(wire.values(together[1]), wire.values(alone))


@pytest.mark.parametrize("noise_on", ["all-rows", "sums"])
def test_what_a_shard_sends_is_clipped_and_noisy_client_by_client(noise_on):
    data = random_world(users=40, items=30, interactions=300)
    settings = {"clients_per_round": "all", "triples": 3, "clip": 0.5, "noise": 1.0, "noise_on": noise_on}
    one, plain = federation(data, **settings), federation(data, **settings | {"clip": None, "noise": 0.0})
    broadcast = everything(one)
    clients = one.recipe.participants[10:20]
    first, last = int(clients[0]), int(clients[-1]) + 1
    (update,) = UserShard(part_of(one, first, last)).train(broadcast, [clients])
    (bare,) = UserShard(part_of(plain, first, last)).train(broadcast, [clients])
    fleet = InMemoryClients(one)
    total = np.zeros((len(one.item_biases), one.recipe.factors + 1))
    for sent in fleet.train(clients, model_of(one), 0):
        total[sent.items] += np.column_stack((sent.vectors, sent.biases))
    found = np.zeros_like(total)
    found[update.items] = np.column_stack((update.vectors, update.biases))
    np.testing.assert_allclose(found, total, atol=TOLERANCE)
    assert np.abs(found[bare.items] - np.column_stack((bare.vectors, bare.biases))).max() > 0.1


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"engine": "cluster", "threads": 2}, "set shards"),
        ({"engine": "cluster", "shards": 0}, "at least 1 is needed"),
        ({"engine": "compiled", "shards": 2}, "set engine to cluster"),
        ({"engine": "reference", "cluster": "local"}, "set engine to cluster"),
        ({"engine": "clutser"}, "compiled, reference or cluster"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, sentence):
    with pytest.raises(SettingError, match=sentence):
        TrainingOptions(**asked)


def test_more_shards_than_partitions_are_refused_before_anything_is_started():
    with (
        pytest.raises(SettingError, match=r"33.*32"),
        opened(established("some are drawn"), "local", 33),
    ):
        pass


@pytest.mark.parametrize("address", ["", "head", "http://head:6379", "ray://head", "head:port"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(SettingError), connected(address, 1, STORE):
        pass


def test_an_extra_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r"\[cluster\]"), connected("local", 1, STORE):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}"])
def test_a_cluster_that_is_not_there_is_an_error_not_a_wait(address, tmp_path):
    # In a process of its own: this one may be connected to another cluster.
    script = f"""
import socket
from federank.simulation.cluster import connected
from federank.errors import ClusterGone
with socket.socket() as closed:
    closed.bind(("127.0.0.1", 0))
    address = {address!r}.format(port=closed.getsockname()[1])
    try:
        with connected(address, 1, 0):
            pass
    except ClusterGone as gone:
        print(gone)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "ray start --head" in answer.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["everybody", "a randomized-response choice"])
def test_the_number_of_shards_changes_no_bit(name, nodes):
    one, three = (played(name, 6, shards) for shards in (1, 3))
    assert_same_bits(one, three)
    alone = established(name)
    play_compiled(alone, 6)
    if name in AS_COMPILED:
        assert_same_bits(one, alone)
    for mine, theirs in zip(tables(one), tables(alone), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=TOLERANCE, rtol=TOLERANCE)
    assert (one.user_vectors != established(name).user_vectors).any()


@pytest.mark.slow
def test_shards_are_spread_over_the_nodes(nodes):
    one = established()
    with opened(one, "local", 4) as engine:
        places = {nodes.ray.get(shard.__ray_call__.remote(where_am_i)) for shard in engine._shards}
    assert len(places) == 2


def where_am_i(_):
    import ray

    return ray.get_runtime_context().get_node_id()


def be_busy(_):
    time.sleep(3)


@pytest.mark.slow
def test_a_node_lost_in_the_middle_of_a_round_changes_no_bit(nodes):
    name = "some are drawn"

    class Doomed(Cluster):
        """Loses its second machine once the shards have been asked for round 5, and before they can have answered."""

        recovered = 0

        def _distribute(self, partitions):
            if self._federation.round_number != 5 or nodes.second is None:
                return super()._distribute(partitions)
            for shard in self._shards:
                shard.__ray_call__.remote(be_busy)
            asked = super()._distribute(partitions)
            nodes.lose_second()
            return asked

        def _recover(self):
            self.recovered += 1
            super()._recover()

    one = established(name)
    engine = Doomed(nodes.ray, one, one.spread(), 4)
    engine.play(one, 3)
    engine.bring_home()  # rounds 3 and 4 will have to be played again
    engine.play(one, 6)
    engine.bring_home()
    engine.close()
    assert engine.recovered >= 1
    assert nodes.second is None
    assert one.round_number == 9
    nodes.with_both()
    assert_same_bits(one, played(name, 9, 2))


@pytest.mark.slow
def test_a_run_is_stopped_and_resumed_on_a_cluster_with_the_same_bits(nodes, tmp_path):
    whole, cut = established(), established()
    play_compiled(whole, 2 * whole.rounds_per_epoch)
    seen = []
    checkpoint = tmp_path / "run.checkpoint"

    def away(epoch):
        seen.append(cut.user_vectors.copy())
        raise ClusterGone("Someone has unplugged it.")

    with pytest.raises(ClusterGone, match="--resume"):
        train(cut, 2, TrainingOptions(engine="cluster", shards=2, checkpoint=checkpoint, after_epoch=away), "run")
    again = established()
    train(again, 2, TrainingOptions(engine="cluster", shards=3, checkpoint=checkpoint, resume=True), "run")
    assert_same_bits(again, whole)
    half = established()
    play_compiled(half, half.rounds_per_epoch)
    np.testing.assert_array_equal(seen[0], half.user_vectors)  # anyone who looks after an epoch finds it whole


HEAD_LOST = """
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster
from tests.simulation.test_cluster import assert_same_bits, established
from tests.two_nodes import STORE

from federank.methods.fpl.simulation import play_compiled
from federank.errors import ClusterGone
from federank.simulation.options import TrainingOptions
from federank.simulation.training import train

head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": STORE}
nodes = Cluster(initialize_head=True, head_node_args=head)
checkpoint, one, other = Path(sys.argv[1]), established(), established()

def lose_head(epoch):
    if epoch == 1:
        nodes.head_node.kill_gcs_server()

conduct = TrainingOptions(
    engine="cluster", cluster=nodes.address, shards=2, checkpoint=checkpoint, after_epoch=lose_head
)
try:
    train(one, 10**6, conduct, "run")  # more epochs than could be played before the loss is noticed
except ClusterGone as gone:
    print(gone)
nodes.shutdown()
assert checkpoint.exists()
assert one.round_number >= one.rounds_per_epoch
play_compiled(other, one.round_number)
assert_same_bits(one, other)
print("the same bits")
"""


@pytest.mark.slow
def test_a_cluster_whose_head_goes_away_is_an_error_and_nothing_played_is_lost(tmp_path):
    # In a process of its own: Ray ends the process of a driver that goes on without its head.
    command = [sys.executable, "-c", HEAD_LOST, str(tmp_path / "run.checkpoint")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert "--resume" in answer.stdout
    assert "the same bits" in answer.stdout
