"""A round of FedRec: what is computed, what crosses the wire, and what the server makes of it."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.communication import rating_broadcast_bytes, rating_update_bytes
from federank.methods.fedrec.method import ImplicitGradients
from federank.methods.fedrec.reference import compute_ratings, share_ratings
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
    client = federation.client(user)
    with words_wrap_around():
        update = share_ratings(compute_ratings(federation.recipe, client, federation.broadcast))
    return update, client


# U = 1, V = 2, r = 4: e = -2; the gradient of U is -2 * 2 + .5 * 1 = -3.5, so U becomes 1.35.
@pytest.mark.parametrize("style", ["stochastic", "batch"])
def test_one_rating_by_hand_as_the_authors_code_has_it(style):
    update, device = update_of(one_person(style=style))
    assert device.vector[0] == pytest.approx(1.35)
    assert update.items.tolist() == [0]
    assert update.vectors[0, 0] == pytest.approx(-2 * 1 + 0.5 * 2)


@pytest.mark.parametrize("style", ["stochastic", "batch"])
def test_one_rating_by_hand_as_the_paper_has_it(style):
    update, device = update_of(one_person(style=style, item_gradients="after"))
    assert device.vector[0] == pytest.approx(1.35)
    assert update.vectors[0, 0] == pytest.approx((1.35 * 2 - 4) * 1.35 + 0.5 * 2)


def test_a_virtual_rating_is_the_users_mean():
    update, device = update_of(one_person(style="batch", filling="average", rho=1))
    assert update.items.tolist() == [0, 1]
    # Item 1 is virtually rated 4, the only rating there is: e = 1 * 3 - 4 = -1.
    assert update.vectors[1, 0] == pytest.approx(-1 * 1 + 0.5 * 3)
    assert device.vector[0] == pytest.approx(1 - 0.1 * ((-2 * 2 - 1 * 3) / 2 + 0.5))


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
    assert device.vector[0] == pytest.approx(1.35)
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
        assert device.vector[0] == pytest.approx(1 + expected * 3.5, rel=1e-6)
        assert device.participations == 2


def test_the_counted_bytes_are_those_of_real_messages():
    federation = rating_federation(rated_world(), "svdpp", filling="average", rho=1)
    update, device = update_of(federation, user=1)
    rated = len(device.items)
    assert len(wire.encode(ImplicitGradients(*update))) == rating_update_bytes(2 * rated, rated, 4)
    assert len(wire.encode(ItemGradients(*update[:2]))) == rating_update_bytes(2 * rated, 0, 4)
    broadcast = federation.broadcast
    tables = {"vectors": broadcast.vectors, "implicit_vectors": broadcast.implicit_vectors}
    content = wire.encode_parts(tables, {"round": 3})
    assert len(content) == rating_broadcast_bytes(len(broadcast.vectors), 4, implicit=True)


def test_every_user_takes_part_in_batch_style_and_one_at_a_time_in_stochastic_style():
    batch, stochastic = (rating_federation(rated_world(), style=style).recipe for style in ("batch", "stochastic"))
    with words_wrap_around():
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
