"""The parts of a round: who takes part, pairs and gradients on one client, and the step of the server."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds import federation, model_of, random_world

from federank._numerics.compiling import compiled
from federank.errors import BadMessage
from federank.federation.adam import Adam, adam_step
from federank.federation.method import Client, UserVector
from federank.federation.rng import words_wrap_around
from federank.methods.fpl.method import FPL, NO_BITS, Draw, FPLModel, FPLState, FPLUpdate, Profile, draw_pair
from federank.methods.fpl.settings import choose_clients

RATE = 0.1
P, LIKED, OTHER = np.float32([1, 2]), np.float32([0.5, -1]), np.float32([0.25, 0.5])


def model(vectors, biases):
    return FPLModel(np.array(vectors, np.float32), np.array(biases, np.float32))


def updated(profile, broadcast, triples, round_number=3, **settings):
    """The update of a client with this history, and its vector afterwards."""
    wanted = {"factors": 2, "learning_rate": RATE, "user_regulariser": 0.5, "triples": triples} | settings
    method = FPL(n_items=len(broadcast.biases), **wanted)
    client = Client(1, 0, round_number, np.array(profile, np.int32), state=UserVector(P.copy()))
    result = method.client_update(client, broadcast)
    return result.update, result.state.vector


TWO_ITEMS = model([LIKED, OTHER], [0.3, 0.1])  # of which a client has the first: there is one pair to draw
SLOPE = 1 / (1 + np.exp((0.3 - 0.1) + P @ (LIKED - OTHER)))
USER, POSITIVE, NEGATIVE = (np.float32(RATE * share) for share in (0.5, 1 / 20, 1 / 200))


def test_one_pair_by_hand():
    update, vector = updated([0], TWO_ITEMS, triples=1)
    assert update.items.tolist() == [0, 1]
    np.testing.assert_allclose(update.biases, [SLOPE, -SLOPE], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[0], SLOPE * P - POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(update.vectors[1], -SLOPE * P - NEGATIVE * OTHER, rtol=1e-5)
    np.testing.assert_allclose(vector, P + RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


def test_as_published_the_second_pair_meets_the_moved_vector():
    _, once = updated([0], TWO_ITEMS, triples=1)
    update, twice = updated([0], TWO_ITEMS, triples=2)
    moved = 1 / (1 + np.exp((0.3 - 0.1) + once @ (LIKED - OTHER)))
    np.testing.assert_allclose(update.biases, [SLOPE + moved, -SLOPE - moved], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[0], SLOPE * P + moved * once - 2 * POSITIVE * LIKED, rtol=1e-5)
    np.testing.assert_allclose(twice, once + RATE * (moved * (LIKED - OTHER) - USER * once), rtol=1e-5)


def test_as_printed_all_pairs_meet_the_vector_of_the_rounds_start():
    update, vector = updated([0], TWO_ITEMS, triples=3, order="as-printed")
    np.testing.assert_allclose(update.biases, [3 * SLOPE, -3 * SLOPE], rtol=1e-5)
    np.testing.assert_allclose(update.vectors[1], 3 * (-SLOPE * P - NEGATIVE * OTHER), rtol=1e-5)
    np.testing.assert_allclose(vector, P + 3 * RATE * (SLOPE * (LIKED - OTHER) - USER * P), rtol=1e-5)


@given(st.sets(st.integers(0, 19), min_size=1, max_size=19), st.integers(0, 1000))
def test_positives_are_of_the_history_and_negatives_never(profile, round_number):
    update, _ = updated(sorted(profile), model(np.zeros((20, 2)), np.zeros(20)), 8, round_number)
    assert set(update.items[update.biases > 0].tolist()) <= profile
    assert not set(update.items[update.biases < 0].tolist()) & profile


def test_every_pair_is_as_likely_as_any_other():
    # Three of five items: six pairs, also where most negatives are met at the third try only.
    broadcast, counts = model(np.zeros((5, 2)), np.zeros(5)), np.zeros((5, 5), dtype=int)
    for number in range(2400):
        update, _ = updated([0, 2, 3], broadcast, triples=1, round_number=number)
        counts[update.items[update.biases > 0], update.items[update.biases < 0]] += 1
    assert np.all(abs(counts[np.ix_([0, 2, 3], [1, 4])] - 400) < 5 * 400**0.5)
    assert counts.sum() == counts[np.ix_([0, 2, 3], [1, 4])].sum() == 2400


def test_the_received_model_stays_as_it_was():
    before = TWO_ITEMS.vectors.copy(), TWO_ITEMS.biases.copy()
    updated([0], TWO_ITEMS, triples=5)
    np.testing.assert_array_equal(TWO_ITEMS.vectors, before[0])
    np.testing.assert_array_equal(TWO_ITEMS.biases, before[1])


@pytest.mark.parametrize("settings", [{}, {"order": "as-printed"}, {"mask": "as-printed"}], ids=str)
def test_items_held_out_are_no_negatives(settings):
    method = FPL(n_items=9, factors=2, triples=40, **settings)
    held_out = np.array([1, 4, 5], np.int32)
    client = Client(1, 0, 3, np.array([0, 2, 3], np.int32), held_out=held_out)
    result = method.client_update(client, model(np.zeros((9, 2)), np.zeros(9)))
    assert set(result.negatives.tolist()) == {6, 7, 8}
    assert set(result.positives.tolist()) == {0, 2, 3}


DATA = random_world()


@compiled
def choose(recipe, round_number, marks, chosen):
    return choose_clients(recipe, round_number, recipe.clients_per_round, marks, chosen)


def chosen_in(rounds, **settings):
    recipe = federation(DATA, **settings).recipe
    marks, chosen = np.zeros(DATA.n_users, dtype=np.int64), np.empty(DATA.n_users, dtype=np.int32)
    return [chosen[: choose(recipe, number, marks, chosen)].copy() for number in range(rounds)]


@pytest.mark.parametrize("clients", [1, 3, 5, 8, 11, "all"])
def test_a_round_has_as_many_different_clients_as_asked_for(clients):
    for chosen in chosen_in(200, clients_per_round=clients):
        assert len(chosen) == len(set(chosen.tolist())) == (12 if clients == "all" else clients)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_every_user_is_chosen_equally_often(clients):
    counts = np.bincount(np.concatenate(chosen_in(3000, clients_per_round=clients)), minlength=12)
    expected = 3000 * clients / 12
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


def test_a_trace_says_who_is_there_and_starts_over_at_its_end():
    trace = np.zeros((2, 12), dtype=bool)
    trace[0, [1, 5]] = trace[1, 7] = True
    rounds = chosen_in(6, clients_per_round="all", trace=trace)
    assert [sorted(chosen.tolist()) for chosen in rounds] == [[1, 5], [7]] * 3
    assert {int(chosen[0]) for chosen in chosen_in(60, clients_per_round=1, trace=trace)} == {1, 5, 7}


def negatives(items, n_items, draws):
    profile = Profile(np.array(items, dtype=np.int32), 0, len(items), NO_BITS, n_items)
    with words_wrap_around():
        return [int(draw_pair(Draw(7, 3, 11, counter), profile)[1]) for counter in range(draws)]


@pytest.mark.parametrize("missing", [{0}, {499}, {0, 499}, {250, 498, 499}])
def test_where_nearly_all_is_liked_each_missing_item_is_drawn_the_last_one_too(missing):
    draws = 300 * len(missing)
    drawn = negatives(sorted(set(range(500)) - missing), 500, draws)
    assert set(drawn) == missing
    counts = np.array([drawn.count(item) for item in missing])
    assert np.all(np.abs(counts - 300) < 4 * np.sqrt(300)), "each of them alike"


def test_where_little_is_liked_every_other_item_is_drawn():
    assert set(negatives([2, 5], 8, 200)) == {0, 1, 3, 4, 6, 7}


VECTORS, BIASES = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([0.1, 0.2, 0.3])


def method(**settings):
    return FPL(n_items=3, factors=2, triples=1, **{"learning_rate": 0.5} | settings)


def server(method):
    none = np.zeros((3, method.moments), np.float32)
    return FPLState(VECTORS.copy(), BIASES.copy(), none, none, np.zeros(method.clocks, np.int64))


def update(items, value):
    return FPLUpdate(np.int32(items), np.full((len(items), 2), value, "f4"), np.full(len(items), value, "f4"))


def after(method, state, *updates):
    """The state after a round with these updates."""
    sums = method.empty()
    for one in updates:
        method.add(sums, one)
        sums.count += 1
    return method.server_update(state, sums)


UPDATE = FPLUpdate(np.array([1], np.int32), np.array([[2, -8]], np.float32), np.array([0.5], np.float32))
STILL = FPLUpdate(np.array([1], np.int32), np.zeros((1, 2), np.float32), np.array([0.5], np.float32))


def test_the_model_moves_by_the_learning_rate_times_the_sum():
    state = after(method(), server(method()), update([0, 1], 2), update([1], 4))
    np.testing.assert_allclose(state.vectors, [[2, 3], [6, 7], [5, 6]])
    np.testing.assert_allclose(state.biases, [1.1, 3.2, 0.3], rtol=1e-6)


def test_one_bad_update_leaves_the_round_to_be_played_again():
    established = federation(random_world())
    before = model_of(established)
    good = FPLUpdate(np.array([1], np.int32), np.ones((1, 4), np.float32), np.ones(1, np.float32))
    bad = FPLUpdate(np.array([99], np.int32), good.vectors, good.biases)
    with pytest.raises(BadMessage, match="within 0 to"):
        established.aggregate(iter([good, bad]))
    np.testing.assert_array_equal(model_of(established).vectors, before.vectors)
    np.testing.assert_array_equal(model_of(established).biases, before.biases)
    assert established.round_number == 0


def test_a_broadcast_is_a_copy_that_later_rounds_do_not_change():
    established = federation(random_world())
    sent, before = model_of(established), established.item_vectors.copy()
    good = FPLUpdate(np.array([1], np.int32), np.ones((1, 4), np.float32), np.ones(1, np.float32))
    established.aggregate([good])
    np.testing.assert_array_equal(sent.vectors, before[:, :4])
    assert not np.array_equal(established.item_vectors, before)


def test_adam_goes_on_where_it_was_heading():
    adam = method(server="adam", learning_rate=0.1)
    before = after(adam, after(adam, server(adam), UPDATE), UPDATE)
    state = after(adam, before, STILL)
    assert state.vectors[1, 0] > before.vectors[1, 0]
    assert state.vectors[1, 1] < before.vectors[1, 1]


def test_adam_is_the_published_formula():
    rng, adam = np.random.default_rng(0), Adam(0.1, 0.8, 0.9)
    values = rng.normal(size=(4, 3)).astype(np.float32)
    mean, square = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    x, m, v = values.astype(float), np.zeros((4, 3)), np.zeros((4, 3))
    for step in range(1, 6):
        gradient = rng.normal(size=(4, 3)).astype(np.float32)
        values = adam_step(adam, values, gradient, mean, square, step)
        m, v = 0.8 * m + 0.2 * gradient, 0.9 * v + 0.1 * gradient.astype(float) ** 2
        x = x - 0.1 * (m / (1 - 0.8**step)) / (np.sqrt(v / (1 - 0.9**step)) + 1e-8)
    np.testing.assert_allclose(values, x, atol=1e-5)


def test_weight_decay_moves_every_vector_towards_zero_and_no_bias():
    decayed = method(weight_decay=2.0, learning_rate=0.1)
    state = after(decayed, server(decayed), STILL)
    np.testing.assert_allclose(state.vectors, 0.8 * VECTORS, rtol=1e-6)
    np.testing.assert_allclose(state.biases, [0.1, 0.25, 0.3], rtol=1e-6)


@pytest.mark.parametrize("settings", [{"server": "adam", "weight_decay": 2.0}, {"weight_decay": 2.0}, {}], ids=str)
def test_a_round_without_an_update_leaves_the_model_as_it_is(settings):
    chosen = method(**settings)
    before = after(chosen, server(chosen), UPDATE)
    state = after(chosen, before)
    np.testing.assert_array_equal(state.vectors, before.vectors)
    np.testing.assert_array_equal(state.biases, before.biases)
