"""What holds for every method on the interface: the registered ones and the documentation's examples."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from tests.federation.conftest import example_source
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes

from federank.errors import BadMessage, SettingError
from federank.federation import wire
from federank.federation.method import NO_RATINGS, Client, DataSummary, configuration, from_configuration
from federank.federation.secure import aggregate_from, secure_message, secure_vector, simulated_chances
from federank.methods.baselines import fedmf
from federank.methods.federated_model import model_class
from federank.methods.recommender import run_identity
from federank.simulation.options import TrainingOptions
from federank.simulation.training import save_checkpoint

LIKED, RATED = two_tastes(), two_opinions()


SMALL = {"factors": 4}


def settings_of(kind):
    """Settings for a world of few items."""
    return SMALL | ({"min_support": 1} if "min_support" in kind.__dataclass_fields__ else {})


def world_of(kind):
    return LIKED if kind(**SMALL).scale is None else RATED


@pytest.fixture
def world(kind):
    return world_of(kind)


@pytest.fixture
def method(kind, world):
    return kind(**settings_of(kind)).resolve(DataSummary.of(world))


def played(method, rounds=2):
    """The state, the broadcast and every client's result of the last of some rounds."""
    world = world_of(type(method))
    state, states = method.initial_state(), [None] * world.n_users
    ratings = [NO_RATINGS] * world.n_users
    if world.ratings is not None:
        ratings = np.split(world.ratings, world.profiles.starts[1:-1])
    for number in range(rounds):
        broadcast = wire.checked(method.broadcast(state), method.records.sent, method)
        clients = [
            Client(method.seed, user, number, world.profiles.of(user), ratings[user], states[user])
            for user in range(world.n_users)
        ]
        results = [method.client_update(client, broadcast) for client in clients]
        results = [r._replace(update=wire.checked(r.update, method.records.update, method)) for r in results]
        states, aggregate = [result.state for result in results], total(method, results)
        after = wire.checked(method.server_update(state, aggregate), method.records.state, method)
        state, before = after, state
    return before, broadcast, clients, results


def total(method, results):
    aggregate = method.empty()
    for result in results:
        method.add(aggregate, result.update)
    aggregate.count = aggregate.enrolled = len(results)
    return aggregate


def alike(one, other):
    np.testing.assert_equal(wire.values(one), wire.values(other))


def test_the_configuration_survives_json(kind, method):
    assert from_configuration(kind, json.loads(json.dumps(configuration(method)))) == method
    with pytest.raises(SettingError, match="no_such_setting"):
        from_configuration(kind, {"no_such_setting": 1})
    with pytest.raises(SettingError, match="factors"):
        from_configuration(kind, configuration(method) | {"factors": 0})


def test_messages_survive_the_wire(method, world):
    _, broadcast, _, results = played(method)
    for record in (broadcast, *(result.update for result in results)):
        alike(wire.decode(type(record), method, wire.encode(record)), record)
        assert wire.size(record) == len(wire.encode(record))
    rows = np.array([2, 3, 11], dtype=np.int32)
    for some in (rows, np.arange(world.n_items, dtype=np.int32)):
        content = wire.encode_rows(broadcast, some, world.n_items, round_number=5, version=3)
        message = wire.decode_rows(type(broadcast), method, content)
        assert (message.round, message.version, message.items.tolist()) == (5, 3, some.tolist())
        alike(message.part, wire.rows_of(broadcast, some))


def test_wrong_messages_are_refused(method):
    _, broadcast, _, results = played(method, rounds=1)
    with pytest.raises(BadMessage):
        wire.decode(method.records.update, method, b"no message")
    smaller = replace(method, n_items=method.n_items - 20)
    with pytest.raises(BadMessage):
        smaller.check_form(wire.decode(method.records.update, smaller, wire.encode(results[0].update)), None)
    for name, values in wire.values(broadcast).items():
        if not values.size:
            continue  # it is optional
        for wrong in (np.full(values.shape, np.nan, np.float32), values[:-1], values.astype(np.complex64)):
            with pytest.raises(BadMessage):
                wire.from_arrays(type(broadcast), method, wire.values(broadcast) | {name: wrong})


def test_a_client_update_is_pure(method):
    _, broadcast, clients, results = played(method)
    for client, result in zip(clients, results, strict=True):
        again = method.client_update(replace(client), wire.read_only(broadcast))
        alike(wire.checked(again.update, method.records.update, method), result.update)


def test_an_empty_aggregate_changes_nothing(method):
    state, *_ = played(method)
    after = wire.checked(method.server_update(state, method.empty()), method.records.state, method)
    alike(after, state)


def test_the_server_step_is_a_function_of_the_sum(method):
    state, _, _, results = played(method)
    one, other = total(method, results), total(method, results)
    alike(*(wire.checked(method.server_update(state, sums), method.records.state, method) for sums in (one, other)))


