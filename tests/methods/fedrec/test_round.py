"""A round of FedRec: what is computed, what crosses the wire, and what the server makes of it."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rated_worlds import rated_world, rating_federation

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.kernels import (
    Shift,
    implicit_row,
    moved_together,
    moved_without,
    needs_settling,
    settled,
)
from federank.methods.fedrec.method import PMF, STANDS_OUT, SVDPlusPlus
from federank.methods.fedrec.reference import (
    ImplicitGradients,
    item_gradient,
    normaliser,
    rating_error,
    sample_unrated,
    user_gradient,
)
from federank.methods.fedrec.simulation import choose_raters


def one_person(**settings):
    """Someone who rated item 0 with 4, in a world of two items and one factor; U = 1, V = (2, 3), W = (1, 5)."""
    data = Interactions.from_columns([0, 1], [0, 1], [4, 2])
    federation = rating_federation(data, factors=1, **({"learning_rate": 0.1, "regulariser": 0.5} | settings))
    federation.user_vectors[:, 0] = 1
    federation.item_vectors[:, 0] = [2, 3]
    federation.implicit_vectors[:, 0] = [1, 5][: len(federation.implicit_vectors)]
    return federation


def update_of(federation, user=0, round_number=0):
    """What a client sends, and the client afterwards."""
    federation.round_number = round_number
    update = federation.update(user, federation.broadcast)
    return update, federation.client(user)


# U = 1, V = 2, r = 4: e = -2; the gradient of U is -2 * 2 + .5 * 1 = -3.5, so U becomes 1.35.
@pytest.mark.parametrize("style", ["stochastic", "batch"])
def test_one_rating_by_hand_as_the_authors_code_has_it(style):
    update, device = update_of(one_person(style=style))
    assert device.state.vector[0] == pytest.approx(1.35)
    assert update.items.tolist() == [0]
    assert update.vectors[0, 0] == pytest.approx(-2 * 1 + 0.5 * 2)


@pytest.mark.parametrize("style", ["stochastic", "batch"])
def test_one_rating_by_hand_as_the_paper_has_it(style):
    update, device = update_of(one_person(style=style, item_gradients="after"))
    assert device.state.vector[0] == pytest.approx(1.35)
    assert update.vectors[0, 0] == pytest.approx((1.35 * 2 - 4) * 1.35 + 0.5 * 2)


def test_a_virtual_rating_is_the_users_mean():
    update, device = update_of(one_person(style="batch", filling="average", rho=1))
    assert update.items.tolist() == [0, 1]
    # Item 1 is virtually rated 4, the only rating there is: e = 1 * 3 - 4 = -1.
    assert update.vectors[1, 0] == pytest.approx(-1 * 1 + 0.5 * 3)
    assert device.state.vector[0] == pytest.approx(1 - 0.1 * ((-2 * 2 - 1 * 3) / 2 + 0.5))


@pytest.mark.parametrize(("training", "own_vector"), [("copy", 1.0), ("own", 1.35)])
def test_a_predicted_rating_comes_from_a_vector_trained_locally(training, own_vector):
    chosen = {"filling": "hybrid", "rho": 1, "t_predict": 0, "t_local": 1, "filling_start": "early"}
    update, _ = update_of(one_person(style="batch", local_training=training, **chosen))
    # One local pass makes U 1.35, so item 1 is virtually rated 1.35 * 3.
    error = own_vector * 3 - 1.35 * 3
    assert update.vectors[1, 0] == pytest.approx(error * own_vector + 0.5 * 3, abs=1e-6)


def test_local_passes_by_the_text_go_over_virtual_ratings_too():
    chosen = {"filling": "hybrid", "rho": 1, "t_predict": 0, "t_local": 1, "filling_start": "early"}
    update, _ = update_of(one_person(style="batch", local_ratings="all", **chosen))
    # Item 1 stands for the mean, 4, in the local pass, which makes U 1 - 0.1 * ((-2 * 2 - 1 * 3) / 2 + 0.5) = 1.3.
    assert update.vectors[1, 0] == pytest.approx((1 * 3 - 1.3 * 3) * 1 + 0.5 * 3, abs=1e-6)


def test_the_only_rated_item_of_svdpp_has_no_w_to_speak_for_it():
    update, device = update_of(one_person(method="svdpp"))
    assert device.state.vector[0] == pytest.approx(1.35)
    assert update.implicit_items.tolist() == [0]
    assert update.implicit_vectors[0, 0] == 0


def test_w_learns_from_a_virtual_rating_by_hand():
    update, _ = update_of(one_person(method="svdpp", filling="average", rho=1))
    # The rated item makes U 1.35; then the bracket is 1.35 + 1, e = 2.35 * 3 - 4 = 3.05, W's gradient 3.05 * 3 + .5.
    assert update.implicit_vectors[0, 0] == pytest.approx(3.05 * 3 + 0.5, rel=1e-5)
    assert update.vectors[1, 0] == pytest.approx(3.05 * 2.35 + 0.5 * 3, rel=1e-5)


def test_w_is_sent_for_rated_items_only():
    data = rated_world()
    update, device = update_of(rating_federation(data, "svdpp", filling="average", rho=2), user=3)
    np.testing.assert_array_equal(update.implicit_items, device.items)
    assert len(update.items) == 3 * len(device.items)


def test_an_update_lists_rated_and_sampled_items_together_ascending():
    update, device = update_of(rating_federation(rated_world(), filling="average", rho=1), user=2)
    assert len(update.items) == 2 * len(device.items)
    assert np.isin(device.items, update.items).all()
    assert np.all(np.diff(update.items) > 0)


def test_a_clients_rate_falls_when_it_takes_part_or_with_iterations():
    for reading, expected in (("participation", 0.1 * 0.9), ("iteration", 0.1 * 0.9**5)):
        federation = one_person(client_rate=reading)
        federation.participations[:] = 1
        _, device = update_of(federation, round_number=5 * federation.rounds_per_epoch)
        assert device.state.vector[0] == pytest.approx(1 + expected * 3.5, rel=1e-6)
        assert federation.participations[0] == 2


def test_every_user_takes_part_in_batch_style_and_one_at_a_time_in_stochastic_style():
    batch, stochastic = (rating_federation(rated_world(), style=style).recipe for style in ("batch", "stochastic"))
    assert choose_raters(batch, 5).tolist() == list(range(12))
    drawn = [choose_raters(stochastic, number).tolist() for number in range(2000)]
    assert all(len(clients) == 1 for clients in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=12)
    assert np.all(abs(counts - 2000 / 12) < 5 * (2000 / 12) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pmf", "svdpp"])
@pytest.mark.parametrize("sampling", ["fresh", "fixed"])
def test_what_is_in_every_upload_is_what_was_rated_unless_samples_are_fixed(method, sampling):
    data = rated_world()
    federation = rating_federation(data, method, filling="average", rho=0.5, sampling=sampling)
    for user in range(data.n_users):
        uploads = [set(update_of(federation, user, number)[0].items.tolist()) for number in range(0, 160, 4)]
        always, rated = set.intersection(*uploads), set(data.profiles.of(user).tolist())
        if sampling == "fresh":
            assert always == rated
        else:
            assert rated < always == uploads[0]
            assert len(always) == len(rated) + len(rated) // 2


REGULARISER = np.float32(0.1)
RNG = np.random.default_rng(4)
U, V = RNG.normal(size=(2, 5)).astype(np.float32)


def loss(user, item, rating):
    return ((user @ item - rating) ** 2 + REGULARISER * (user @ user) + REGULARISER * (item @ item)) / 2


def slopes(function, at):
    """Numerical derivatives in every direction."""
    steps = np.eye(len(at)) * 1e-4
    return [(function(at + step) - function(at - step)) / 2e-4 for step in steps]


def test_the_error_is_prediction_minus_rating():
    assert rating_error(np.float32([1, 2]), np.float32([3, 0.5]), np.float32(5)) == pytest.approx(-1)


def test_gradients_are_the_derivatives_of_the_regularised_squared_error():
    error = rating_error(U, V, np.float32(3))
    with_u = slopes(lambda user: loss(user, V.astype(float), 3), U.astype(float))
    with_v = slopes(lambda item: loss(U.astype(float), item, 3), V.astype(float))
    np.testing.assert_allclose(user_gradient(error, U, V, REGULARISER), with_u, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(item_gradient(error, U, V, REGULARISER), with_v, rtol=1e-4, atol=1e-5)


FACTORS = 4
WIDTH = (0,) * FACTORS


def started(rows):
    return Shift(np.float32(1), np.zeros(FACTORS, np.float32), rows.sum(axis=0))


def written_out(rows, shift):
    return np.array([implicit_row(rows, place, shift, WIDTH) for place in range(len(rows))])


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(0, 1000))
def test_any_sequence_of_steps_leaves_the_same_w_as_moving_each_row(places, seed):
    # Place 8 is none of the eight: the rating is a virtual one, and all rows move.
    rng = np.random.default_rng(seed)
    plain = rng.normal(size=(8, FACTORS)).astype(np.float32)
    rows = plain.copy()
    shift = started(rows)
    for place in places:
        keep, move = np.float32(rng.uniform(0.8, 1)), rng.normal(size=FACTORS).astype(np.float32) * np.float32(0.1)
        others = np.arange(8) != place
        plain[others] = keep * plain[others] - move
        if place < 8:
            own = implicit_row(rows, place, shift, WIDTH)
            shift = moved_without(rows, place, own, shift, keep, move, 8)
        else:
            shift = moved_together(shift, keep, move, 8)
        if needs_settling(shift):
            shift = settled(rows, 8, shift, WIDTH)
    np.testing.assert_allclose(written_out(rows, shift), plain, atol=2e-5)
    np.testing.assert_allclose(shift.total, plain.sum(axis=0), atol=1e-4)


def test_settling_changes_no_w():
    rows = np.random.default_rng(1).normal(size=(3, FACTORS)).astype(np.float32)
    shift = Shift(np.float32(1e-4), np.ones(FACTORS, np.float32), np.zeros(FACTORS, np.float32))
    before = written_out(rows, shift)
    assert needs_settling(shift)
    after = settled(rows, 3, shift, WIDTH)
    assert not needs_settling(after)
    np.testing.assert_array_equal(written_out(rows, after), before)


def test_an_empty_sum_needs_no_normaliser():
    assert normaliser(0) == 1
    assert normaliser(4) == pytest.approx(0.5)


def sample(profile, n_items, count, seed=1, user=0, round_number=0, marks=None, stamp=1):
    sampled = np.empty(count, np.int32)
    marks = np.zeros(n_items, np.int64) if marks is None else marks
    profile = np.asarray(profile, np.int32)
    with words_wrap_around():
        sample_unrated(seed, user, round_number, profile, n_items, marks, stamp, sampled)
    return sampled.tolist()


@given(st.sets(st.integers(0, 29), max_size=29), st.data())
def test_sampled_items_are_different_and_unrated(rated, data):
    count = data.draw(st.integers(0, 30 - len(rated)))
    found = sample(sorted(rated), 30, count, seed=data.draw(st.integers(0, 99)))
    assert len(set(found)) == count
    assert not rated.intersection(found)
    assert all(0 <= item < 30 for item in found)


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "rated"), [(5, [1]), (12, [1, 2, 3, 4])], ids=["by ranks", "by tries"])
def test_every_set_is_equally_likely(n_items, rated):
    unrated = [item for item in range(n_items) if item not in rated]
    draws = 4000
    seen = Counter(frozenset(sample(rated, n_items, 2, round_number=number)) for number in range(draws))
    sets = [frozenset(pair) for pair in combinations(unrated, 2)]
    assert set(seen) == set(sets)
    expected = draws / len(sets)
    for pair in sets:  # five deviations of a binomial count
        assert abs(seen[pair] - expected) < 5 * expected**0.5


def test_a_user_samples_again_in_every_round_and_users_sample_differently():
    rounds = {tuple(sample([0], 100, 5, round_number=number)) for number in range(20)}
    users = {tuple(sample([0], 100, 5, user=user)) for user in range(20)}
    assert len(rounds) == len(users) == 20


def test_marks_of_earlier_calls_do_not_matter():
    marks = np.zeros(40, np.int64)
    sample([1, 2], 40, 10, round_number=7, marks=marks, stamp=1)
    assert sample([1, 2], 40, 10, marks=marks, stamp=2) == sample([1, 2], 40, 10)


@pytest.mark.parametrize("kind", ["pmf", "svdpp"])
def test_rows_follow_their_items_into_one_ascending_list(kind):
    # Without a regulariser and with a vector of zeros, the gradient of an item is that of its own rating alone.
    federation = rating_federation(
        rated_world(), kind, style="stochastic", filling="average", rho=1, learning_rate=1e-9
    )
    update, device = update_of(federation, user=2)
    rated = np.isin(update.items, device.items)
    for item, row in zip(update.items, update.vectors, strict=True):
        V = federation.item_vectors[item, :4]
        position = np.flatnonzero(device.items == item)
        rating = device.ratings[position[0]] if len(position) else device.ratings.mean()
        W = federation.implicit_vectors[device.items[device.items != item], :4] if kind == "svdpp" else np.zeros((0, 4))
        bracket = device.state.vector + W.sum(axis=0) / np.sqrt(max(len(W), 1))
        expected = (bracket @ V - rating) * bracket + 0.001 * V
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)
    assert 0 < rated.sum() < len(rated)


def method(kind=PMF, n_items=3, **settings):
    chosen = {"learning_rate": 0.5, "prior_count": 0.0, "first_prediction": "zero"} | settings
    return kind(n_items=n_items, factors=1, **chosen)


def zeros(method):
    return wire.zeros(method.records.state, method)


def aggregate(method, updates, clients=None, noise=0.0):
    sums = method.empty()
    for update in updates:
        method.add(sums, update)
    sums.count, sums.enrolled, sums.noise = len(updates), clients or len(updates), noise
    return sums


def gradients(items, values):
    return ItemGradients(np.int32(items), np.float32(values)[:, None])


def test_the_server_steps_by_the_mean_of_what_it_was_sent():
    fedrec, sent = method(), [gradients([0, 1], [2, 4]), gradients([1], [8])]
    after = fedrec.server_update(zeros(fedrec), aggregate(fedrec, sent))
    assert after.vectors[:, 0].tolist() == [-1, -3, 0]
    assert (after.reported.tolist(), after.progress.tolist()) == ([1, 1, 0], [1])


def test_the_second_vectors_of_svdpp_step_in_the_same_way():
    fedrec = method(SVDPlusPlus)
    rows = np.int32([0, 2]), np.float32([[2], [4]]), np.int32([2]), np.float32([[6]])
    after = fedrec.server_update(zeros(fedrec), aggregate(fedrec, [ImplicitGradients(*rows)]))
    assert after.vectors[:, 0].tolist() == [-1, 0, -2]
    assert after.implicit_vectors[:, 0].tolist() == [0, 0, -3]


def test_the_servers_rate_falls_with_every_iteration_and_not_with_every_round():
    fedrec = method(learning_rate=1.0, decay=0.5)
    steps = []
    for progress in (0, 0.75, 1, 2):
        state = replace(zeros(fedrec), progress=np.array([float(progress)]))
        after = fedrec.server_update(state, aggregate(fedrec, [gradients([0], [1])]))
        steps.append(float(after.vectors[0, 0]))
    assert steps == [-1, -1, -0.5, -0.25]


def test_a_small_round_moves_an_item_by_its_share_of_an_iteration():
    fedrec, sent = method(), [gradients([0], [8])]
    state = zeros(fedrec)
    for _ in range(4):
        state = fedrec.server_update(state, aggregate(fedrec, sent, clients=4))
    assert state.vectors[0, 0] == pytest.approx(-4.0)
    assert (state.progress[0], state.reports[0]) == (1.0, pytest.approx(sum(0.75**n for n in range(4))))


def test_items_whose_count_does_not_stand_out_of_the_noise_stay():
    fedrec, noise = method(n_items=4), 0.5
    sums = aggregate(fedrec, [gradients([0], [1])], noise=noise)
    sums.vectors[:] = 10
    sums.counts[:] = [STANDS_OUT * noise * 0.9, STANDS_OUT * noise * 1.1, -STANDS_OUT, 0]
    after = fedrec.server_update(zeros(fedrec), sums)
    assert np.flatnonzero(after.vectors[:, 0]).tolist() == np.flatnonzero(after.reported).tolist() == [1]