def test_a_vector_stands_for_an_aggregate(method):
    aggregate = total(method, played(method)[3])
    alike(wire.unflatten(method.empty(), wire.flatten(aggregate)), aggregate)


def test_a_secure_sum_without_noise_is_the_plain_sum(method):
    *_, results = played(method)
    longest = max(np.linalg.norm(secure_vector(method, 0, result.update)) for result in results)
    method = replace(method, uploads="secure", clip=float(longest) + 1e-3)
    length = len(wire.flatten(method.empty()))
    messages = [
        secure_message(method, 0, result.update, simulated_chances(1, user, 0, length))
        for user, result in enumerate(results)
    ]
    secure = wire.flatten(aggregate_from(method, 0, np.sum(messages, axis=0)))
    unit = method.clip / 4096
    assert np.abs(secure - wire.flatten(total(method, results))).max() <= unit * len(results)


def test_honest_updates_are_accepted_and_bounded(method):
    _, broadcast, _, results = played(method)
    for result in results:
        method.check(broadcast, result.update)
        bounded = wire.checked(method.bounded(result.update, 0.01), method.records.update, method)
        numbers = [part.ravel() for part in wire.values(bounded).values() if part.dtype.kind == "f"]
        dense = secure_vector(method, 0, bounded)  # an update may stand for more numbers than are sent
        assert min(np.linalg.norm(np.concatenate(numbers)), np.linalg.norm(dense)) <= 0.01 * 1.001


def test_the_ledger_gets_items_of_the_client(method):
    _, _, clients, results = played(method)
    for client, result in zip(clients, results, strict=True):
        positives = client.items if result.positives is None else result.positives
        assert set(positives.tolist()) <= set(client.items.tolist())
        assert not set(result.negatives.tolist()) & set(client.items.tolist())


def test_a_larger_catalogue_keeps_the_scores_of_known_items(method):
    state, broadcast, clients, results = played(method)
    larger = replace(method, n_items=method.n_items + 5)
    grown = wire.checked(method.grow(state, larger.n_items), method.records.state, larger)
    if results[0].state is None or hasattr(results[0].state, "vector"):  # factors that do not depend on the catalogue
        factors = method.fold_in(replace(clients[0], state=results[0].state), broadcast)[None]
        before, after = method.scores(broadcast, factors), larger.scores(larger.broadcast(grown), factors)
        np.testing.assert_array_equal(after[:, : method.n_items], before)


@pytest.mark.parametrize("uploads", [{}, {"uploads": "secure", "clip": 30.0, "noise": 64}])
def test_a_resumed_run_has_the_same_bits(kind, uploads, tmp_path, world):
    settings = settings_of(kind) | {"online": 0.7, "dropout": 0.2, "rounds": 4} | uploads
    complete, model = (model_class(kind)(**settings) for _ in range(2))
    complete.fit(world)
    model.training = world.compact()
    identity = run_identity(kind.name + model._ask_all(model.settings, world), model.settings, world)
    half = model.simulation()
    half.play_round()
    half.play_round()
    save_checkpoint(half, tmp_path / "run.checkpoint", identity)
    model.fit(world, training_options=TrainingOptions(checkpoint=tmp_path / "run.checkpoint", resume=True))
    alike(model.state, complete.state)
    np.testing.assert_equal(model.client_states, complete.client_states)
    assert model.communication() == complete.communication()


def test_communication_is_that_of_the_wire_format(kind, world):
    model = model_class(kind)(**settings_of(kind), rounds=2).fit(world)
    simulation, up, down = model.simulation(), [], []

    def count(user, broadcast, result):
        up.append(len(wire.encode(result.update)))
        everything = np.arange(world.n_items, dtype=np.int32)
        down.append(len(wire.encode_rows(broadcast, everything, world.n_items, round_number=7, version=7)))

    simulation.watch = count
    simulation.play_round()
    simulation.play_round()
    sent = model.communication()
    assert (sent["up"]["bytes"], sent["down_dense"]["bytes"]) == (sum(up), sum(down))
    assert sent["uploads"] == sent["downloads"] == len(up)


def test_a_model_is_kept(kind, tmp_path, world):
    model = model_class(kind)(**settings_of(kind), rounds=2, pi=0.5).fit(world)
    again = model_class(kind)(**{f.name: getattr(model.settings, f.name) for f in fields(model.settings)})
    again.training = model.training
    again._restore(dict(model._shared_arrays()), dict(model._private_arrays()))
    np.testing.assert_array_equal(
        again._score_users(np.arange(5, dtype=np.int32)), model._score_users(np.arange(5, dtype=np.int32))
    )


def test_the_example_of_the_documentation_is_short():
    lines = [line for line in example_source("Gradients").splitlines() if line.strip()]
    assert len(lines) < 30


def test_fedmf_is_short():
    assert len(Path(fedmf.__file__).read_text().splitlines()) < 80
